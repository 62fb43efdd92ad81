package repl

import (
	"testing"
	"time"

	"keen/internal/llm"
	"keen/internal/llm/apierror"
)

func TestARetrySaysWhatItWaitsForAndHowLong(t *testing.T) {
	limit := &apierror.Error{Kind: apierror.KindRateLimit, RetryAfter: 17200 * time.Millisecond}
	for _, c := range []struct {
		retry llm.RetryInfo
		want  string
	}{
		{llm.RetryInfo{Attempt: 1, Delay: limit.RetryAfter, Err: limit}, "Rate limit: waiting 18s (attempt 1)..."},
		{llm.RetryInfo{Attempt: 2, Delay: 90 * time.Second, Err: limit}, "Rate limit: waiting 1m30s (attempt 2)..."},
		{llm.RetryInfo{Attempt: 3, Delay: 4 * time.Second, Err: &apierror.Error{Kind: apierror.KindTransient}}, "Retrying in 4s (attempt 3)..."},
		{llm.RetryInfo{Attempt: 1, Err: limit}, "Retrying (attempt 1)..."},
	} {
		h := NewStreamHandler()
		h.Handle(llm.StreamEvent{Type: llm.StreamEventTypeRetry, Retry: &c.retry})
		if got := h.Loading(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
