// Package providers knows the providers of models: where each listens, which
// wire format it speaks, how it differs from the others, which models it has
// and how large their context windows are.
//
// [Registry] is the table of providers with their models, which come from an
// embedded catalogue. [Probe] asks a server what it really serves, and
// [DiscoverLocal] looks for servers on this machine. [StaticKey] and [Helper]
// are the secrets that requests are sent with.
//
// The package decides nothing: what a user chose, and which of several values
// counts, is the business of package config. It reads no environment and
// starts nothing but a credential helper. Tests use servers on loopback.
package providers

// MinContextWindow is the smallest context window that Keen works in, in
// tokens.
const MinContextWindow = 16384

// Wire names a wire format, and with it the client that speaks it.
type Wire string

// The wire formats.
const (
	WireChat      Wire = "chat"
	WireResponses Wire = "responses"
	WireCodex     Wire = "codex"
	WireAnthropic Wire = "anthropic"
	WireGemini    Wire = "gemini"
	WireBedrock   Wire = "bedrock"
)

// Auth says how a provider knows its users.
type Auth int

// The kinds of authentication.
const (
	// AuthKey is an API key, which must be there.
	AuthKey Auth = iota
	// AuthOptionalKey is an API key that many servers do without.
	AuthOptionalKey
	// AuthAccount is an account that the user signs in to.
	AuthAccount
	// AuthAWS is the chain of AWS credentials, or a key.
	AuthAWS
)

// Provider is somebody who runs models, or a program that does. A Provider is
// a value: changing a copy changes nothing else.
type Provider struct {
	// ID names the provider in flags and configuration.
	ID string
	// Name is for people.
	Name string
	// Wire is the wire format that is spoken with it.
	Wire Wire
	// Auth says how it knows its users.
	Auth Auth
	// BaseURL is its own address, without a slash at the end. It is empty
	// where each user has another one, and for Bedrock, where it follows from
	// the region.
	BaseURL string
	// Path is added to a base URL that has none.
	Path string
	// BaseURLEnv is the environment variable that other programs take its
	// address from; empty when there is none.
	BaseURLEnv string
	// KeyEnv are the environment variables that hold its key; the first that
	// is set counts.
	KeyEnv []string
	// DefaultModel is used when no model is named. It is empty where models
	// are the user's own; then the server is asked.
	DefaultModel string
	// Server says what can be asked about models over HTTP.
	Server ServerKind
	// Quirks are its ways.
	Quirks Quirks
	// catalogues are the lists of the catalogue with its models.
	catalogues []string
	// otherNames are what people may call it.
	otherNames []string
}

// Quirks says how a server differs from what most servers of its wire take.
type Quirks struct {
	// NoStreamOptions says that it refuses the request for a usage report.
	NoStreamOptions bool
	// MaxCompletionTokens says that it wants the output limit under its newer
	// name.
	MaxCompletionTokens bool
	// ReplayReasoning says that its models want their reasoning back within a
	// turn.
	ReplayReasoning bool
	// TruncatesSilently says that it cuts input that does not fit instead of
	// rejecting it.
	TruncatesSilently bool
	// AnthropicVersion is the version of Anthropic's wire that it speaks, when
	// that is not the client's own.
	AnthropicVersion string
	// MaxWindow is the largest window that it serves, in tokens, where that
	// is smaller than what its models can do; 0 means no such limit.
	MaxWindow int
}

// OwnHost reports whether baseURL leads to the provider itself, so that what
// the catalogue says of its models holds there. It does not on a proxy or on
// another server that has a model of the same name.
func (p Provider) OwnHost(baseURL string) bool {
	if p.BaseURL == "" || baseURL == "" {
		return true
	}
	host := hostOf(baseURL)
	return host != "" && (host == hostOf(p.BaseURL) || underParent(host, hostOf(p.BaseURL)))
}
