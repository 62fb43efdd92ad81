package llm

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"keen/internal/llm/apierror"
)

// credentialTransport puts a fresh secret into each request and, when the
// server refuses it, asks the credential for another one, once.
type credentialTransport struct {
	next       http.RoundTripper
	credential Credential
	// apply puts a secret into the headers of a request.
	apply func(h http.Header, token string)
}

// bearerHeader sends a secret the way OpenAI does.
func bearerHeader(h http.Header, token string) {
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
}

// apiKeyHeader returns an apply function that sends a secret in a header of
// its own, and nothing in Authorization.
func apiKeyHeader(name string) func(http.Header, string) {
	return func(h http.Header, token string) {
		h.Del("Authorization")
		h.Set(name, token)
	}
}

// withCredential returns a client that sends requests with the secret of the
// configured credential, if there is one. It follows no redirect to another
// place.
func withCredential(cfg ClientConfig, apply func(http.Header, string)) *http.Client {
	base, credential := cfg.HTTPClient, cfg.Credential
	if base == nil {
		base = NewHTTPClient()
	}
	client := *base
	client.CheckRedirect = stayAtOrigin(cfg.Provider)
	if credential == nil {
		return &client
	}
	next := base.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = credentialTransport{next: next, credential: credential, apply: apply}
	return &client
}

// maxRedirects is how often one request is sent on, as in net/http.
const maxRedirects = 10

// stayAtOrigin refuses redirects to another scheme, host or port: a request
// carries the secret and the conversation, and both were meant for one server.
func stayAtOrigin(provider string) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		from := via[0].URL
		refusal := &apierror.Error{Kind: apierror.KindOther, Provider: provider}
		switch {
		case r.URL.Scheme != from.Scheme || r.URL.Host != from.Host:
			refusal.Message = fmt.Sprintf("the server sends requests on to %s://%s, where Keen does not follow; if that is the right address, set it as the base URL", r.URL.Scheme, r.URL.Host)
		case len(via) >= maxRedirects:
			refusal.Message = fmt.Sprintf("the server sent the request on %d times; check the base URL", maxRedirects)
		default:
			return nil
		}
		return refusal
	}
}

// RoundTrip implements [http.RoundTripper].
func (t credentialTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	token, err := t.credential.Token(r.Context(), "")
	if err != nil {
		return nil, &credentialError{err}
	}
	resp, err := t.send(r, body, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	renewed, err := t.credential.Token(r.Context(), token)
	if err != nil || renewed == token || renewed == "" {
		// There is no other secret; the server's own words say the most.
		return resp, nil //nolint:nilerr // see above
	}
	_ = resp.Body.Close()
	return t.send(r, body, renewed)
}

func (t credentialTransport) send(r *http.Request, body []byte, token string) (*http.Response, error) {
	clone := r.Clone(r.Context())
	if body != nil {
		clone.Body = io.NopCloser(bytes.NewReader(body))
	}
	t.apply(clone.Header, token)
	return t.next.RoundTrip(clone)
}

// CloseIdleConnections lets http.Client close what the transport keeps open.
func (t credentialTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// readBody reads the body of a request, so that it can be sent twice.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	return body, nil
}

// credentialError says that there is no secret to send a request with.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }
