// Package llm runs turns: it sends a conversation to a model, runs the tools
// the model asks for, and goes on until there is an answer, compacting the
// conversation whenever its context window fills.
//
// [LLMClient] is the interface that front ends use. Its one implementation is
// [Client]: the loop (loop.go) around an adapter (adapter.go), which speaks
// one provider's wire format. Adapters translate and never decide; the loop
// decides and never sees a provider's type. The canonical history that both
// share is a slice of [Message].
//
// StreamChat starts one goroutine, which is the only sender on the returned
// channel and closes it. Test the loop with a fake adapter (loop_test.go) and
// adapters over HTTP against the simulator package.
//
// The package knows nothing of sessions, screens or commands.
package llm

import (
	"context"
	"net/http"

	"keen/internal/tools"
)

// LLMClient runs turns on one model.
//
//nolint:revive // the specification names it so
type LLMClient interface {
	// StreamChat runs one turn: it answers the last user message of
	// messages. System messages in it make up the system prompt. registry
	// holds the tools the model may use; nil offers none.
	//
	// The returned channel is unbuffered. It carries every event of the turn
	// in order, ends with exactly one terminal event, and is then closed by
	// the turn's goroutine. The caller must read until it is closed, also
	// after it cancelled ctx: an interrupted turn still reports what it did.
	//
	// messages is not changed and not kept. An error is returned only for a
	// call that makes no sense, such as a history without a user message.
	StreamChat(ctx context.Context, messages []Message, registry *tools.Registry, opts StreamOptions) (<-chan StreamEvent, error)
}

// StreamOptions adjusts one StreamChat call.
type StreamOptions struct {
	// SessionID names the session for request metadata and prompt caching,
	// where the provider knows such a thing. It may be empty.
	SessionID string
	// OneShot asks for a single answer: one sample, no tools, no
	// continuation of an answer that was cut.
	OneShot bool
	// DisableAutoCompaction switches automatic compaction off; a request
	// that does not fit then ends the turn.
	DisableAutoCompaction bool
	// Companion goes along with the turn; nil for none.
	Companion Companion
}

// ClientConfig is what every provider client is made from.
type ClientConfig struct {
	// Provider is the provider's name in messages to the user.
	Provider string
	// Model is the model's name on the wire.
	Model string
	// BaseURL is where requests go; empty means the provider's own host.
	BaseURL string
	// Credential gives the secret for requests; nil sends none.
	Credential Credential
	// Headers are added to each request.
	Headers map[string]string
	// ContextWindow is the model's window in tokens, at least
	// [MinContextWindow].
	ContextWindow int
	// MaxOutputTokens is the output to ask for, in tokens; 0 leaves it to
	// the client's own policy.
	MaxOutputTokens int
	// ModelMaxOutput is the most output the model can give, in tokens; 0
	// means unknown.
	ModelMaxOutput int
	// Effort is the thinking effort, in the provider's own words; empty
	// leaves it to the provider.
	Effort string
	// ReplayReasoning sends reasoning text back within a turn, for servers
	// that demand it (Chat Completions only).
	ReplayReasoning bool
	// Quirks are the ways of the server.
	Quirks Quirks
	// AWS says whose account is used (Bedrock only).
	AWS AWSConfig
	// TruncatesSilently says that the server is known to cut input that does
	// not fit instead of rejecting it.
	TruncatesSilently bool
	// HTTPClient does the requests; nil means one with Keen's defaults.
	HTTPClient *http.Client
	// Retry says how transient errors are retried; the zero value means
	// [DefaultRetryPolicy].
	Retry RetryPolicy
}

// Quirks says how a server differs from what most servers of its wire take. The
// zero value suits most; OpenAI's own host is known.
type Quirks struct {
	// NoStreamOptions leaves out the request for a usage report, for servers
	// that refuse the field.
	NoStreamOptions bool
	// MaxCompletionTokens sends the output limit under its newer name, which
	// OpenAI's reasoning models demand and many servers do not know.
	MaxCompletionTokens bool
	// PromptCacheKey sends the session as a hint for prompt caching.
	PromptCacheKey bool
	// NoPromptCache leaves out the provider's own controls of prompt caching,
	// for servers that speak its wire but refuse them.
	NoPromptCache bool
	// BearerAuth sends the secret in Authorization where the wire's own way
	// is another header (Anthropic).
	BearerAuth bool
	// AnthropicVersion replaces the version header of Anthropic's wire.
	AnthropicVersion string
}

// Credential gives the secret that a request is sent with.
type Credential interface {
	// Token returns the current secret. rejected is a secret that the
	// server just refused, or empty: a credential that can be renewed
	// returns another one then, any other returns an error.
	Token(ctx context.Context, rejected string) (string, error)
}
