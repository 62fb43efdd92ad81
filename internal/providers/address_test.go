package providers_test

import (
	"strings"
	"testing"

	"keen/internal/providers"
)

func lookup(t *testing.T, id string) providers.Provider {
	t.Helper()
	p, ok := providers.NewRegistry().Lookup(id)
	if !ok {
		t.Fatalf("there is no provider %s", id)
	}
	return p
}

func TestAddressCompletesWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	tests := []struct{ provider, text, want string }{
		{"ollama", "http://10.0.0.1:11434", "http://10.0.0.1:11434/v1"},
		{"ollama", "http://10.0.0.1:11434/", "http://10.0.0.1:11434/v1"},
		{"vllm", " http://h:8000/prefix/v1/ ", "http://h:8000/prefix/v1"},
		{"openai", "https://proxy.example", "https://proxy.example/v1"},
		{"azure", "https://x.openai.azure.com/", "https://x.openai.azure.com/openai/v1"},
		{"openai-compatible", "https://api.example.com", "https://api.example.com"},
		{"anthropic", "https://proxy.example/v1", "https://proxy.example"},
		{"anthropic", "https://proxy.example/anthropic", "https://proxy.example/anthropic"},
	}
	for _, tt := range tests {
		if got, err := lookup(t, tt.provider).Address(tt.text); got != tt.want || err != nil {
			t.Errorf("%s: Address(%q) = %q, %v; want %q", tt.provider, tt.text, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "localhost:8080", "ftp://h/v1", "http://", "http://h/v1?key=1", "http://h/v1#x", "http://u:hunter2@h/v1?x=1", "http://h:x/v1", "\x00"} {
		_, err := lookup(t, "vllm").Address(bad)
		if err == nil {
			t.Errorf("Address(%q) is no error", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestOllamasVariableNamesAnAddressToListenOn(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"0.0.0.0":          "http://127.0.0.1:11434/v1",
		"0.0.0.0:9000":     "http://127.0.0.1:9000/v1",
		":9000":            "http://127.0.0.1:9000/v1",
		"[::]:9000":        "http://127.0.0.1:9000/v1",
		"box":              "http://box:11434/v1",
		"[::1]":            "http://[::1]:11434/v1",
		"https://box/base": "https://box/base",
	} {
		if got, err := lookup(t, "ollama").AddressFromEnv(value); got != want || err != nil {
			t.Errorf("AddressFromEnv(%q) = %q, %v; want %q", value, got, err, want)
		}
	}
	if _, err := lookup(t, "openai").AddressFromEnv("box:9000"); err == nil {
		t.Error("other providers need a URL")
	}
}

func TestOwnHostIsTheProvidersDomain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider, url string
		want          bool
	}{
		{"openai", "https://api.openai.com/v1", true},
		{"openai", "https://eu.api.openai.com/v1", true},
		{"openai", "https://API.OpenAI.com/other", true},
		{"openai", "", true},
		{"openai", "http://127.0.0.1:8080/v1", false},
		{"openai", "https://api.openai.com.evil.example/v1", false},
		{"openai", "https://evilopenai.com/v1", false},
		{"openrouter", "https://other.ai/v1", false},
		{"azure", "https://x.openai.azure.com/openai/v1", true},
	}
	for _, tt := range tests {
		if got := lookup(t, tt.provider).OwnHost(tt.url); got != tt.want {
			t.Errorf("%s: OwnHost(%q) = %v", tt.provider, tt.url, got)
		}
	}
}

func TestLoopbackIsThisMachineOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://localhost:1/v1": true, "http://127.0.0.1/v1": true, "http://[::1]:8080": true, "http://127.9.9.9": true,
		"http://192.168.0.1/v1": false, "http://localhost.example": false, "": false,
	} {
		if got := providers.Loopback(address); got != want {
			t.Errorf("Loopback(%q) = %v", address, got)
		}
	}
}
