package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"keen/internal/providers"
)

// Value is a setting with where it came from, such as "flag --model".
type Value[T comparable] struct {
	V    T
	From string
}

// The sources that are no flag, variable or field.
const (
	fromDefault  = "default"
	fromRegistry = "registry"
	fromServer   = "server"
)

// first returns the first value that is not zero, or the last one.
func first[T comparable](values ...Value[T]) Value[T] {
	var zero T
	for _, v := range values {
		if v.V != zero {
			return v
		}
	}
	return values[len(values)-1]
}

// Resolved is what counts, each value with its source.
type Resolved struct {
	// Provider is the provider's id, and Preset what it works like.
	Provider Value[string]
	Preset   providers.Provider
	// Model is its name on the wire.
	Model Value[string]
	// BaseURL is where requests go; empty for Bedrock's own host.
	BaseURL Value[string]
	// Key describes the key without showing it.
	Key Value[string]
	// Credential gives the key; nil when there is none. For a provider with
	// [providers.AuthAccount] the caller puts the account in its place.
	Credential providers.Credential
	// Headers are added to each request.
	Headers map[string]string
	// ContextWindow is the window in tokens, at least
	// [providers.MinContextWindow].
	ContextWindow Value[int]
	// MaxOutputTokens is the output to ask for; 0 leaves it to the client.
	MaxOutputTokens Value[int]
	// ModelMaxOutput is the most output of the model; 0 means unknown.
	ModelMaxOutput Value[int]
	// Thinking is the effort in the provider's words; empty leaves it to the
	// provider.
	Thinking Value[string]
	// Efforts are the efforts that the model is known to have.
	Efforts []string
	// ShowThinking is never empty.
	ShowThinking Value[ShowThinking]
	// Quirks are the server's ways, with what the user knows better.
	Quirks providers.Quirks
	// ReplayReasoning repeats [providers.Quirks] with its source.
	ReplayReasoning Value[bool]
	// Region and Profile are for Bedrock; empty leaves them to the AWS
	// configuration.
	Region, Profile Value[string]
	// Permissions are what the configuration allows.
	Permissions Permissions
	// Retry is what the configuration says; fields may be missing.
	Retry Retry
	// Notes are for the user: what was assumed, and what will bite.
	Notes []string
}

// Row is one line of what `keen config` shows.
type Row struct {
	// Name is the setting's name, as in the configuration file where it
	// stands there.
	Name string
	// Value never shows a secret.
	Value string
	// Source is where the value came from.
	Source string
}

// Rows returns all settings for display. Secrets are masked.
func (r Resolved) Rows() []Row {
	rows := []Row{
		{"provider", r.Provider.V, r.Provider.From},
		{"wire", string(r.Preset.Wire), fromRegistry},
		row("model", r.Model, "none"),
		row("base_url", Value[string]{redactURL(r.BaseURL.V), r.BaseURL.From}, "the provider's own"),
		row("api_key", r.Key, "none"),
		{"context_window", number(r.ContextWindow.V, "unknown"), r.ContextWindow.From},
		{"max_output_tokens", number(r.MaxOutputTokens.V, "the client's own"), r.MaxOutputTokens.From},
		{"model_max_output", number(r.ModelMaxOutput.V, "unknown"), r.ModelMaxOutput.From},
		row("thinking", r.Thinking, "the model's own"),
		{"show_thinking", string(r.ShowThinking.V), r.ShowThinking.From},
	}
	if r.Preset.Wire == providers.WireChat {
		rows = append(rows, Row{"replay_reasoning", fmt.Sprint(r.ReplayReasoning.V), r.ReplayReasoning.From})
	}
	if r.Preset.Wire == providers.WireBedrock {
		rows = append(rows, row("region", r.Region, "the AWS configuration's"), row("profile", r.Profile, "the AWS configuration's"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		rows = append(rows, Row{"headers." + name, Mask(r.Headers[name]), entryField(r.Provider.V, "headers")})
	}
	rows = append(rows, r.Retry.rows()...)
	return append(rows, r.Permissions.rows()...)
}

func (r Retry) rows() []Row {
	var rows []Row
	if r.MaxRetries != nil {
		rows = append(rows, Row{"retry.max_retries", fmt.Sprint(*r.MaxRetries), "config retry.max_retries"})
	}
	for _, d := range []struct {
		name string
		v    Duration
	}{{"retry.base_delay", r.BaseDelay}, {"retry.max_delay", r.MaxDelay}, {"retry.max_retry_after", r.MaxRetryAfter}} {
		if d.v != 0 {
			rows = append(rows, Row{d.name, d.v.String(), "config " + d.name})
		}
	}
	return rows
}

func (p Permissions) rows() []Row {
	var rows []Row
	if len(p.Allow) > 0 {
		rows = append(rows, Row{"permissions.allow", strings.Join(p.Allow, ", "), "config permissions.allow"})
	}
	if len(p.AllowPatterns) > 0 {
		rows = append(rows, Row{"permissions.allow_patterns", strings.Join(p.AllowPatterns, ", "), "config permissions.allow_patterns"})
	}
	return rows
}

// row shows a value, or what its absence means.
func row(name string, v Value[string], absent string) Row {
	if v.V == "" {
		v.V = absent
	}
	return Row{name, v.V, v.From}
}

func number(n int, absent string) string {
	if n == 0 {
		return absent
	}
	return thousands(n)
}

// Mask shows enough of a secret to tell it from others. Of a short one it
// shows nothing, because the rest could be guessed.
func Mask(secret string) string {
	const head, tail, shortest = 3, 4, 16
	switch r := []rune(secret); {
	case len(r) == 0:
		return ""
	case len(r) < shortest:
		return "…"
	default:
		return string(r[:head]) + "…" + string(r[len(r)-tail:])
	}
}

// entryField names a field of a provider in the file as a source.
func entryField(id, field string) string { return "config providers." + id + "." + field }
