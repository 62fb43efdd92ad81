package providers

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// loadTimeout bounds the wait for Ollama to load a model from disk.
const loadTimeout = time.Minute

// llamaCpp asks llama.cpp's server, which serves one model. Its window is
// divided among its slots, and /props tells what is left for each.
func (p *prober) llamaCpp(ctx context.Context) (ServerInfo, bool) {
	var props struct {
		Alias    string `json:"model_alias"`
		Path     string `json:"model_path"`
		Settings struct {
			Window int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	address := p.root + "/props"
	if p.request.Model != "" {
		address = withQuery(address, "model", p.request.Model) // For servers that route between models.
	}
	if !p.get(ctx, address, &props) || props.Settings.Window <= 0 {
		return ServerInfo{}, false
	}
	info := ServerInfo{Model: p.request.Model, ContextWindow: props.Settings.Window, Served: true}
	if info.Model == "" {
		if listed, ok := p.models(ctx); ok {
			info.Model = listed.Model
		}
	}
	return info, info.Model != ""
}

// lmStudio asks LM Studio.
func (p *prober) lmStudio(ctx context.Context) (ServerInfo, bool) {
	var answer struct {
		Data []lmStudioModel `json:"data"`
	}
	if !p.get(ctx, p.root+"/api/v0/models", &answer) {
		return ServerInfo{}, false
	}
	var found *lmStudioModel
	for i, m := range answer.Data {
		switch {
		case p.request.Model != "":
			if m.ID == p.request.Model {
				return m.info(), true
			}
		case m.Type == "embeddings":
		case found == nil || m.Loaded > 0 && found.Loaded == 0:
			found = &answer.Data[i]
		}
	}
	if found == nil {
		return ServerInfo{}, false
	}
	return found.info(), true
}

// lmStudioModel is a model on LM Studio's disk.
type lmStudioModel struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Most int    `json:"max_context_length"`
	// Loaded is the window it was loaded with; 0 while it is not.
	Loaded int `json:"loaded_context_length"`
}

func (m lmStudioModel) info() ServerInfo {
	if m.Loaded > 0 {
		return ServerInfo{Model: m.ID, ContextWindow: m.Loaded, Served: true}
	}
	return ServerInfo{Model: m.ID, ContextWindow: m.Most}
}

// ollama asks Ollama. What a model could take says nothing there: the window
// that is served is the model's num_ctx or else the server's own default, which
// depends on its settings and its memory and is known only once the model is
// loaded. So a model without num_ctx is loaded.
func (p *prober) ollama(ctx context.Context) (ServerInfo, bool) {
	info := ServerInfo{Model: p.request.Model, TruncatesSilently: true}
	if info.Model == "" {
		if info.Model = p.ollamaFirst(ctx); info.Model == "" {
			return ServerInfo{}, false
		}
	}
	if n := p.ollamaLoaded(ctx, info.Model); n > 0 {
		info.ContextWindow, info.Served = n, true
		return info, true
	}
	var show struct {
		Parameters string         `json:"parameters"`
		Info       map[string]any `json:"model_info"`
	}
	if !p.post(ctx, probeTimeout, p.root+"/api/show", map[string]string{"model": info.Model}, &show) {
		return ServerInfo{}, false
	}
	if n := numCtx(show.Parameters); n > 0 {
		info.ContextWindow, info.Served = n, true
		return info, true
	}
	var loaded struct{}
	if p.post(ctx, loadTimeout, p.root+"/api/generate", map[string]any{"model": info.Model, "stream": false}, &loaded) {
		if n := p.ollamaLoaded(ctx, info.Model); n > 0 {
			info.ContextWindow, info.Served = n, true
			return info, true
		}
	}
	info.ContextWindow = trainedWindow(show.Info)
	return info, true
}

// ollamaRunning is the answer of /api/ps, and of /api/tags.
type ollamaRunning struct {
	Models []struct {
		Name   string `json:"name"`
		Window int    `json:"context_length"`
	} `json:"models"`
}

// ollamaLoaded returns the window that a model is loaded with; 0 when it is
// not loaded or the server is too old to tell.
func (p *prober) ollamaLoaded(ctx context.Context, model string) int {
	var running ollamaRunning
	if !p.get(ctx, p.root+"/api/ps", &running) {
		return 0
	}
	for _, m := range running.Models {
		if m.Name == model || m.Name == model+":latest" {
			return m.Window
		}
	}
	return 0
}

// ollamaFirst returns the name of a model that is loaded, or else of the one
// that was changed last.
func (p *prober) ollamaFirst(ctx context.Context) string {
	for _, path := range []string{"/api/ps", "/api/tags"} {
		var list ollamaRunning
		if p.get(ctx, p.root+path, &list) && len(list.Models) > 0 {
			return list.Models[0].Name
		}
	}
	return ""
}

// numCtx finds the window in the parameters of a model, one a line.
func numCtx(parameters string) int {
	for line := range strings.Lines(parameters) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == "num_ctx" {
			n, err := strconv.Atoi(fields[1])
			if err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}

// trainedWindow finds the window a model was trained for; the name in front
// is that of its architecture.
func trainedWindow(info map[string]any) int {
	for name, value := range info {
		if n, ok := value.(float64); ok && strings.HasSuffix(name, ".context_length") {
			return int(n)
		}
	}
	return 0
}
