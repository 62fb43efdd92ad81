// Package config finds out what a user wants: which provider, which model, with
// which key and which limits.
//
// [File] is the configuration file, which [Load] reads and [Update] changes.
// [Resolve] puts flags, environment, file, registry and server together into
// [Resolved], in which each value says where it came from. [Project] keeps what
// a user allowed for one working directory.
//
// Nothing is ever read from the working directory itself: a repository that
// somebody else wrote must not choose where code is sent or which commands run.
// The package reads no environment of its own, it is given one, so its tests
// run side by side. docs/configuration.md describes all of it to users.
package config

import (
	"encoding/json"
	"fmt"
	"time"
)

// File is the content of the configuration file. Each field may be missing.
type File struct {
	// Provider is the id of the provider to use.
	Provider string `json:"provider,omitempty"`
	// Model is the name of the model to use, as the provider spells it. It
	// counts for Provider only, if that is set.
	Model string `json:"model,omitempty"`
	// Thinking is the thinking effort: a word the model knows such as "high",
	// "off", or a number of tokens.
	Thinking string `json:"thinking,omitempty"`
	// ShowThinking says how thinking is shown; empty means dimmed.
	ShowThinking ShowThinking `json:"show_thinking,omitempty"`
	// MaxOutputTokens is the output to ask for in each request, in tokens,
	// capped by what the model can give; 0 leaves it to the client.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Permissions are what tools may do without asking.
	Permissions Permissions `json:"permissions,omitzero"`
	// Providers adjusts providers and adds new ones, by id.
	Providers map[string]Provider `json:"providers,omitempty"`
	// Retry says how requests are sent again after a passing trouble.
	Retry Retry `json:"retry,omitzero"`
}

// ShowThinking says how the screen shows what a model thinks.
type ShowThinking string

// The ways to show thinking.
const (
	ThinkingShown  ShowThinking = "shown"
	ThinkingDimmed ShowThinking = "dimmed"
	ThinkingHidden ShowThinking = "hidden"
)

// Permissions are what tools may do without asking.
type Permissions struct {
	// Allow are names of tools that may do whatever is not denied, also what
	// is dangerous or outside the working directory.
	Allow []string `json:"allow,omitempty"`
	// AllowPatterns are commands, such as "go test *", and names of tools,
	// which may do what is neither dangerous nor outside the working
	// directory.
	AllowPatterns []string `json:"allow_patterns,omitempty"`
}

// Provider is what the user says about one provider. At most one of APIKey,
// APIKeyEnv and APIKeyHelper may be set.
type Provider struct {
	// Type is the id of the known provider that this one works like. It is
	// needed for ids that are not in the table; without it they work like
	// openai-compatible.
	Type string `json:"type,omitempty"`
	// BaseURL is where requests go.
	BaseURL string `json:"base_url,omitempty"`
	// Model is the model to use with this provider when none is named.
	Model string `json:"model,omitempty"`
	// APIKey is the key itself.
	APIKey string `json:"api_key,omitempty"`
	// APIKeyEnv is the environment variable that holds the key.
	APIKeyEnv string `json:"api_key_env,omitempty"`
	// APIKeyHelper is a shell command that prints the key. It may take 30
	// seconds, and runs again when a server refuses the key.
	APIKeyHelper string `json:"api_key_helper,omitempty"`
	// Headers are added to each request.
	Headers map[string]string `json:"headers,omitempty"`
	// NoStreamOptions leaves out the request for a usage report (Chat
	// Completions only).
	NoStreamOptions *bool `json:"no_stream_options,omitempty"`
	// MaxCompletionTokens sends the output limit under its newer name (Chat
	// Completions only).
	MaxCompletionTokens *bool `json:"max_completion_tokens,omitempty"`
	// Region is the AWS region (Bedrock only).
	Region string `json:"region,omitempty"`
	// Profile is a profile of the AWS configuration (Bedrock only).
	Profile string `json:"profile,omitempty"`
	// Models says what the user knows about models, by name.
	Models map[string]Model `json:"models,omitempty"`
}

// Model is what the user says about one model of a provider.
type Model struct {
	// ContextWindow is the model's window in tokens, at least 16,384.
	ContextWindow int `json:"context_window,omitempty"`
	// MaxOutputTokens is the output to ask of this model, in tokens.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Thinking is the thinking effort for this model.
	Thinking string `json:"thinking,omitempty"`
	// ReplayReasoning sends reasoning back within a turn (Chat Completions
	// only).
	ReplayReasoning *bool `json:"replay_reasoning,omitempty"`
}

// Retry says how requests are sent again. What is missing keeps its default.
type Retry struct {
	// MaxRetries is how often one request is sent again; 0 means never.
	MaxRetries *int `json:"max_retries,omitempty"`
	// BaseDelay is the wait before the first retry, which doubles each time.
	BaseDelay Duration `json:"base_delay,omitzero"`
	// MaxDelay is the longest wait.
	MaxDelay Duration `json:"max_delay,omitzero"`
	// MaxRetryAfter is the longest wait that a server may ask for.
	MaxRetryAfter Duration `json:"max_retry_after,omitzero"`
}

// Duration is a time span, written like "30s" or "2m".
type Duration time.Duration

// MarshalJSON implements [json.Marshaler].
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("must be a time span such as %q", "30s")
	}
	parsed, err := time.ParseDuration(s)
	if err != nil || parsed < 0 {
		return fmt.Errorf("must be a time span such as %q, not %q", "30s", s)
	}
	*d = Duration(parsed)
	return nil
}

// String writes the time span as it stands in the file.
func (d Duration) String() string { return time.Duration(d).String() }
