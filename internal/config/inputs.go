package config

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"keen/internal/providers"
)

// Flags are what the command line says. Empty strings and zeros mean that a
// flag was not given.
type Flags struct {
	Provider, Model, BaseURL string
	// APIKeyEnv is the environment variable that holds the key.
	APIKeyEnv string
	Thinking  string
	// ContextWindow and MaxOutputTokens are in tokens.
	ContextWindow, MaxOutputTokens int
}

// Inputs are what [Resolve] decides from.
type Inputs struct {
	Flags Flags
	// Env looks up environment variables; unset ones are empty.
	Env func(string) string
	// File is the configuration file.
	File File
	// Registry knows providers and models.
	Registry *providers.Registry
	// Accounts are the ids of the providers that the user is signed in to.
	Accounts []string
	// Probe asks a server, usually [providers.Probe]; nil asks none.
	Probe func(context.Context, providers.ProbeRequest) (providers.ServerInfo, bool)
}

// The environment variables of Keen's own.
const (
	envProvider  = "KEEN_PROVIDER"
	envModel     = "KEEN_MODEL"
	envBaseURL   = "KEEN_BASE_URL"
	envAPIKey    = "KEEN_API_KEY"
	envThinking  = "KEEN_THINKING"
	envWindow    = "KEEN_CONTEXT_WINDOW"
	envMaxOutput = "KEEN_MAX_OUTPUT_TOKENS"
	envShow      = "KEEN_SHOW_THINKING"
)

// ErrNotConfigured means that something is missing without which no model can
// be asked. The error says what, and how to give it.
var ErrNotConfigured = errors.New("not configured")

// NotConfiguredError is an error of [Resolve] when no provider was chosen and
// none offers itself. It matches [ErrNotConfigured].
type NotConfiguredError struct {
	// Path is the configuration file, for the message.
	Path string
	// Local are servers that run on this machine; the caller may look for
	// them with [providers.DiscoverLocal].
	Local []providers.LocalServer
}

// Is reports whether target is [ErrNotConfigured].
func (e *NotConfiguredError) Is(target error) bool { return target == ErrNotConfigured }

// Error says how to choose a provider.
func (e *NotConfiguredError) Error() string {
	var b strings.Builder
	b.WriteString("no provider is configured; choose one:\n")
	for _, s := range e.Local {
		fmt.Fprintf(&b, "  running here: keen --provider %s", s.Provider)
		if len(s.Models) > 0 {
			fmt.Fprintf(&b, " --model %s", s.Models[0])
		}
		fmt.Fprintf(&b, "   (%s)\n", s.BaseURL)
	}
	b.WriteString("  an API key:   export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …)\n")
	b.WriteString("  ChatGPT:      keen login\n")
	b.WriteString("  a server:     keen --base-url http://localhost:8080/v1 --model NAME\n")
	if e.Path != "" {
		fmt.Fprintf(&b, "  for good:     set \"provider\" in %s\n", e.Path)
	}
	b.WriteString("to see Keen work without any of them: keen demo")
	return b.String()
}

// missing makes an error that matches [ErrNotConfigured] and reads as text.
func missing(format string, args ...any) error {
	return &missingError{fmt.Sprintf(format, args...)}
}

type missingError struct{ text string }

func (e *missingError) Error() string        { return e.text }
func (e *missingError) Is(target error) bool { return target == ErrNotConfigured }
