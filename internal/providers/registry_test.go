package providers_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"keen/internal/providers"
)

func TestEveryProviderIsComplete(t *testing.T) {
	t.Parallel()
	registry := providers.NewRegistry()
	wires := []providers.Wire{
		providers.WireChat, providers.WireResponses, providers.WireCodex,
		providers.WireAnthropic, providers.WireGemini, providers.WireBedrock,
	}
	// Their addresses are the users' own, or follow from a region.
	without := []string{"bedrock", "azure", "openai-compatible", "anthropic-compatible"}
	// Their models are in no catalogue; docs/configuration.md says so.
	uncatalogued := []string{"mistral", "together"}
	seen := make(map[string]bool)
	for _, p := range registry.All() {
		if p.ID == "" || p.Name == "" || seen[p.ID] || p.ID != strings.ToLower(p.ID) {
			t.Errorf("provider %q (%s) has no id of its own", p.ID, p.Name)
		}
		seen[p.ID] = true
		if !slices.Contains(wires, p.Wire) {
			t.Errorf("%s: there is no wire %q", p.ID, p.Wire)
		}
		if p.BaseURL == "" {
			if !slices.Contains(without, p.ID) {
				t.Errorf("%s has no base URL", p.ID)
			}
		} else if address, err := p.Address(p.BaseURL); err != nil || address != p.BaseURL {
			t.Errorf("%s: base URL %s becomes %s, %v", p.ID, p.BaseURL, address, err)
		}
		if u, _ := url.Parse(p.BaseURL); p.Auth != providers.AuthOptionalKey && p.BaseURL != "" && u.Scheme != "https" {
			t.Errorf("%s sends keys without encryption", p.ID)
		}
		if p.Auth == providers.AuthKey && len(p.KeyEnv) == 0 {
			t.Errorf("%s takes its key from no variable", p.ID)
		}
		hosted := p.Auth != providers.AuthOptionalKey && p.ID != providers.Azure
		if hosted != (p.DefaultModel != "") {
			t.Errorf("%s: default model %q", p.ID, p.DefaultModel)
		}
		if !hosted || slices.Contains(uncatalogued, p.ID) {
			continue
		}
		m, ok := registry.Model(p, p.DefaultModel)
		if !ok || m.ContextWindow < providers.MinContextWindow || m.MaxOutputTokens <= 0 {
			t.Errorf("%s: default model %s is %+v, %v", p.ID, p.DefaultModel, m, ok)
		}
	}
	for _, id := range []string{
		"openai", "openai-codex", "anthropic", "googleai", "bedrock", "openai-compatible", "deepseek", "moonshot", "zai", "minimax", "openrouter",
		"groq", "mistral", "xai", "together", "fireworks", "cerebras", "azure", "litellm", "ollama", "lmstudio", "llamacpp", "vllm",
	} {
		if !seen[id] {
			t.Errorf("there is no provider %s", id)
		}
	}
}

func TestOtherNamesLeadToOneProviderAndAreNoIDs(t *testing.T) {
	t.Parallel()
	registry := providers.NewRegistry()
	for name, want := range map[string]string{"gemini": "googleai", "Claude": "anthropic", "kimi": "moonshot", "amazon-bedrock": "bedrock", "codex": "openai-codex", "llama.cpp": "llamacpp"} {
		if p, ok := registry.ByOtherName(name); !ok || p.ID != want {
			t.Errorf("%s is %s, %v; want %s", name, p.ID, ok, want)
		}
		if _, ok := registry.Lookup(name); ok {
			t.Errorf("%s is an id too", name)
		}
	}
	if _, ok := registry.ByOtherName("nobody"); ok {
		t.Error("nobody is a provider")
	}
}

