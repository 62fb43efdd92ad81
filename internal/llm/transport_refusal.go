package llm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// maxErrorBody is how much of the body of an error is looked at, in bytes.
const maxErrorBody = 64 << 10

// responseError is a response that is no answer. It keeps what tells the
// meaning, and not the request, which holds the secret.
type responseError struct {
	status int
	header http.Header
	body   string
	// err is what the SDK made of it, may be nil.
	err error
}

func (e *responseError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
}

// Unwrap returns the SDK's own error.
func (e *responseError) Unwrap() error { return e.err }

// refusal is where a response that is no answer is kept while an SDK reads it:
// some SDKs lose its headers, such as Retry-After, or its body.
type refusal struct{ response *responseError }

type refusalKey struct{}

// withRefusal returns a context whose requests leave their refused response in
// the result.
func withRefusal(ctx context.Context) (context.Context, *refusal) {
	r := &refusal{}
	return context.WithValue(ctx, refusalKey{}, r), r
}

// explain adds the response to the error that an SDK made of it. An error
// without such a response stays as it is.
func (r *refusal) explain(err error) error {
	if err == nil || r.response == nil {
		return err
	}
	r.response.err = err
	return r.response
}

// keepRefusal keeps a refused response for the context it belongs to. Its body
// can be read again.
func keepRefusal(ctx context.Context, resp *http.Response) {
	r, ok := ctx.Value(refusalKey{}).(*refusal)
	if !ok || resp.StatusCode < http.StatusBadRequest {
		return
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err == nil {
		r.response = &responseError{status: resp.StatusCode, header: resp.Header, body: string(head)}
	}
	resp.Body = wrappedBody{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
}
