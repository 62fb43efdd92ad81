package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ServerKind says what a server can be asked about its models.
type ServerKind int

// The kinds of servers.
const (
	// ServerUnknown says nothing.
	ServerUnknown ServerKind = iota
	// ServerModels describes models in /v1/models, as vLLM, OpenRouter, Groq,
	// Mistral and Together do.
	ServerModels
	// ServerOllama is asked in Ollama's own interface.
	ServerOllama
	// ServerLMStudio is asked in LM Studio's own interface.
	ServerLMStudio
	// ServerLlamaCpp tells its window in /props.
	ServerLlamaCpp
	// ServerLiteLLM describes models in /model/info.
	ServerLiteLLM
	// ServerAny may be each of them.
	ServerAny
)

// Limits of probing.
const (
	// probeTimeout bounds one question.
	probeTimeout = 3 * time.Second
	// probeBody bounds an answer, in bytes; OpenRouter's is about a megabyte.
	probeBody = 16 << 20
)

// ServerInfo is what a server says about a model.
type ServerInfo struct {
	// Model is the model's name: the one that was asked for or, when none was,
	// the one that the server has loaded or lists first.
	Model string
	// ContextWindow is the model's window in tokens; 0 means that the server
	// does not say.
	ContextWindow int
	// Served says that ContextWindow is what requests really get, not only
	// what the model could take.
	Served bool
	// MaxOutputTokens is the most output in tokens; 0 means unknown.
	MaxOutputTokens int
	// TruncatesSilently says that the server is of a kind that cuts input
	// which does not fit.
	TruncatesSilently bool
}

// ProbeRequest says which server is asked about what.
type ProbeRequest struct {
	// Provider says of what kind the server is.
	Provider Provider
	// BaseURL is where it listens, from [Provider.Address].
	BaseURL string
	// Model is the model in question; empty asks which there is.
	Model string
	// Credential gives the key, sent as a bearer token; nil sends none.
	Credential Credential
	// Headers are added to each request.
	Headers map[string]string
	// Client does the requests; nil means [http.DefaultClient].
	Client *http.Client
}

// Probe asks a server about a model. It reports false when the server says
// nothing of use, whatever the reason: the first real request shows what is
// wrong, and a start never fails for a missing hint.
//
// Each question is bounded by three seconds, answers by 16 MB. Ollama alone
// may take up to a minute, because it has to load a model before it knows its
// window; that wait is not lost, since the first request needs the model.
func Probe(ctx context.Context, r ProbeRequest) (ServerInfo, bool) {
	p := newProber(r)
	info, ok := p.ask(ctx, r.Provider.Server)
	return info, ok && ctx.Err() == nil
}

// prober asks one server.
type prober struct {
	request ProbeRequest
	client  *http.Client
	// root is the base URL without its /v1, where servers keep their own
	// interfaces.
	root string
}

func newProber(r ProbeRequest) *prober {
	client := r.Client
	if client == nil {
		client = http.DefaultClient
	}
	bound := *client
	// A redirect would take the key and the headers to another server.
	bound.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &prober{request: r, client: &bound, root: strings.TrimSuffix(r.BaseURL, "/v1")}
}

func (p *prober) ask(ctx context.Context, kind ServerKind) (ServerInfo, bool) {
	switch kind {
	case ServerModels:
		return p.models(ctx)
	case ServerOllama:
		return p.ollama(ctx)
	case ServerLMStudio:
		return p.firstOf(ctx, p.lmStudio, p.models)
	case ServerLlamaCpp:
		return p.firstOf(ctx, p.llamaCpp, p.models)
	case ServerLiteLLM:
		return p.firstOf(ctx, p.liteLLM, p.models)
	case ServerAny:
		return p.any(ctx)
	}
	return ServerInfo{}, false
}

// firstOf asks in several ways until one knows the window. What knows only the
// model's name is better than nothing.
func (p *prober) firstOf(ctx context.Context, ways ...func(context.Context) (ServerInfo, bool)) (ServerInfo, bool) {
	var best ServerInfo
	found := false
	for _, way := range ways {
		info, ok := way(ctx)
		if ok && info.ContextWindow > 0 {
			return info, true
		}
		if ok && !found {
			best, found = info, true
		}
	}
	return best, found
}

// any asks a server of an unknown kind. What the list of models says counts
// only when it is what is served; llama.cpp lists what a model could take.
func (p *prober) any(ctx context.Context) (ServerInfo, bool) {
	listed, ok := p.models(ctx)
	if ok && listed.Served {
		return listed, true
	}
	own, found := p.firstOf(ctx, p.llamaCpp, p.lmStudio, p.ollama, p.liteLLM)
	if found && (own.ContextWindow > 0 || !ok) {
		return own, true
	}
	return listed, ok
}

// get reads a JSON document into v and reports whether there was one.
func (p *prober) get(ctx context.Context, address string, v any) bool {
	return p.do(ctx, probeTimeout, http.MethodGet, address, nil, v)
}

// post sends a JSON document and reads the answer into v.
func (p *prober) post(ctx context.Context, limit time.Duration, address string, body, v any) bool {
	text, err := json.Marshal(body)
	return err == nil && p.do(ctx, limit, http.MethodPost, address, text, v)
}

func (p *prober) do(ctx context.Context, limit time.Duration, method, address string, body []byte, v any) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return false
	}
	if p.authorize(r) != nil {
		return false
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	return json.NewDecoder(io.LimitReader(resp.Body, probeBody)).Decode(v) == nil
}

func (p *prober) authorize(r *http.Request) error {
	r.Header.Set("Content-Type", "application/json")
	if p.request.Credential != nil {
		key, err := p.request.Credential.Token(r.Context(), "")
		if err != nil {
			return fmt.Errorf("key for a question: %w", err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
	for name, value := range p.request.Headers {
		r.Header.Set(name, value)
	}
	return nil
}

// withQuery adds one parameter to an address.
func withQuery(address, name, value string) string {
	return address + "?" + url.Values{name: {value}}.Encode()
}