// Field report B10: models are looked up by provider and name.
func TestModelsAreNeverFoundAtAnotherProvider(t *testing.T) {
	t.Parallel()
	registry := providers.NewRegistry()
	model := func(provider, name string) (providers.Model, bool) {
		p, ok := registry.Lookup(provider)
		if !ok {
			t.Fatalf("there is no provider %s", provider)
		}
		return registry.Model(p, name)
	}
	for _, provider := range []string{"openai-compatible", "ollama", "vllm", "litellm", "mistral"} {
		if m, ok := model(provider, "gpt-oss-120b"); ok {
			t.Errorf("%s has %+v", provider, m)
		}
	}
	cerebras, ok := model("cerebras", "gpt-oss-120b")
	if _, other := model("openai", "gpt-oss-120b"); !ok || other {
		t.Errorf("gpt-oss-120b: at cerebras %v, at openai %v", ok, other)
	}
	if cerebras.ContextWindow != 131072 {
		t.Errorf("window = %d", cerebras.ContextWindow)
	}
	api, _ := model("openai", "gpt-5.6-sol")
	codex, ok := model("openai-codex", "gpt-5.6-sol")
	if !ok || codex.ContextWindow != 272_000 || api.ContextWindow <= codex.ContextWindow {
		t.Errorf("windows of one name: %d and %d", api.ContextWindow, codex.ContextWindow)
	}
}

func TestModelsAreFoundUnderNamesWithAndWithoutDateAndRegion(t *testing.T) {
	t.Parallel()
	registry := providers.NewRegistry()
	tests := []struct{ provider, name, like string }{
		{"anthropic", "claude-haiku-4-5", "claude-haiku-4-5-20251001"},
		{"anthropic", "claude-sonnet-5-20260301", "claude-sonnet-5"},
		{"anthropic", "claude-sonnet-5-latest", "claude-sonnet-5"},
		{"openai", "gpt-5-2025-08-07", "gpt-5"},
		{"bedrock", "global.anthropic.claude-haiku-4-5-20251001-v1:0", "us.anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"bedrock", "anthropic.claude-opus-5", "eu.anthropic.claude-opus-5"},
	}
	for _, tt := range tests {
		p, _ := registry.Lookup(tt.provider)
		got, ok := registry.Model(p, tt.name)
		want, there := registry.Model(p, tt.like)
		if !ok || !there || got.ID != tt.name || got.ContextWindow != want.ContextWindow || got.MaxOutputTokens != want.MaxOutputTokens {
			t.Errorf("%s/%s = %+v, %v; want the limits of %+v", tt.provider, tt.name, got, ok, want)
		}
	}
	bedrock, _ := registry.Lookup("bedrock")
	if m, _ := registry.Model(bedrock, "global.anthropic.claude-sonnet-5"); m.MaxOutputTokens != 64000 {
		t.Errorf("of several regions the smallest limit must count, not %d", m.MaxOutputTokens)
	}
	anthropic, _ := registry.Lookup("anthropic")
	for _, name := range []string{"claude", "claude-sonnet", "claude-sonnet-99", ""} {
		if m, ok := registry.Model(anthropic, name); ok {
			t.Errorf("%q is %+v", name, m)
		}
	}
}

func TestModelsHaveEffortsThatCallersMayChange(t *testing.T) {
	t.Parallel()
	registry := providers.NewRegistry()
	p, _ := registry.Lookup("openai")
	m, _ := registry.Model(p, "gpt-5.5")
	want := []string{"low", "medium", "high", "xhigh"}
	if !m.Reasons || !slices.Equal(m.Efforts, want) {
		t.Errorf("efforts = %v, want %v", m.Efforts, want)
	}
	m.Efforts[0] = "changed"
	if again, _ := registry.Model(p, "gpt-5.5"); !slices.Equal(again.Efforts, want) {
		t.Errorf("efforts after a change of a copy = %v", again.Efforts)
	}
}

func TestRegionalModelFollowsTheContinent(t *testing.T) {
	t.Parallel()
	registry := providers.NewRegistry()
	p, _ := registry.Lookup("bedrock")
	for region, want := range map[string]string{"": "us.", "us-east-1": "us.", "eu-central-1": "eu.", "ap-northeast-1": "global."} {
		got := p.RegionalModel(region)
		if got != want+"anthropic.claude-sonnet-5" {
			t.Errorf("RegionalModel(%q) = %s", region, got)
		}
		if _, ok := registry.Model(p, got); !ok {
			t.Errorf("%s is not in the registry", got)
		}
	}
}
