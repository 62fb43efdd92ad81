package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"keen/internal/llm/apierror"
)

// maxErrorBody is how much of the body of an error is looked at, in bytes.
const maxErrorBody = 64 << 10

// responseError is a response that is no answer. It keeps what tells the
// meaning, and not the request, which holds the secret.
type responseError struct {
	status int
	header http.Header
	body   string
}

func (e *responseError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
}

// requestError makes the error of a request that was not answered with
// success. The SDK's own is not enough: it loses status and body when the
// body is none of OpenAI's. Its fields are all in the body, which is read
// anyway. response may be nil.
func requestError(response *http.Response, err error) error {
	if response == nil || response.StatusCode < http.StatusBadRequest {
		return fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	e := &responseError{status: response.StatusCode, header: response.Header}
	if body, readErr := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)); readErr == nil {
		e.body = string(body)
	}
	return e
}

// classifyOpenAIError says what an error from OpenAI's SDK means.
func classifyOpenAIError(provider string, err error) *apierror.Error {
	raw := apierror.Raw{Provider: provider, Err: err}
	var (
		refused  *responseError
		inStream *ssestream.StreamError
	)
	switch {
	case errors.As(err, &refused):
		raw.Status, raw.Body = refused.status, refused.body
		raw.RetryAfter = apierror.RetryAfter(refused.header, time.Now())
	case errors.As(err, &inStream):
		raw.Status, raw.Body = http.StatusOK, string(inStream.Event.Data)
	}
	return classifySDK(err, raw)
}

// headRecorder keeps the first bytes written to it.
type headRecorder struct {
	limit int
	data  []byte
}

// Write implements [io.Writer]; it never fails.
func (h *headRecorder) Write(p []byte) (int, error) {
	room := min(len(p), h.limit-len(h.data))
	h.data = append(h.data, p[:room]...)
	return len(p), nil
}
