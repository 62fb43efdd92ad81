package llm

import (
	"bufio"
	"io"
	"mime"
	"net/http"
	"strings"

	"keen/internal/llm/apierror"
)

// streamingClient returns the client that an SDK sends its requests with: each
// gets the credential's secret, and a success that is no stream is an error.
func streamingClient(cfg ClientConfig, apply func(http.Header, string)) *http.Client {
	client := *withCredential(cfg, apply)
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = streamGuard{next: next, provider: cfg.Provider}
	return &client
}

// streamGuard reports answers that claim success and are no stream: an error in
// disguise, or the web page of an address that is not that of an API. SDKs take
// them for a stream without events, which looks like a broken connection and
// would be asked for again and again.
type streamGuard struct {
	next     http.RoundTripper
	provider string
}

// RoundTrip implements [http.RoundTripper].
func (g streamGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		keepRefusal(r.Context(), resp)
		return resp, nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		// Some servers leave out the blank line after the last event, without
		// which SDKs drop it.
		resp.Body = wrappedBody{io.MultiReader(resp.Body, strings.NewReader("\n\n")), resp.Body}
		return resp, nil
	case "text/html", "application/json":
		return g.check(resp, kind)
	}
	return resp, nil
}

// check looks at an answer of a type that no stream has.
func (g streamGuard) check(resp *http.Response, kind string) (*http.Response, error) {
	// Some servers stream under the wrong name.
	body := bufio.NewReader(resp.Body)
	if first, err := body.Peek(1); err != nil || first[0] != '{' && first[0] != '[' && first[0] != '<' {
		resp.Body = wrappedBody{body, resp.Body}
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if kind == "text/html" {
		return nil, &apierror.Error{
			Kind: apierror.KindOther, Provider: g.provider, Status: resp.StatusCode,
			Message: "the server sent a web page instead of an answer; check the base URL",
		}
	}
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if err != nil {
		return nil, err
	}
	e := apierror.Classify(apierror.Raw{Provider: g.provider, Status: resp.StatusCode, Body: string(text)})
	if e.Message == "" {
		e.Message = "the server sent the answer in one piece; Keen needs one that can stream"
	}
	return nil, e
}

// CloseIdleConnections lets http.Client close what the transport keeps open.
func (g streamGuard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// wrappedBody is a body that is read through something else.
type wrappedBody struct {
	io.Reader
	io.Closer
}
