package providers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Ports are where servers are looked for on this machine; 0 leaves one out.
type Ports struct {
	Ollama, LMStudio, LlamaCpp, VLLM, LiteLLM int
}

// DefaultPorts returns the ports that the programs listen on unless they are
// told otherwise.
func DefaultPorts() Ports {
	return Ports{Ollama: 11434, LMStudio: 1234, LlamaCpp: 8080, VLLM: 8000, LiteLLM: 4000}
}

// LocalServer is a server that runs on this machine.
type LocalServer struct {
	// Provider is the id of its provider.
	Provider string
	// BaseURL is where it listens.
	BaseURL string
	// Models are the names of its models; empty when it does not tell without
	// a key.
	Models []string
}

// DiscoverLocal looks for servers on loopback, all ports at once, and returns
// those whose answer shows what they are. It sends no key. It ends with ctx,
// and after a few seconds at most; client may be nil.
func DiscoverLocal(ctx context.Context, client *http.Client, ports Ports) []LocalServer {
	candidates := []struct {
		provider string
		port     int
		is       func(context.Context, *prober) bool
	}{
		{Ollama, ports.Ollama, isOllama},
		{"lmstudio", ports.LMStudio, isLMStudio},
		{"llamacpp", ports.LlamaCpp, isLlamaCpp},
		{"vllm", ports.VLLM, isVLLM},
		{"litellm", ports.LiteLLM, isLiteLLM},
	}
	found := make([]*LocalServer, len(candidates))
	var wg sync.WaitGroup
	for i, c := range candidates {
		if c.port == 0 {
			continue
		}
		wg.Go(func() {
			baseURL := fmt.Sprintf("http://127.0.0.1:%d/v1", c.port)
			p := newProber(ProbeRequest{BaseURL: baseURL, Client: client})
			if c.is(ctx, p) {
				found[i] = &LocalServer{Provider: c.provider, BaseURL: baseURL, Models: p.modelNames(ctx)}
			}
		})
	}
	wg.Wait()
	var servers []LocalServer
	for _, s := range found {
		if s != nil {
			servers = append(servers, *s)
		}
	}
	return servers
}

// modelNames returns the names of all models that a server lists.
func (p *prober) modelNames(ctx context.Context) []string {
	var list modelList
	if !p.get(ctx, p.request.BaseURL+"/models", &list) {
		return nil
	}
	var names []string
	for _, m := range list {
		names = append(names, m.ID)
	}
	return names
}

func isOllama(ctx context.Context, p *prober) bool {
	var answer struct {
		Version string `json:"version"`
	}
	return p.get(ctx, p.root+"/api/version", &answer) && answer.Version != ""
}

func isLMStudio(ctx context.Context, p *prober) bool {
	var answer struct {
		Data []lmStudioModel `json:"data"`
	}
	return p.get(ctx, p.root+"/api/v0/models", &answer) && answer.Data != nil
}

func isLlamaCpp(ctx context.Context, p *prober) bool {
	var answer struct {
		Settings map[string]any `json:"default_generation_settings"`
	}
	return p.get(ctx, p.root+"/props", &answer) && answer.Settings != nil
}

func isVLLM(ctx context.Context, p *prober) bool {
	var list modelList
	return p.get(ctx, p.request.BaseURL+"/models", &list) && len(list) > 0 && list[0].MaxModelLen > 0
}

func isLiteLLM(ctx context.Context, p *prober) bool {
	var answer string
	return p.get(ctx, p.root+"/health/liveliness", &answer) && strings.Contains(answer, "alive")
}
