package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"keen/internal/config"
	"keen/internal/providers"
)

// Field report B07: a model that nobody knows must not count as one with a
// window of zero.
func TestB07_UnknownWindowIsTheDocumentedDefaultWithANote(t *testing.T) {
	t.Parallel()
	r := inputs{flags: config.Flags{BaseURL: "http://127.0.0.1:1/v1", Model: "nobody/knows"}}.must(t)
	if r.ContextWindow.V != 128_000 || r.ContextWindow.From != "default" || r.MaxOutputTokens.V != 0 {
		t.Errorf("window = %v, output = %v", r.ContextWindow, r.MaxOutputTokens)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "128,000") || !strings.Contains(r.Notes[0], "--context-window") {
		t.Errorf("notes = %q", r.Notes)
	}
}

// Field report B10: a hosted model of the same name must not decide about the
// window of another server.
func TestB10_RegistryNeverDecidesAboutAnotherServer(t *testing.T) {
	t.Parallel()
	const name = "gpt-5.6-sol"
	const declared = `{"providers":{
		"small":{"base_url":"http://127.0.0.1:1/v1","models":{"` + name + `":{"context_window":32768}}},
		"large":{"base_url":"http://127.0.0.1:2/v1","models":{"` + name + `":{"context_window":49152}}},
		"likeness":{"type":"openai","base_url":"http://127.0.0.1:3/v1"},
		"openai":{"models":{"` + name + `":{"context_window":65536}}}}}`
	served := &providers.ServerInfo{ContextWindow: 49152, Served: true}
	tests := []struct {
		name, provider string
		file           string
		server         *providers.ServerInfo
		baseURL        string
		want           int
		from           string
	}{
		{"declared by the user", "small", declared, served, "", 32768, "config providers.small.models." + name + ".context_window"},
		{"the same name at another provider", "large", declared, nil, "", 49152, "config providers.large.models." + name + ".context_window"},
		{"like a hosted provider, on another host", "likeness", declared, served, "", 49152, "server"},
		{"hosted provider with another base URL", "openai", "", served, "http://127.0.0.1:4/v1", 49152, "server"},
		{"the same, and the server says nothing", "openai", "", nil, "http://127.0.0.1:4/v1", 128_000, "default"},
		{"hosted provider itself", "openai", "", served, "", 1_050_000, "registry"},
		{"hosted provider, declared by the user", "openai", declared, served, "", 65536, "config providers.openai.models." + name + ".context_window"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := inputs{
				flags: config.Flags{Provider: tt.provider, Model: name, BaseURL: tt.baseURL},
				env:   env{"KEEN_API_KEY": "k"}, file: tt.file, server: tt.server,
			}.must(t)
			if r.ContextWindow.V != tt.want || r.ContextWindow.From != tt.from {
				t.Errorf("window = %v, want %d from %s", r.ContextWindow, tt.want, tt.from)
			}
		})
	}
}

func TestDecision04_WindowComesFromUserThenRegistryThenServerThenDefault(t *testing.T) {
	t.Parallel()
	const file = `{"providers":{"deepseek":{"models":{"deepseek-v4-pro":{"context_window":50000},"unknown":{}}}}}`
	served := &providers.ServerInfo{ContextWindow: 70000, Served: true}
	tests := []struct {
		from   string
		flag   int
		env    string
		file   string
		model  string
		server *providers.ServerInfo
		want   int
	}{
		{"flag --context-window", 30000, "40000", file, "deepseek-v4-pro", served, 30000},
		{"environment KEEN_CONTEXT_WINDOW", 0, "40000", file, "deepseek-v4-pro", served, 40000},
		{"config providers.deepseek.models.deepseek-v4-pro.context_window", 0, "", file, "deepseek-v4-pro", served, 50000},
		{"registry", 0, "", "", "deepseek-v4-pro", served, 1_000_000},
		{"server", 0, "", file, "unknown", served, 70000},
		{"default", 0, "", file, "unknown", nil, 128_000},
	}
	for _, tt := range tests {
		t.Run(tt.from, func(t *testing.T) {
			t.Parallel()
			r := inputs{
				flags: config.Flags{Provider: "deepseek", Model: tt.model, ContextWindow: tt.flag},
				env:   env{"DEEPSEEK_API_KEY": "k", "KEEN_CONTEXT_WINDOW": tt.env}, file: tt.file, server: tt.server,
			}.must(t)
			if r.ContextWindow.V != tt.want || r.ContextWindow.From != tt.from {
				t.Errorf("window = %v, want %d", r.ContextWindow, tt.want)
			}
			if noted := len(r.Notes) > 0; noted != (tt.from == "default") {
				t.Errorf("notes = %q", r.Notes)
			}
		})
	}
}

func TestWindowsThatAreTooSmallAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   inputs
		want []string
	}{
		{"flag", inputs{flags: config.Flags{BaseURL: "http://h/v1", Model: "m", ContextWindow: 16383}}, []string{"flag --context-window", "16,383", "16,384"}},
		{"environment", inputs{flags: config.Flags{BaseURL: "http://h/v1", Model: "m"}, env: env{"KEEN_CONTEXT_WINDOW": "1"}}, []string{"KEEN_CONTEXT_WINDOW"}},
		{"registry", inputs{flags: config.Flags{Provider: "moonshot", Model: "moonshot-v1-8k"}, env: env{"MOONSHOT_API_KEY": "k"}}, []string{"8,192", "registry", "choose another model"}},
		{"Ollama", inputs{flags: config.Flags{Provider: "ollama", Model: "qwen3"}, server: &providers.ServerInfo{ContextWindow: 4096, Served: true}}, []string{"qwen3", "4,096", "OLLAMA_CONTEXT_LENGTH"}},
		{"llama.cpp", inputs{flags: config.Flags{Provider: "llamacpp", Model: "m"}, server: &providers.ServerInfo{ContextWindow: 8192, Served: true}}, []string{"llama-server with -c"}},
		{"LM Studio", inputs{flags: config.Flags{Provider: "lmstudio", Model: "m"}, server: &providers.ServerInfo{ContextWindow: 8192}}, []string{"LM Studio"}},
		{"vLLM", inputs{flags: config.Flags{Provider: "vllm", Model: "m"}, server: &providers.ServerInfo{ContextWindow: 8192, Served: true}}, []string{"--max-model-len"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.in.resolve(t)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	if r := (inputs{flags: config.Flags{BaseURL: "http://h/v1", Model: "m", ContextWindow: 16384}}).must(t); r.ContextWindow.V != 16384 {
		t.Errorf("the smallest window is %v", r.ContextWindow)
	}
}

func TestServerThatCutsSilentlyIsNeverBelievedToServeMoreThanItSays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		flags  config.Flags
		server *providers.ServerInfo
		want   int
		note   string
	}{
		{"it says what it serves", config.Flags{Provider: "ollama"}, &providers.ServerInfo{Model: "a", ContextWindow: 65536, Served: true}, 65536, ""},
		{"it says only what the model takes", config.Flags{Provider: "ollama"}, &providers.ServerInfo{Model: "a", ContextWindow: 262144}, 16384, "OLLAMA_CONTEXT_LENGTH"},
		{"it says nothing", config.Flags{Provider: "ollama", Model: "a"}, nil, 16384, "16,384 tokens are assumed"},
		{"the user says more than it serves", config.Flags{Provider: "ollama", Model: "a", ContextWindow: 100000}, &providers.ServerInfo{ContextWindow: 32768, Served: true}, 100000, "32,768 tokens, less than flag --context-window says"},
		{"found behind an unknown server", config.Flags{BaseURL: "http://127.0.0.1:11434/v1", Model: "a"}, &providers.ServerInfo{ContextWindow: 262144, TruncatesSilently: true}, 16384, "without a word"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := inputs{flags: tt.flags, server: tt.server}.must(t)
			if r.ContextWindow.V != tt.want || !r.Quirks.TruncatesSilently || r.Model.V != "a" {
				t.Errorf("window = %v, silent %v, model %v; want %d", r.ContextWindow, r.Quirks.TruncatesSilently, r.Model, tt.want)
			}
			if notes := strings.Join(r.Notes, "\n"); tt.note == "" && notes != "" || !strings.Contains(notes, tt.note) {
				t.Errorf("notes = %q, want %q", notes, tt.note)
			}
		})
	}
}

