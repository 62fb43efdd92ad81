package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"keen/internal/llm/apierror"
)

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
		raw.Status, raw.Body, raw.Header = refused.status, refused.body, refused.header
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
