package providers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
)

// listedModel is a model in the answer of /v1/models. Servers put its limits
// under names of their own; no name means different things at two of them.
type listedModel struct {
	ID string `json:"id"`

	// MaxModelLen is what vLLM and SGLang serve.
	MaxModelLen int `json:"max_model_len"`
	// ContextLength is for OpenRouter, Together, Moonshot and Fireworks.
	ContextLength int `json:"context_length"`
	// ContextWindow is for Groq.
	ContextWindow int `json:"context_window"`
	// MaxContextLength is for Mistral.
	MaxContextLength int `json:"max_context_length"`
	// MaxInputTokens is for gateways.
	MaxInputTokens int `json:"max_input_tokens"`

	MaxCompletionTokens int `json:"max_completion_tokens"`
	MaxOutputTokens     int `json:"max_output_tokens"`

	// TopProvider is the provider that OpenRouter prefers; it may serve less
	// than others.
	TopProvider struct {
		ContextLength       int `json:"context_length"`
		MaxCompletionTokens int `json:"max_completion_tokens"`
	} `json:"top_provider"`

	// Meta is for llama.cpp.
	Meta struct {
		Served  int `json:"n_ctx"`
		Trained int `json:"n_ctx_train"`
	} `json:"meta"`
}

// info is what the entry says.
func (m listedModel) info() ServerInfo {
	info := ServerInfo{
		Model:           m.ID,
		MaxOutputTokens: cmp.Or(m.TopProvider.MaxCompletionTokens, m.MaxCompletionTokens, m.MaxOutputTokens),
	}
	served := cmp.Or(m.MaxModelLen, m.TopProvider.ContextLength, m.ContextLength, m.ContextWindow, m.MaxContextLength, m.Meta.Served, m.MaxInputTokens)
	info.ContextWindow, info.Served = cmp.Or(served, m.Meta.Trained), served > 0
	return info
}

// modelList is the answer of /v1/models: an object, or at Together a plain
// list.
type modelList []listedModel

// UnmarshalJSON implements [json.Unmarshaler]. An entry that cannot be read is
// left out: one odd model must not hide the others.
func (l *modelList) UnmarshalJSON(text []byte) error {
	var entries []json.RawMessage
	if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("[")) {
		if err := json.Unmarshal(text, &entries); err != nil {
			return err
		}
	} else {
		var object struct {
			Data []json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(text, &object); err != nil {
			return err
		}
		entries = object.Data
	}
	for _, e := range entries {
		var m listedModel
		if json.Unmarshal(e, &m) == nil && m.ID != "" {
			*l = append(*l, m)
		}
	}
	return nil
}

// models asks for the list of models.
func (p *prober) models(ctx context.Context) (ServerInfo, bool) {
	var list modelList
	if !p.get(ctx, p.request.BaseURL+"/models", &list) || len(list) == 0 {
		return ServerInfo{}, false
	}
	if p.request.Model == "" {
		return list[0].info(), true
	}
	for _, m := range list {
		if m.ID == p.request.Model {
			return m.info(), true
		}
	}
	return ServerInfo{}, false
}

// liteLLM asks LiteLLM, which knows the limits of the models behind it.
func (p *prober) liteLLM(ctx context.Context) (ServerInfo, bool) {
	var answer struct {
		Data []struct {
			Name string `json:"model_name"`
			Info struct {
				MaxInput  int `json:"max_input_tokens"`
				MaxOutput int `json:"max_output_tokens"`
			} `json:"model_info"`
		} `json:"data"`
	}
	if !p.get(ctx, p.root+"/model/info", &answer) {
		return ServerInfo{}, false
	}
	var found ServerInfo
	for _, m := range answer.Data {
		if m.Name == "" || p.request.Model != "" && m.Name != p.request.Model || found.Model != "" && m.Name != found.Model {
			continue
		}
		// A name may stand for several deployments, and each request may go to
		// another one.
		found = ServerInfo{
			Model: m.Name, Served: true,
			ContextWindow:   smallest(found.ContextWindow, m.Info.MaxInput),
			MaxOutputTokens: smallest(found.MaxOutputTokens, m.Info.MaxOutput),
		}
	}
	return found, found.Model != ""
}

// smallest returns the smaller of two limits, of which 0 is none.
func smallest(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
