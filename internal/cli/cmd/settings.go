package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/adrg/xdg"
	"github.com/spf13/pflag"

	"keen/internal/auth"
	"keen/internal/config"
	"keen/internal/llm"
	"keen/internal/providers"
)

// modelFlags are the flags that choose a model, the same for all commands.
type modelFlags struct{ config.Flags }

func (m *modelFlags) register(f *pflag.FlagSet) {
	f.StringVar(&m.Provider, "provider", "", "`id` of the provider, such as anthropic, openai, ollama")
	f.StringVar(&m.Model, "model", "", "`name` of the model")
	f.StringVar(&m.BaseURL, "base-url", "", "`address` of the server, such as http://localhost:8080/v1")
	f.StringVar(&m.APIKeyEnv, "api-key-env", "", "environment `variable` that holds the key")
	f.StringVar(&m.Thinking, "thinking", "", "thinking `effort` of the model, such as low, high, or a number of tokens")
	f.IntVar(&m.ContextWindow, "context-window", 0, "context window of the model in `tokens`")
	f.IntVar(&m.MaxOutputTokens, "max-output-tokens", 0, "output to ask for in `tokens`")
}

// settings is what a client is made from, with everything resolved.
type settings struct {
	// wire names the client: chat, responses, codex, anthropic, gemini or
	// bedrock.
	wire   string
	client llm.ClientConfig
	// notes are for the user: what was assumed.
	notes []string
	// permissions are what the configuration allows.
	permissions config.Permissions
}

// name is the model as it is called in messages and sessions.
func (s settings) name() string { return s.client.Provider + "/" + s.client.Model }

// probeLimit is how long servers are asked about themselves at the start.
const probeLimit = 3 * time.Second

// resolve decides what counts: flags, environment, file, registry, server.
func (a *App) resolve(ctx context.Context, flags config.Flags) (config.Resolved, config.Loaded, error) {
	loaded, err := config.Load(config.DefaultPath())
	if err != nil {
		return config.Resolved{}, loaded, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	r, err := config.Resolve(ctx, config.Inputs{
		Flags: flags, Env: a.Getenv, File: loaded.File, Registry: providers.NewRegistry(),
		Accounts: a.accounts(), Probe: providers.Probe,
	})
	var none *config.NotConfiguredError
	if errors.As(err, &none) {
		none.Path = config.DefaultPath()
		none.Local = providers.DiscoverLocal(ctx, nil, providers.DefaultPorts())
	}
	return r, loaded, err
}

// settings resolves the flags of a command.
func (a *App) settings(ctx context.Context, f modelFlags) (settings, error) {
	r, loaded, err := a.resolve(ctx, f.Flags)
	if err != nil {
		return settings{}, err
	}
	s := a.settingsOf(r)
	s.notes = append(s.notes, loaded.Warnings...)
	return s, nil
}

// settingsOf makes the settings of a client of what was resolved.
func (a *App) settingsOf(r config.Resolved) settings {
	s := settings{wire: string(r.Preset.Wire), notes: r.Notes, permissions: r.Permissions}
	s.client = llm.ClientConfig{
		Provider: r.Provider.V, Model: r.Model.V, BaseURL: r.BaseURL.V, Headers: r.Headers,
		ContextWindow: r.ContextWindow.V, MaxOutputTokens: r.MaxOutputTokens.V, ModelMaxOutput: r.ModelMaxOutput.V,
		Effort: r.Thinking.V, ReplayReasoning: r.ReplayReasoning.V, TruncatesSilently: r.Quirks.TruncatesSilently,
		Quirks: llm.Quirks{
			NoStreamOptions: r.Quirks.NoStreamOptions, MaxCompletionTokens: r.Quirks.MaxCompletionTokens,
			AnthropicVersion: r.Quirks.AnthropicVersion, NoPromptCache: r.Quirks.AnthropicVersion != "",
		},
		AWS:   llm.AWSConfig{Region: r.Region.V, Profile: r.Profile.V},
		Retry: retryPolicy(r.Retry),
	}
	switch {
	case r.Preset.Auth == providers.AuthAccount:
		s.client.Credential = auth.NewAccount(a.authStore(), auth.CodexIssuer())
	case r.Credential != nil:
		s.client.Credential = r.Credential
	}
	return s
}

// retryPolicy puts what the configuration says over the default.
func retryPolicy(r config.Retry) llm.RetryPolicy {
	p := llm.DefaultRetryPolicy
	if r.MaxRetries != nil {
		p.MaxRetries = *r.MaxRetries
	}
	for _, d := range []struct {
		to   *time.Duration
		from config.Duration
	}{{&p.BaseDelay, r.BaseDelay}, {&p.MaxDelay, r.MaxDelay}, {&p.MaxRetryAfter, r.MaxRetryAfter}} {
		if d.from > 0 {
			*d.to = time.Duration(d.from)
		}
	}
	return p
}

// authStore is where the tokens of signed-in users are.
func (a *App) authStore() *auth.Store {
	return auth.NewStore(filepath.Join(xdg.ConfigHome, "keen", "auth.json"))
}

// accounts are the providers that the user is signed in to.
func (a *App) accounts() []string {
	codex := auth.CodexIssuer().Provider
	if _, err := a.authStore().Tokens(codex); err != nil {
		return nil
	}
	return []string{codex}
}

// newClient makes the client of a wire.
func (s settings) newClient(ctx context.Context) (*llm.Client, error) {
	switch s.wire {
	case "chat":
		return llm.NewOpenAIClient(s.client)
	case "responses":
		return llm.NewOpenAIResponsesClient(s.client)
	case "codex":
		return llm.NewOpenAICodexClient(s.client)
	case "anthropic":
		return llm.NewAnthropicClient(s.client)
	case "gemini":
		return llm.NewGenkitClient(ctx, s.client)
	case "bedrock":
		return llm.NewBedrockClient(ctx, s.client)
	}
	return nil, fmt.Errorf("there is no client for the wire %q", s.wire)
}
