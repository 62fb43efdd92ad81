package config

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"keen/internal/providers"
)

// fromGeneralThinking is the source of an effort that was set for all models.
const fromGeneralThinking = "config thinking"

// defaultWindow is assumed when nobody knows the window, in tokens.
const defaultWindow = 128_000

// model decides about the model, as far as that goes without the server.
func (r *resolver) model(context.Context) error {
	p := r.out.Preset
	r.out.Model = first(
		r.belonging(func(l place) Value[string] { return l.model }),
		Value[string]{r.entry.Model, entryField(r.out.Provider.V, "model")},
		Value[string]{p.RegionalModel(r.out.Region.V), fromDefault},
	)
	return nil
}

// modelEntry is what the file says about the model.
func (r *resolver) modelEntry() Model { return r.entry.Models[r.out.Model.V] }

// modelField names a field of the model in the file as a source.
func (r *resolver) modelField(field string) string {
	return entryField(r.out.Provider.V, "models."+r.out.Model.V+"."+field)
}

// askServer looks the model up in the registry and, where that does not know
// it, asks the server. The registry counts for the provider's own host only:
// elsewhere a model of the same name may be served with another window. A
// server that cuts what does not fit is always asked, because it alone knows
// where.
func (r *resolver) askServer(ctx context.Context) error {
	p := r.out.Preset
	if r.out.Model.V != "" && p.OwnHost(r.out.BaseURL.V) {
		r.known, r.hasKnown = r.in.Registry.Model(p, r.out.Model.V)
	}
	needed := r.out.Model.V == "" || !r.hasKnown && r.explicitWindow().V == 0 || p.Quirks.TruncatesSilently
	if needed && r.in.Probe != nil && r.out.BaseURL.V != "" {
		r.server, r.answered = r.in.Probe(ctx, providers.ProbeRequest{
			Provider: p, BaseURL: r.out.BaseURL.V, Model: r.out.Model.V, Credential: r.out.Credential, Headers: r.entry.Headers,
		})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if r.out.Model.V == "" && r.answered {
		r.out.Model = Value[string]{r.server.Model, fromServer}
	}
	r.out.Quirks = r.quirks()
	if r.out.Model.V == "" {
		return missing("%s needs the name of a model: set --model or providers.%s.model%s", p.Name, r.out.Provider.V, r.whyNoModel())
	}
	return nil
}

func (r *resolver) whyNoModel() string {
	switch {
	case r.out.Preset.ID == providers.Azure:
		return " (with Azure OpenAI that is the name of your deployment)"
	case r.in.Probe == nil || r.out.BaseURL.V == "" || r.out.Preset.Server == providers.ServerUnknown:
		return ""
	}
	return "; the server at " + redactURL(r.out.BaseURL.V) + " did not name one: does it run?"
}

// quirks are the server's ways, with what the user knows better.
func (r *resolver) quirks() providers.Quirks {
	q := r.out.Preset.Quirks
	q.TruncatesSilently = q.TruncatesSilently || r.server.TruncatesSilently
	if v := r.entry.NoStreamOptions; v != nil {
		q.NoStreamOptions = *v
	}
	if v := r.entry.MaxCompletionTokens; v != nil {
		q.MaxCompletionTokens = *v
	}
	r.out.ReplayReasoning = Value[bool]{q.ReplayReasoning, fromRegistry}
	if v := r.modelEntry().ReplayReasoning; v != nil {
		q.ReplayReasoning = *v
		r.out.ReplayReasoning = Value[bool]{*v, r.modelField("replay_reasoning")}
	}
	return q
}

// output decides about the output of a request and the most there can be.
func (r *resolver) output(context.Context) error {
	if r.in.Flags.MaxOutputTokens < 0 {
		return fmt.Errorf("flag --max-output-tokens: %d is no number of tokens", r.in.Flags.MaxOutputTokens)
	}
	model := first(
		Value[int]{r.in.Flags.MaxOutputTokens, "flag --max-output-tokens"},
		r.envMaxOutput,
		Value[int]{r.modelEntry().MaxOutputTokens, r.modelField("max_output_tokens")},
	)
	r.out.MaxOutputTokens = first(model, Value[int]{r.in.File.MaxOutputTokens, "config max_output_tokens"}, Value[int]{0, fromDefault})
	r.out.ModelMaxOutput = first(
		Value[int]{r.known.MaxOutputTokens, fromRegistry}, Value[int]{r.server.MaxOutputTokens, fromServer}, Value[int]{0, fromDefault},
	)
	// Who asks for more of this very model knows better than the registry,
	// which holds what is safe. The general setting is about all models.
	if model.V > r.out.ModelMaxOutput.V && r.out.ModelMaxOutput.V > 0 {
		r.out.ModelMaxOutput = model
	}
	return nil
}

// thinking decides about the effort. One that the model does not know is an
// error where it was set for this model, and is left out with a note where it
// was set for all.
func (r *resolver) thinking(context.Context) error {
	r.out.Efforts = slices.Clone(r.known.Efforts)
	special := first(
		Value[string]{r.in.Flags.Thinking, "flag --thinking"},
		Value[string]{r.env(envThinking), "environment " + envThinking},
		Value[string]{r.modelEntry().Thinking, r.modelField("thinking")},
	)
	general := Value[string]{r.in.File.Thinking, fromGeneralThinking}
	r.out.Thinking = first(special, general, Value[string]{"", fromDefault})
	r.out.Thinking.V = r.spelled(r.out.Thinking.V)
	if r.knowsEffort(r.out.Thinking.V) {
		return nil
	}
	efforts := "it does not think"
	if len(r.out.Efforts) > 0 {
		efforts = "it knows " + strings.Join(r.out.Efforts, ", ")
	}
	if special.V != "" {
		return fmt.Errorf("%s: %s does not know the thinking effort %q; %s", special.From, r.out.Model.V, special.V, efforts)
	}
	r.note("%s does not know the thinking effort %q of the configuration, which is left out; %s", r.out.Model.V, general.V, efforts)
	r.out.Thinking = Value[string]{"", fromDefault}
	return nil
}

// hasBudget reports whether thinking has a budget on the wire, so that numbers
// are efforts and thinking can always be switched off.
func (r *resolver) hasBudget() bool {
	switch r.out.Preset.Wire {
	case providers.WireAnthropic, providers.WireGemini, providers.WireBedrock:
		return true
	}
	return false
}

// spelled writes an effort as the wire does, where "off" may be called "none".
func (r *resolver) spelled(effort string) string {
	effort = strings.ToLower(effort)
	if effort == "off" && !r.hasBudget() {
		return "none"
	}
	return effort
}

// knowsEffort reports whether the model takes an effort, as far as anybody
// knows.
func (r *resolver) knowsEffort(effort string) bool {
	if effort == "" || !r.hasKnown || slices.Contains(r.known.Efforts, effort) {
		return true
	}
	if r.hasBudget() {
		n, err := strconv.Atoi(effort)
		return effort == "off" || effort == "none" || err == nil && n > 0
	}
	// An empty list may also mean that nobody noted them down.
	return len(r.known.Efforts) == 0 && (r.known.Reasons || r.out.Thinking.From != fromGeneralThinking)
}
