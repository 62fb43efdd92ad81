package providers_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/providers"
)

// answers are the answers of a server by method and path; what is missing is
// not found.
type answers map[string]string

// serve starts a server and returns its address without a path.
func (a answers) serve(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := a[r.Method+" "+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// client returns a client whose connections end with the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestProbeReadsWhatEachKindOfServerSays(t *testing.T) {
	t.Parallel()
	const listOfModels = `{"data":[
		{"id":"vllm","object":"model","max_model_len":40960},
		{"id":"openrouter","context_length":1000000,"top_provider":{"context_length":200000,"max_completion_tokens":64000}},
		{"id":"open-ended","context_length":65536,"top_provider":{"context_length":null,"max_completion_tokens":null}},
		{"id":"groq","context_window":131072,"max_completion_tokens":16384},
		{"id":"mistral","max_context_length":262144},
		{"id":"gateway","max_input_tokens":100000,"max_output_tokens":8000},
		{"id":"slot","meta":{"n_ctx":32768,"n_ctx_train":131072}},
		{"id":"trained","meta":{"n_ctx_train":131072}},
		{"id":"odd","context_length":"many"},
		{"id":"silent"}]}`
	lmStudio := answers{"GET /api/v0/models": `{"data":[
		{"id":"embed","type":"embeddings","state":"loaded","max_context_length":2048,"loaded_context_length":2048},
		{"id":"cold","type":"llm","state":"not-loaded","max_context_length":131072},
		{"id":"warm","type":"llm","state":"loaded","max_context_length":131072,"loaded_context_length":32768}]}`}
	llamaCpp := answers{
		"GET /props":     `{"default_generation_settings":{"n_ctx":24576},"total_slots":4,"model_path":"/m.gguf"}`,
		"GET /v1/models": `{"data":[{"id":"m.gguf","meta":{"n_ctx_train":131072}}]}`,
	}
	liteLLM := answers{"GET /model/info": `{"data":[
		{"model_name":"fast","model_info":{"max_input_tokens":200000,"max_output_tokens":32000}},
		{"model_name":"fast","model_info":{"max_input_tokens":128000,"max_output_tokens":64000}},
		{"model_name":"vague","model_info":{"max_input_tokens":null}}]}`}
	models := func(body string) answers { return answers{"GET /v1/models": body} }
	type info = providers.ServerInfo
	tests := []struct {
		name, provider, model string
		server                answers
		want                  info
	}{
		{"vLLM", "vllm", "vllm", models(listOfModels), info{Model: "vllm", ContextWindow: 40960, Served: true}},
		{"vLLM without a name", "vllm", "", models(listOfModels), info{Model: "vllm", ContextWindow: 40960, Served: true}},
		{"OpenRouter", "openrouter", "openrouter", models(listOfModels), info{Model: "openrouter", ContextWindow: 200000, Served: true, MaxOutputTokens: 64000}},
		{"OpenRouter without a preference", "openrouter", "open-ended", models(listOfModels), info{Model: "open-ended", ContextWindow: 65536, Served: true}},
		{"Groq", "groq", "groq", models(listOfModels), info{Model: "groq", ContextWindow: 131072, Served: true, MaxOutputTokens: 16384}},
		{"Mistral", "mistral", "mistral", models(listOfModels), info{Model: "mistral", ContextWindow: 262144, Served: true}},
		{"Together", "together", "t", models(`[{"id":"t","context_length":131072}]`), info{Model: "t", ContextWindow: 131072, Served: true}},
		{"gateway", "openai-compatible", "gateway", models(listOfModels), info{Model: "gateway", ContextWindow: 100000, Served: true, MaxOutputTokens: 8000}},
		{"model without limits", "openai-compatible", "silent", models(listOfModels), info{Model: "silent"}},
		{"llama.cpp", "llamacpp", "m.gguf", llamaCpp, info{Model: "m.gguf", ContextWindow: 24576, Served: true}},
		{"llama.cpp without a name", "llamacpp", "", llamaCpp, info{Model: "m.gguf", ContextWindow: 24576, Served: true}},
		{"llama.cpp that hides its settings", "llamacpp", "trained", models(listOfModels), info{Model: "trained", ContextWindow: 131072}},
		{"llama.cpp with a window in the list", "llamacpp", "slot", models(listOfModels), info{Model: "slot", ContextWindow: 32768, Served: true}},
		{"llama.cpp behind an unknown server", "openai-compatible", "m.gguf", llamaCpp, info{Model: "m.gguf", ContextWindow: 24576, Served: true}},
		{"LM Studio", "lmstudio", "warm", lmStudio, info{Model: "warm", ContextWindow: 32768, Served: true}},
		{"LM Studio, not loaded", "lmstudio", "cold", lmStudio, info{Model: "cold", ContextWindow: 131072}},
		{"LM Studio takes what is loaded", "lmstudio", "", lmStudio, info{Model: "warm", ContextWindow: 32768, Served: true}},
		{"LM Studio behind an unknown server", "openai-compatible", "warm", lmStudio, info{Model: "warm", ContextWindow: 32768, Served: true}},
		{"LiteLLM counts the smallest of its deployments", "litellm", "fast", liteLLM, info{Model: "fast", ContextWindow: 128000, Served: true, MaxOutputTokens: 32000}},
		{"LiteLLM without limits", "litellm", "vague", liteLLM, info{Model: "vague", Served: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := providers.Probe(t.Context(), providers.ProbeRequest{
				Provider: lookup(t, tt.provider), BaseURL: tt.server.serve(t) + "/v1", Model: tt.model, Client: client(t),
			})
			if diff := cmp.Diff(tt.want, got); diff != "" || !ok {
				t.Errorf("ok = %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// ollama is a server that serves every model with one window, once loaded.
type ollama struct {
	window int
	// numCtx is the parameter of the model; 0 for none.
	numCtx int
	loaded bool
	asked  []string
}

func (o *ollama) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.asked = append(o.asked, r.Method+" "+r.URL.Path)
	var reply any
	switch r.Method + " " + r.URL.Path {
	case "GET /api/ps":
		list := []map[string]any{}
		if o.loaded {
			list = append(list, map[string]any{"name": "qwen3:latest", "context_length": o.window})
		}
		reply = map[string]any{"models": list}
	case "GET /api/tags":
		reply = map[string]any{"models": []map[string]any{{"name": "qwen3:latest"}, {"name": "older"}}}
	case "POST /api/show":
		parameters := "stop \"x\"\ntemperature 0.6"
		if o.numCtx > 0 {
			parameters += "\nnum_ctx                        " + strconv.Itoa(o.numCtx)
		}
		reply = map[string]any{"parameters": parameters, "model_info": map[string]any{"general.architecture": "qwen3", "qwen3.context_length": 262144}}
	case "POST /api/generate":
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		if o.window == 0 || body["model"] == nil || body["prompt"] != nil {
			http.Error(w, "cannot load", http.StatusInternalServerError)
			return
		}
		o.loaded = true
		reply = map[string]any{"done": true, "done_reason": "load"}
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(reply)
}

func TestProbeFindsTheWindowThatOllamaReallyServes(t *testing.T) {
	t.Parallel()
	const load = "POST /api/generate"
	type info = providers.ServerInfo
	tests := []struct {
		name, model string
		server      ollama
		want        info
		loads       bool
	}{
		{"loaded", "qwen3", ollama{window: 32768, loaded: true, numCtx: 65536}, info{Model: "qwen3", ContextWindow: 32768, Served: true, TruncatesSilently: true}, false},
		{"parameter of the model", "qwen3", ollama{window: 4096, numCtx: 65536}, info{Model: "qwen3", ContextWindow: 65536, Served: true, TruncatesSilently: true}, false},
		{"default of the server, after loading", "qwen3", ollama{window: 4096}, info{Model: "qwen3", ContextWindow: 4096, Served: true, TruncatesSilently: true}, true},
		{"cannot be loaded", "qwen3", ollama{}, info{Model: "qwen3", ContextWindow: 262144, TruncatesSilently: true}, true},
		{"without a name", "", ollama{window: 8192, loaded: true}, info{Model: "qwen3:latest", ContextWindow: 8192, Served: true, TruncatesSilently: true}, false},
		{"without a name, nothing loaded", "", ollama{window: 8192}, info{Model: "qwen3:latest", ContextWindow: 8192, Served: true, TruncatesSilently: true}, true},
	}
	for _, tt := range tests {
		for _, provider := range []string{"ollama", "openai-compatible"} {
			t.Run(tt.name+" as "+provider, func(t *testing.T) {
				t.Parallel()
				o := tt.server
				s := httptest.NewServer(&o)
				t.Cleanup(s.Close)
				got, ok := providers.Probe(t.Context(), providers.ProbeRequest{
					Provider: lookup(t, provider), BaseURL: s.URL + "/v1", Model: tt.model, Client: client(t),
				})
				if diff := cmp.Diff(tt.want, got); diff != "" || !ok {
					t.Errorf("ok = %v (-want +got):\n%s", ok, diff)
				}
				if asked := strings.Join(o.asked, ", "); strings.Contains(asked, load) != tt.loads {
					t.Errorf("asked %s; loading wanted: %v", asked, tt.loads)
				}
			})
		}
	}
}

func TestProbeSaysNothingRatherThanFail(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	servers := map[string]string{
		"nobody listens":   closed.URL,
		"not found":        answers{}.serve(t),
		"a web page":       answers{"GET /v1/models": "<html>", "GET /props": "<html>"}.serve(t),
		"no models":        answers{"GET /v1/models": `{"data":[]}`, "GET /props": `{}`, "GET /model/info": `{"data":null}`, "GET /api/v0/models": `{}`, "GET /api/ps": `{}`, "POST /api/show": `[]`}.serve(t),
		"another model":    answers{"GET /v1/models": `{"data":[{"id":"other","max_model_len":40960}]}`}.serve(t),
		"another document": answers{"GET /v1/models": `"hello"`, "GET /api/v0/models": `7`}.serve(t),
		"no address":       "http://",
	}
	for name, address := range servers {
		for _, p := range providers.NewRegistry().All() {
			t.Run(name+" as "+p.ID, func(t *testing.T) {
				t.Parallel()
				got, ok := providers.Probe(t.Context(), providers.ProbeRequest{Provider: p, BaseURL: address + "/v1", Model: "m", Client: client(t)})
				if ok {
					t.Errorf("Probe = %+v", got)
				}
			})
		}
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	if got, ok := providers.Probe(ctx, providers.ProbeRequest{Provider: lookup(t, "openai-compatible"), BaseURL: s.URL + "/v1", Client: client(t)}); ok {
		t.Errorf("Probe = %+v", got)
	}
}

func TestProbeSendsKeyAndHeadersAndNeverToAnotherServer(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect to another server was followed")
	}))
	t.Cleanup(stranger.Close)
	seen := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
			return
		}
		seen = r.Header.Get("Authorization") == "Bearer the-key" && r.Header.Get("X-Team") == "compilers"
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	}))
	t.Cleanup(s.Close)
	_, ok := providers.Probe(t.Context(), providers.ProbeRequest{
		Provider: lookup(t, "openai-compatible"), BaseURL: s.URL + "/v1", Model: "m", Client: client(t),
		Credential: providers.StaticKey("the-key"), Headers: map[string]string{"X-Team": "compilers"},
	})
	if !ok || !seen {
		t.Errorf("ok = %v, key and headers were there: %v", ok, seen)
	}
	// Without a key there is nothing to ask with.
	if _, ok := providers.Probe(t.Context(), providers.ProbeRequest{
		Provider: lookup(t, "vllm"), BaseURL: s.URL + "/v1", Client: client(t), Credential: providers.NewHelper("exit 1"),
	}); ok {
		t.Error("asked without the key")
	}
}

func TestDiscoverLocalFindsRunningServersAndNothingElse(t *testing.T) {
	t.Parallel()
	const list = `{"data":[{"id":"a","max_model_len":32768},{"id":"b","max_model_len":32768}]}`
	port := func(a answers) int {
		u, err := url.Parse(a.serve(t))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(u.Port())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ports := providers.Ports{
		Ollama:   port(answers{"GET /api/version": `{"version":"0.30.0"}`, "GET /v1/models": `{"data":[{"id":"qwen3:latest"}]}`}),
		LMStudio: port(answers{"GET /api/v0/models": `{"data":[]}`, "GET /v1/models": `{"data":[]}`}),
		LlamaCpp: port(answers{"GET /props": `{"default_generation_settings":{"n_ctx":8192}}`, "GET /v1/models": list}),
		VLLM:     port(answers{"GET /v1/models": list}),
		LiteLLM:  port(answers{"GET /health/liveliness": `"I'm alive!"`}),
	}
	type found struct {
		Provider string
		Models   []string
	}
	want := []found{{"ollama", []string{"qwen3:latest"}}, {"lmstudio", nil}, {"llamacpp", []string{"a", "b"}}, {"vllm", []string{"a", "b"}}, {"litellm", nil}}
	var got []found
	for _, s := range providers.DiscoverLocal(t.Context(), client(t), ports) {
		got = append(got, found{s.Provider, s.Models})
		if !providers.Loopback(s.BaseURL) || !strings.HasSuffix(s.BaseURL, "/v1") {
			t.Errorf("%s is at %s", s.Provider, s.BaseURL)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A web server that answers everything, and ports where nobody listens.
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data":[{"id":"x"}]}`) }))
	t.Cleanup(web.Close)
	n := web.Listener.Addr().(*net.TCPAddr).Port
	closed := httptest.NewServer(http.NotFoundHandler())
	nobody := closed.Listener.Addr().(*net.TCPAddr).Port
	closed.Close()
	for _, p := range []providers.Ports{{Ollama: n, LlamaCpp: n, VLLM: n, LiteLLM: n}, {Ollama: nobody, LMStudio: nobody}, {}} {
		if got := providers.DiscoverLocal(t.Context(), client(t), p); got != nil {
			t.Errorf("found %+v at %+v", got, p)
		}
	}
}

func TestDefaultPortsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	p := providers.DefaultPorts()
	for id, port := range map[string]int{"ollama": p.Ollama, "lmstudio": p.LMStudio, "llamacpp": p.LlamaCpp, "vllm": p.VLLM, "litellm": p.LiteLLM} {
		if want := ":" + strconv.Itoa(port) + "/v1"; !strings.HasSuffix(lookup(t, id).BaseURL, want) {
			t.Errorf("%s is looked for at %s and used at %s", id, want, lookup(t, id).BaseURL)
		}
	}
}
