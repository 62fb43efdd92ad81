package llm

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3/option"
)

// codexBaseURL is where the Codex backend of ChatGPT listens.
const codexBaseURL = "https://chatgpt.com/backend-api/codex"

// AccountCredential is a credential that belongs to a ChatGPT account.
type AccountCredential interface {
	Credential
	// AccountID returns the id of the account, for the header that the Codex
	// backend demands.
	AccountID(ctx context.Context) (string, error)
}

// NewOpenAICodexClient returns a client of the Codex backend, which answers
// users who signed in with ChatGPT. It is the Responses wire with its own
// headers, separate instructions and no output limit: the backend sets that.
func NewOpenAICodexClient(cfg ClientConfig) (*Client, error) {
	return newResponsesClient(cfg, codexBaseURL, responsesCodex,
		option.WithHeader("OpenAI-Beta", "responses=experimental"),
		option.WithHeader("originator", "keen"),
		option.WithHeader("User-Agent", "keen"),
		option.WithMiddleware(codexAccount(cfg.Credential)),
	)
}

// codexAccount names the account in each request.
func codexAccount(credential Credential) option.Middleware {
	return func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		account, ok := credential.(AccountCredential)
		if !ok {
			return next(r)
		}
		id, err := account.AccountID(r.Context())
		if err != nil {
			return nil, &credentialError{err}
		}
		if id != "" {
			r.Header.Set("chatgpt-account-id", id)
		}
		return next(r)
	}
}
