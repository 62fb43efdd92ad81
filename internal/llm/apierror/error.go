// Package apierror reads what an error of a provider means. [Classify] takes
// what an adapter got from its SDK and says the kind, the token counts and the
// wait that the provider states; [Error.Advice] says what the user can do.
//
// It reads in this order: Go's own error types (transport.go), the codes and
// texts in the body (evidence.go), by the wordings of patterns.go and
// numbers.go. It decides nothing: whether to retry, to compact or to end the
// turn is the loop's business. Everything is pure. Package recorded holds errors
// that providers really sent; test with those.
package apierror

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrContextWindowExceeded is wrapped by every error that says that a request
// does not fit the model's context window, found by Keen or by the provider.
var ErrContextWindowExceeded = errors.New("context window exceeded")

// Kind says what an error of a provider means.
type Kind string

// The kinds of errors.
const (
	// KindContextOverflow means that input, or input plus requested output,
	// exceeds the window.
	KindContextOverflow Kind = "context_overflow"
	// KindRateLimit means too many requests; waiting helps.
	KindRateLimit Kind = "rate_limit"
	// KindRateLimitTokens means too many tokens in a span of time; waiting
	// helps unless one request alone is over the limit.
	KindRateLimitTokens Kind = "rate_limit_tokens"
	// KindQuota means that credit, plan or entitlement is used up.
	KindQuota Kind = "quota"
	// KindAuth means that the credential was refused.
	KindAuth Kind = "auth"
	// KindMaxOutput means that the requested output limit is not allowed.
	KindMaxOutput Kind = "max_output"
	// KindPayloadTooLarge means that the body has too many bytes.
	KindPayloadTooLarge Kind = "payload_too_large"
	// KindTransient means that the same request may succeed later.
	KindTransient Kind = "transient"
	// KindCancelled means that the caller cancelled.
	KindCancelled Kind = "cancelled"
	// KindOther means that sending the same again is useless.
	KindOther Kind = "other"
)

// Period is a span that limits count by.
type Period string

// The periods.
const (
	PeriodMinute Period = "minute"
	PeriodHour   Period = "hour"
	PeriodDay    Period = "day"
	PeriodWeek   Period = "week"
	PeriodMonth  Period = "month"
)

// long reports whether waiting for the next period is useless in a turn.
func (p Period) long() bool {
	return p == PeriodDay || p == PeriodWeek || p == PeriodMonth
}

// Error is a classified error of a provider. It wraps
// [ErrContextWindowExceeded] when its kind is [KindContextOverflow].
type Error struct {
	Kind Kind
	// Provider is the name from the configuration.
	Provider string
	// Status is the HTTP status, 0 when there was none. An error inside a
	// stream may carry the status of the stream.
	Status int
	// Code is the provider's own code or type, may be empty.
	Code string
	// Message is the provider's own text, innermost first: JSON around it
	// is removed. At most 2,000 bytes.
	Message string
	// Used, Limit, Input and Output are the token counts that the message
	// states, 0 when it does not: Used of Limit, made of Input and Output.
	Used, Limit, Input, Output int
	// RetryAfter is how long the server asked to wait, 0 when it did not.
	RetryAfter time.Duration
	// Period is the span that a rate limit or a quota counts by, empty where
	// the server does not say.
	Period Period
	// Err is the error of the SDK, may be nil.
	Err error
}

// Error returns the provider's own words with what they are about. It never
// contains a secret or a request body.
func (e *Error) Error() string {
	text := e.Message
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if e.Status > 0 {
		return fmt.Sprintf("%s answered %d (%s): %s", e.Provider, e.Status, e.Kind, text)
	}
	return fmt.Sprintf("%s (%s): %s", e.Provider, e.Kind, text)
}

// Unwrap returns what the error wraps.
func (e *Error) Unwrap() []error {
	var wrapped []error
	if e.Err != nil {
		wrapped = append(wrapped, e.Err)
	}
	if e.Kind == KindContextOverflow {
		wrapped = append(wrapped, ErrContextWindowExceeded)
	}
	return wrapped
}

// Raw is what an adapter read from its SDK, before anybody decided what
// it means.
type Raw struct {
	Provider string
	Status   int
	// Code, Type, Param and Message are the fields the SDK parsed, any of
	// them may be empty.
	Code, Type, Param, Message string
	// Body is the raw body or stream event, may be empty.
	Body string
	// Header is that of the answer, nil where there is none.
	Header http.Header
	// Now is when the answer came; the zero time means just now.
	Now time.Time
	Err error
}
