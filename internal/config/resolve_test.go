package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/config"
	"keen/internal/providers"
)

func TestFlagsBeatEnvironmentBeatsFileBeatsDefaults(t *testing.T) {
	t.Parallel()
	const file = `{
		"provider": "deepseek", "model": "file-model", "thinking": "low", "show_thinking": "hidden", "max_output_tokens": 3000,
		"providers": {"deepseek": {"base_url": "http://file/v1", "api_key": "file-key-0123456789", "models": {
			"file-model": {"context_window": 30000}, "env-model": {"context_window": 30000}, "flag-model": {"context_window": 30000}
		}}}
	}`
	environment := env{
		"KEEN_PROVIDER": "deepseek", "KEEN_MODEL": "env-model", "KEEN_BASE_URL": "http://env/v1", "KEEN_API_KEY": "env-key-0123456789",
		"KEEN_THINKING": "high", "KEEN_SHOW_THINKING": "shown", "KEEN_CONTEXT_WINDOW": "40000", "KEEN_MAX_OUTPUT_TOKENS": "4000",
		"DEEPSEEK_API_KEY": "shared-key-0123456789", "FLAG_KEY": "flag-key-0123456789",
	}
	flags := config.Flags{
		Provider: "deepseek", Model: "flag-model", BaseURL: "http://flag/v1", APIKeyEnv: "FLAG_KEY",
		Thinking: "max", ContextWindow: 50000, MaxOutputTokens: 5000,
	}
	type value = [2]string
	tests := []struct {
		name string
		in   inputs
		want map[string]value
	}{
		{"flags", inputs{flags: flags, env: environment, file: file}, map[string]value{
			"provider": {"deepseek", "flag --provider"}, "model": {"flag-model", "flag --model"}, "base_url": {"http://flag/v1", "flag --base-url"},
			"api_key":  {"fla…6789", "environment FLAG_KEY (flag --api-key-env)"},
			"thinking": {"max", "flag --thinking"}, "show_thinking": {"shown", "environment KEEN_SHOW_THINKING"},
			"context_window": {"50,000", "flag --context-window"}, "max_output_tokens": {"5,000", "flag --max-output-tokens"},
		}},
		{"environment", inputs{env: environment, file: file}, map[string]value{
			"provider": {"deepseek", "environment KEEN_PROVIDER"}, "model": {"env-model", "environment KEEN_MODEL"},
			"base_url": {"http://env/v1", "environment KEEN_BASE_URL"}, "api_key": {"env…6789", "environment KEEN_API_KEY"},
			"thinking": {"high", "environment KEEN_THINKING"}, "show_thinking": {"shown", "environment KEEN_SHOW_THINKING"},
			"context_window": {"40,000", "environment KEEN_CONTEXT_WINDOW"}, "max_output_tokens": {"4,000", "environment KEEN_MAX_OUTPUT_TOKENS"},
		}},
		{"file, which beats the variables that all programs share", inputs{env: env{"DEEPSEEK_API_KEY": "shared-key-0123456789"}, file: file}, map[string]value{
			"provider": {"deepseek", "config provider"}, "model": {"file-model", "config model"},
			"base_url": {"http://file/v1", "config providers.deepseek.base_url"}, "api_key": {"fil…6789", "config providers.deepseek.api_key"},
			"thinking": {"low", "config thinking"}, "show_thinking": {"hidden", "config show_thinking"},
			"context_window":    {"30,000", "config providers.deepseek.models.file-model.context_window"},
			"max_output_tokens": {"3,000", "config max_output_tokens"},
		}},
		{"shared variables and the registry", inputs{env: env{"DEEPSEEK_API_KEY": "shared-key-0123456789"}}, map[string]value{
			"provider": {"deepseek", "environment DEEPSEEK_API_KEY"}, "model": {"deepseek-v4-pro", "default"},
			"base_url": {"https://api.deepseek.com/v1", "default"}, "api_key": {"sha…6789", "environment DEEPSEEK_API_KEY"},
			"thinking": {"the model's own", "default"}, "show_thinking": {"dimmed", "default"},
			"context_window": {"1,000,000", "registry"}, "max_output_tokens": {"the client's own", "default"},
			"replay_reasoning": {"true", "registry"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := tt.in.must(t)
			got := make(map[string]value)
			for name := range tt.want {
				v, source := rowOf(t, r, name)
				got[name] = value{v, source}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesOfOneProviderAreNeverCombinedWithAnother(t *testing.T) {
	t.Parallel()
	const file = `{"provider": "openai", "model": "gpt-5", "providers": {"openai": {"api_key": "openai-key-01234"}}}`
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		r := inputs{flags: config.Flags{Provider: "anthropic"}, env: env{"ANTHROPIC_API_KEY": "k"}, file: file}.must(t)
		if r.Model.V != "claude-sonnet-5" {
			t.Errorf("model = %v, want the default of anthropic", r.Model)
		}
	})
	t.Run("key and a base URL alone", func(t *testing.T) {
		t.Parallel()
		r := inputs{flags: config.Flags{BaseURL: "http://stranger/v1", Model: "m"}, env: env{"OPENAI_API_KEY": "k"}, file: file}.must(t)
		if r.Provider.V != providers.OpenAICompatible || r.Credential != nil {
			t.Errorf("provider = %v with key %v, want openai-compatible without one", r.Provider, r.Key)
		}
	})
	t.Run("environment", func(t *testing.T) {
		t.Parallel()
		r := inputs{flags: config.Flags{Provider: "mistral"}, env: env{
			"KEEN_PROVIDER": "groq", "KEEN_MODEL": "groq-model", "KEEN_API_KEY": "groq-key", "KEEN_BASE_URL": "http://groq/v1", "MISTRAL_API_KEY": "mistral-key",
		}}.must(t)
		token, err := r.Credential.Token(t.Context(), "")
		if r.Model.V != "devstral-medium-latest" || r.BaseURL.V != "https://api.mistral.ai/v1" || token != "mistral-key" || err != nil {
			t.Errorf("model %v, base URL %v, key %q, %v", r.Model, r.BaseURL, token, err)
		}
	})
	t.Run("the same provider in two places", func(t *testing.T) {
		t.Parallel()
		r := inputs{flags: config.Flags{Provider: "openai"}, file: file}.must(t)
		if r.Model.V != "gpt-5" {
			t.Errorf("model = %v, want that of the file", r.Model)
		}
	})
}

func TestProviderIsChosenInTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	keys := env{"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k", "GOOGLE_API_KEY": "k"}
	tests := []struct {
		name string
		in   inputs
		want string
	}{
		{"entry of the file before an account", inputs{file: `{"providers":{"groq":{"api_key":"k"},"own":{"base_url":"http://127.0.0.1:1/v1","model":"m"}}}`, accounts: []string{"openai-codex"}, env: keys}, "groq"},
		{"entry of the user's own", inputs{file: `{"providers":{"own":{"base_url":"http://127.0.0.1:1/v1","model":"m"}, "openai": {"model":"x"}}}`, env: keys}, "own"},
		{"account before keys", inputs{accounts: []string{"openai-codex"}, env: keys}, "openai-codex"},
		{"keys in the order of the table", inputs{env: keys}, "openai"},
		{"second name of a key", inputs{env: env{"GROQ_API_KEY": "k", "GOOGLE_API_KEY": "k"}}, "googleai"},
		{"base URL", inputs{env: env{"OPENAI_API_KEY": "k", "KEEN_BASE_URL": "http://127.0.0.1:1/v1", "KEEN_MODEL": "m"}}, "openai-compatible"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if r := tt.in.must(t); r.Provider.V != tt.want {
				t.Errorf("provider = %v, want %s", r.Provider, tt.want)
			}
		})
	}
}

func TestNothingConfiguredSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := inputs{}.resolve(t)
	var missing *config.NotConfiguredError
	if !errors.Is(err, config.ErrNotConfigured) || !errors.As(err, &missing) {
		t.Fatalf("error = %v", err)
	}
	missing.Path = "the/file"
	missing.Local = []providers.LocalServer{{Provider: "ollama", BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"qwen3"}}}
	for _, want := range []string{"ANTHROPIC_API_KEY", "keen login", "--base-url", "the/file", "keen demo", "keen --provider ollama --model qwen3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   inputs
		want string
	}{
		{"key", inputs{flags: config.Flags{Provider: "openai"}}, "OpenAI needs an API key: set OPENAI_API_KEY"},
		{"account", inputs{flags: config.Flags{Provider: "openai-codex"}}, "keen login"},
		{"variable of a flag", inputs{flags: config.Flags{Provider: "openai", APIKeyEnv: "NOPE"}, env: env{"OPENAI_API_KEY": "k"}}, "NOPE is not set"},
		{"variable of the file", inputs{file: `{"provider":"openai","providers":{"openai":{"api_key_env":"NOPE"}}}`}, "config providers.openai.api_key_env: the environment variable NOPE is not set"},
		{"address", inputs{flags: config.Flags{Provider: "azure", Model: "d"}, env: env{"AZURE_OPENAI_API_KEY": "k"}}, "set --base-url, AZURE_OPENAI_ENDPOINT or providers.azure.base_url"},
		{"model", inputs{flags: config.Flags{Provider: "azure"}, env: env{"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/"}}, "the name of your deployment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.in.resolve(t)
			if !errors.Is(err, config.ErrNotConfigured) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestMissingKeyDoesNotHideTheOtherValues(t *testing.T) {
	t.Parallel()
	r, err := inputs{flags: config.Flags{Provider: "openai"}}.resolve(t)
	if !errors.Is(err, config.ErrNotConfigured) {
		t.Fatal(err)
	}
	if v, source := rowOf(t, r, "context_window"); v != "1,050,000" || source != "registry" {
		t.Errorf("context_window = %s, %s", v, source)
	}
	if v, _ := rowOf(t, r, "show_thinking"); v != "dimmed" {
		t.Errorf("show_thinking = %s", v)
	}
}

func TestWrongNamesAndValuesAreErrorsThatHelp(t *testing.T) {
	t.Parallel()
	key := env{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
	tests := []struct {
		name string
		in   inputs
		want string
	}{
		{"misspelt provider", inputs{flags: config.Flags{Provider: "opnai"}}, `flag --provider: there is no provider "opnai"; did you mean openai?`},
		{"other name of a provider", inputs{flags: config.Flags{Provider: "gemini"}}, "did you mean googleai?"},
		{"misspelt entry", inputs{env: key, file: `{"providers":{"antropic":{"api_key":"k"}}}`}, "providers.antropic: there is no such provider; did you mean anthropic?"},
		{"misspelt type", inputs{env: key, file: `{"providers":{"x":{"type":"openai-compat","base_url":"http://h/v1"}}}`}, "did you mean openai-compatible?"},
		{"base URL without a scheme", inputs{flags: config.Flags{BaseURL: "localhost:8080", Model: "m"}}, "flag --base-url: the base URL"},
		{"window in the environment", inputs{flags: config.Flags{Provider: "openai"}, env: env{"OPENAI_API_KEY": "k", "KEEN_CONTEXT_WINDOW": "128k"}}, `KEEN_CONTEXT_WINDOW: "128k" is no number`},
		{"negative output", inputs{flags: config.Flags{Provider: "openai", MaxOutputTokens: -1}, env: key}, "--max-output-tokens"},
		{"show thinking in the environment", inputs{flags: config.Flags{Provider: "openai"}, env: env{"OPENAI_API_KEY": "k", "KEEN_SHOW_THINKING": "yes"}}, "KEEN_SHOW_THINKING"},
		{"effort of the flag", inputs{flags: config.Flags{Provider: "openai", Model: "gpt-5.5", Thinking: "huge"}, env: key}, "it knows low, medium, high, xhigh"},
		{"switching off what cannot be", inputs{flags: config.Flags{Provider: "openai", Model: "gpt-5.5", Thinking: "off"}, env: key}, "it knows low, medium"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.in.resolve(t)
			if err == nil || errors.Is(err, config.ErrNotConfigured) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestProvidersOfTheUsersOwnHaveTheWaysOfTheirType(t *testing.T) {
	t.Parallel()
	r := inputs{
		flags: config.Flags{Provider: "proxy"},
		env:   env{"MOONSHOT_API_KEY": "not for strangers"},
		file: `{"providers":{"proxy":{"type":"moonshot","base_url":"http://127.0.0.1:9/v1/","model":"m","no_stream_options":true,
			"headers":{"X-Team":"secret-team-token"},"models":{"m":{"replay_reasoning":false}}}}}`,
	}.must(t)
	want := providers.Quirks{NoStreamOptions: true}
	if r.Preset.Wire != providers.WireChat || r.Credential != nil || r.BaseURL.V != "http://127.0.0.1:9/v1" || r.Quirks != want {
		t.Errorf("wire %s, key %v, base URL %v, quirks %+v", r.Preset.Wire, r.Key, r.BaseURL, r.Quirks)
	}
	if diff := cmp.Diff(map[string]string{"X-Team": "secret-team-token"}, r.Headers); diff != "" {
		t.Error(diff)
	}
	if v, source := rowOf(t, r, "replay_reasoning"); v != "false" || source != "config providers.proxy.models.m.replay_reasoning" {
		t.Errorf("replay_reasoning = %s, %s", v, source)
	}
	if r := (inputs{flags: config.Flags{Provider: "own", Model: "m"}, file: `{"providers":{"own":{"base_url":"http://127.0.0.1:9/v1"}}}`}).must(t); r.Preset.Wire != providers.WireChat {
		t.Errorf("wire = %s", r.Preset.Wire)
	}
}

func TestRowsShowNoSecret(t *testing.T) {
	t.Parallel()
	const secret, header = "sk-0123456789abcdefghij", "Bearer 0123456789abcdef"
	r := inputs{file: `{"provider":"openai","retry":{"max_retries":0,"base_delay":"2s"},"permissions":{"allow":["bash"],"allow_patterns":["make *"]},
		"providers":{"openai":{"api_key":"` + secret + `","base_url":"https://me:hunter2@gateway.example/v1","headers":{"X-Auth":"` + header + `"}}}}`}.must(t)
	for _, row := range r.Rows() {
		for _, s := range []string{secret, header, "hunter2", "0123456789"} {
			if strings.Contains(row.Value, s) || strings.Contains(row.Source, s) {
				t.Errorf("%s shows a secret: %s", row.Name, row.Value)
			}
		}
	}
	for name, want := range map[string]string{
		"api_key": "sk-…ghij", "retry.max_retries": "0", "retry.base_delay": "2s", "permissions.allow": "bash", "permissions.allow_patterns": "make *",
	} {
		if got, _ := rowOf(t, r, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	for in, want := range map[string]string{"": "", "short-secret": "…", "exactly16letters": "exa…ters"} {
		if got := config.Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHelperCountsUnlessAFlagOrVariableNamesAKey(t *testing.T) {
	t.Parallel()
	const file = `{"provider":"openai","providers":{"openai":{"api_key_helper":"echo from-helper"}}}`
	tests := []struct {
		name  string
		flags config.Flags
		env   env
		want  string
	}{
		{"alone", config.Flags{}, nil, "from-helper"},
		{"shared variable", config.Flags{}, env{"OPENAI_API_KEY": "shared"}, "from-helper"},
		{"own variable", config.Flags{}, env{"KEEN_API_KEY": "own"}, "own"},
		{"flag", config.Flags{APIKeyEnv: "MINE"}, env{"MINE": "mine"}, "mine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := inputs{flags: tt.flags, env: tt.env, file: file}.must(t)
			got, err := r.Credential.Token(t.Context(), "")
			if got != tt.want || err != nil {
				t.Errorf("key = %q, %v; want %q", got, err, tt.want)
			}
			if v, _ := rowOf(t, r, "api_key"); strings.Contains(v, "from-helper") {
				t.Errorf("api_key shows %s", v)
			}
		})
	}
}

func TestBedrockTakesRegionProfileAndRegionalModel(t *testing.T) {
	t.Parallel()
	r := inputs{flags: config.Flags{Provider: "bedrock"}, env: env{"AWS_REGION": "eu-west-1", "AWS_PROFILE": "shared"}, file: `{"providers":{"bedrock":{"profile":"mine"}}}`}.must(t)
	if r.Region.V != "eu-west-1" || r.Profile.V != "mine" || r.Model.V != "eu.anthropic.claude-sonnet-5" || r.ContextWindow.From != "registry" {
		t.Errorf("region %v, profile %v, model %v, window %v", r.Region, r.Profile, r.Model, r.ContextWindow)
	}
	if r.Credential != nil {
		t.Error("there is a key where requests are to be signed")
	}
	if v, source := rowOf(t, r, "profile"); v != "mine" || source != "config providers.bedrock.profile" {
		t.Errorf("profile = %s, %s", v, source)
	}
	r = inputs{env: env{"AWS_BEARER_TOKEN_BEDROCK": "token"}}.must(t)
	if r.Provider.V != "bedrock" || r.Credential == nil {
		t.Errorf("provider %v, key %v", r.Provider, r.Key)
	}
}

func TestKeySentInTheClearIsNoted(t *testing.T) {
	t.Parallel()
	in := inputs{flags: config.Flags{BaseURL: "http://192.0.2.1/v1", Model: "m", ContextWindow: 32768}, env: env{"KEEN_API_KEY": "k"}}
	if r := in.must(t); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "without encryption") {
		t.Errorf("notes = %q", r.Notes)
	}
	in.flags.BaseURL = "http://127.0.0.1:1/v1"
	if r := in.must(t); len(r.Notes) != 0 {
		t.Errorf("notes about loopback = %q", r.Notes)
	}
}

func TestEffortOfTheGeneralSettingIsLeftOutWhereItIsNotKnown(t *testing.T) {
	t.Parallel()
	key := env{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}
	tests := []struct {
		name            string
		provider, model string
		general         string
		want            string
		notes           int
	}{
		{"known", "openai", "gpt-5.5", "xhigh", "xhigh", 0},
		{"other spelling", "openai", "gpt-5.5", "High", "high", 0},
		{"unknown", "openai", "gpt-5.5", "max", "", 1},
		{"model that does not think", "openai", "gpt-4o", "high", "", 1},
		{"off is none", "openai", "gpt-5.6-sol", "off", "none", 0},
		{"off with a budget", "anthropic", "claude-sonnet-5", "off", "off", 0},
		{"number with a budget", "anthropic", "claude-sonnet-4-5", "8000", "8000", 0},
		{"number without one", "openai", "gpt-5.5", "8000", "", 1},
		{"model nobody knows", "openai", "gpt-99", "ultra", "ultra", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := inputs{flags: config.Flags{Provider: tt.provider, Model: tt.model, ContextWindow: 100000}, env: key, file: `{"thinking":"` + tt.general + `"}`}
			r := in.must(t)
			if r.Thinking.V != tt.want || len(r.Notes) != tt.notes {
				t.Errorf("thinking = %v with notes %q, want %q and %d", r.Thinking, r.Notes, tt.want, tt.notes)
			}
		})
	}
}
