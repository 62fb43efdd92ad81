package config

import (
	"context"
	"fmt"

	"keen/internal/providers"
)

// explicitWindow is the window that the user sets, if he does.
func (r *resolver) explicitWindow() Value[int] {
	return first(
		Value[int]{r.in.Flags.ContextWindow, "flag --context-window"},
		r.envWindow,
		Value[int]{r.modelEntry().ContextWindow, r.modelField("context_window")},
	)
}

// window decides about the context window: what the user says, the registry,
// the server, a default. It refuses what Keen cannot work in.
func (r *resolver) window(context.Context) error {
	if v := r.explicitWindow(); v.V != 0 {
		return r.useExplicit(v)
	}
	if r.hasKnown && !r.server.Served {
		return r.useWindow(Value[int]{r.known.ContextWindow, fromRegistry})
	}
	if r.answered && r.server.ContextWindow > 0 {
		return r.useServer()
	}
	r.out.ContextWindow = Value[int]{defaultWindow, fromDefault}
	if r.out.Model.V == "" {
		return nil
	}
	if r.out.Quirks.TruncatesSilently {
		r.out.ContextWindow.V = providers.MinContextWindow
	}
	r.note("the context window of %s is not known; %s tokens are assumed. Set it with --context-window or providers.%s.models.%s.context_window",
		r.out.Model.V, thousands(r.out.ContextWindow.V), r.out.Provider.V, r.out.Model.V)
	return nil
}

func (r *resolver) useExplicit(v Value[int]) error {
	if v.V < providers.MinContextWindow {
		return fmt.Errorf("%s: %w", v.From, smallWindow(v.V))
	}
	r.out.ContextWindow = v
	if r.out.Quirks.TruncatesSilently && r.server.Served && r.server.ContextWindow < v.V {
		r.note("%s serves %s with a window of %s tokens, less than %s says, and drops the beginning of what does not fit without a word. %s",
			r.out.Preset.Name, r.out.Model.V, thousands(r.server.ContextWindow), v.From, r.enlarge())
	}
	return nil
}

// useServer takes what the server says. For one that cuts silently, what a
// model could take says nothing about what is served.
func (r *resolver) useServer() error {
	if r.server.Served || !r.out.Quirks.TruncatesSilently {
		if !r.server.Served {
			r.note("%s takes %s tokens at most; the server does not say how many it serves. Set --context-window if it is fewer",
				r.out.Model.V, thousands(r.server.ContextWindow))
		}
		return r.useWindow(Value[int]{r.server.ContextWindow, fromServer})
	}
	r.out.ContextWindow = Value[int]{min(providers.MinContextWindow, r.server.ContextWindow), fromDefault}
	r.note("%s does not say with which window it serves %s; %s tokens are assumed, and if it is fewer, the beginning of what does not fit is dropped without a word. %s",
		r.out.Preset.Name, r.out.Model.V, thousands(r.out.ContextWindow.V), r.enlarge())
	return r.useWindow(r.out.ContextWindow)
}

// useWindow takes a window that the user did not choose.
func (r *resolver) useWindow(v Value[int]) error {
	r.out.ContextWindow = v
	if v.V >= providers.MinContextWindow {
		return nil
	}
	advice := "choose another model"
	if v.From != fromRegistry {
		advice = r.enlarge()
	}
	return fmt.Errorf("%s has a context window of %s tokens (%s), and Keen needs at least %s. %s",
		r.out.Model.V, thousands(v.V), v.From, thousands(providers.MinContextWindow), advice)
}

// enlarge says how to serve a larger window.
func (r *resolver) enlarge() string {
	switch r.out.Preset.Server {
	case providers.ServerOllama:
		return "Start Ollama with OLLAMA_CONTEXT_LENGTH=65536, or set num_ctx in the model's Modelfile"
	case providers.ServerLMStudio:
		return "Load the model in LM Studio with a larger context length"
	case providers.ServerLlamaCpp:
		return "Start llama-server with -c 65536 (it divides that among its slots: -np 1 gives one all of it)"
	}
	return "Start the server with a larger window, such as --max-model-len 65536 for vLLM, or choose another model"
}