func TestServerNamesTheModelWhereUsersHaveTheirOwn(t *testing.T) {
	t.Parallel()
	r := inputs{flags: config.Flags{Provider: "vllm"}, server: &providers.ServerInfo{Model: "qwen", ContextWindow: 40960, Served: true, MaxOutputTokens: 4096}}.must(t)
	if v, source := rowOf(t, r, "model"); v != "qwen" || source != "server" {
		t.Errorf("model = %s, %s", v, source)
	}
	if v, source := rowOf(t, r, "model_max_output"); v != "4,096" || source != "server" {
		t.Errorf("model_max_output = %s, %s", v, source)
	}
	_, err := config.Resolve(t.Context(), config.Inputs{
		Flags: config.Flags{Provider: "vllm"}, Registry: registry,
		Probe: func(context.Context, providers.ProbeRequest) (providers.ServerInfo, bool) {
			return providers.ServerInfo{}, false
		},
	})
	if !errors.Is(err, config.ErrNotConfigured) || !strings.Contains(err.Error(), "does it run?") {
		t.Errorf("error = %v", err)
	}
}

func TestServerIsAskedOnlyForWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		flags config.Flags
		want  bool
	}{
		{"registry knows", config.Flags{Provider: "openrouter"}, false},
		{"user says", config.Flags{BaseURL: "http://127.0.0.1:1/v1", Model: "m", ContextWindow: 20000}, false},
		{"nobody knows", config.Flags{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}, true},
		{"it cuts silently", config.Flags{Provider: "ollama", Model: "m", ContextWindow: 20000}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := false
			r, err := config.Resolve(t.Context(), config.Inputs{
				Flags: tt.flags, Env: env{"KEEN_API_KEY": "the-key"}.lookup, Registry: registry,
				Probe: func(ctx context.Context, p providers.ProbeRequest) (providers.ServerInfo, bool) {
					asked = true
					if key, err := p.Credential.Token(ctx, ""); key != "the-key" || err != nil || p.BaseURL == "" || p.Model == "" {
						t.Errorf("asked with key %q, %v, base URL %q, model %q", key, err, p.BaseURL, p.Model)
					}
					return providers.ServerInfo{}, false
				},
			})
			if err != nil || asked != tt.want {
				t.Errorf("asked = %v, %v, want %v; %+v", asked, err, tt.want, r.ContextWindow)
			}
		})
	}
}

func TestResolveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := config.Resolve(ctx, config.Inputs{
		Flags: config.Flags{Provider: "vllm", Model: "m"}, Registry: registry,
		Probe: func(context.Context, providers.ProbeRequest) (providers.ServerInfo, bool) {
			cancel()
			return providers.ServerInfo{}, false
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
}

func TestOutputLimitOfAModelIsRaisedByWhoAsksForThatModel(t *testing.T) {
	t.Parallel()
	key := env{"OPENAI_API_KEY": "k"}
	tests := []struct {
		name      string
		in        inputs
		ask, most int
	}{
		{"nobody asks", inputs{flags: config.Flags{Model: "gpt-4o"}, env: key}, 0, 8192},
		{"general setting", inputs{flags: config.Flags{Model: "gpt-4o"}, env: key, file: `{"max_output_tokens": 16000}`}, 16000, 8192},
		{"flag", inputs{flags: config.Flags{Model: "gpt-4o", MaxOutputTokens: 16000}, env: key}, 16000, 16000},
		{"smaller flag", inputs{flags: config.Flags{Model: "gpt-4o", MaxOutputTokens: 100}, env: key}, 100, 8192},
		{"setting of the model", inputs{flags: config.Flags{Model: "gpt-4o"}, env: key, file: `{"max_output_tokens": 9000, "providers":{"openai":{"models":{"gpt-4o":{"max_output_tokens":16000}}}}}`}, 16000, 16000},
		{"unknown model", inputs{flags: config.Flags{Model: "gpt-99", MaxOutputTokens: 16000}, env: key}, 16000, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.flags.Provider = "openai"
			r := tt.in.must(t)
			if r.MaxOutputTokens.V != tt.ask || r.ModelMaxOutput.V != tt.most {
				t.Errorf("output = %v of %v, want %d of %d", r.MaxOutputTokens, r.ModelMaxOutput, tt.ask, tt.most)
			}
		})
	}
}
