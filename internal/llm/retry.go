package llm

import (
	"context"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how transient errors are retried. SDK retries are off, so
// this is the only one.
type RetryPolicy struct {
	// MaxRetries is how often one request is sent again.
	MaxRetries int
	// BaseDelay is the wait before the first retry; it doubles each time.
	BaseDelay time.Duration
	// MaxDelay caps the doubled wait.
	MaxDelay time.Duration
	// MaxRetryAfter is the longest wait that a server may ask for; one that
	// asks for more ends the turn.
	MaxRetryAfter time.Duration
}

// DefaultRetryPolicy rides out about eight minutes of trouble: long enough for
// a deployment or a lost network, short enough to be noticed.
var DefaultRetryPolicy = RetryPolicy{
	MaxRetries:    12,
	BaseDelay:     time.Second,
	MaxDelay:      time.Minute,
	MaxRetryAfter: 10 * time.Minute,
}

// delay returns how long to wait before retry number attempt, counted from 1:
// what the server asked for, or exponential backoff with a jitter of a quarter
// either way, so that many clients do not come back together.
func (p RetryPolicy) delay(attempt int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter
	}
	d := p.BaseDelay
	for i := 1; i < attempt && d < p.MaxDelay; i++ {
		d *= 2
	}
	d = min(d, p.MaxDelay)
	if d <= 0 {
		return 0
	}
	return d*3/4 + rand.N(d/2+1)
}

// wait sleeps for d or until ctx ends, whose error it then returns.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
