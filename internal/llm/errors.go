package llm

import (
	"errors"
	"fmt"
	"time"
)

// ErrContextWindowExceeded is wrapped by every error that says that a request
// does not fit the model's context window, found by Keen or by the provider.
var ErrContextWindowExceeded = errors.New("context window exceeded")

// ErrorKind says what an error of a provider means.
type ErrorKind string

// The kinds of errors.
const (
	// ErrorContextOverflow means that input, or input plus requested output,
	// exceeds the window.
	ErrorContextOverflow ErrorKind = "context_overflow"
	// ErrorRateLimit means too many requests; waiting helps.
	ErrorRateLimit ErrorKind = "rate_limit"
	// ErrorRateLimitTokens means too many tokens in a span of time; waiting
	// helps unless one request alone is over the limit.
	ErrorRateLimitTokens ErrorKind = "rate_limit_tokens"
	// ErrorQuota means that credit, plan or entitlement is used up.
	ErrorQuota ErrorKind = "quota"
	// ErrorAuth means that the credential was refused.
	ErrorAuth ErrorKind = "auth"
	// ErrorMaxOutput means that the requested output limit is not allowed.
	ErrorMaxOutput ErrorKind = "max_output"
	// ErrorPayloadTooLarge means that the body has too many bytes.
	ErrorPayloadTooLarge ErrorKind = "payload_too_large"
	// ErrorTransient means that the same request may succeed later.
	ErrorTransient ErrorKind = "transient"
	// ErrorCancelled means that the caller cancelled.
	ErrorCancelled ErrorKind = "cancelled"
	// ErrorOther means that sending the same again is useless.
	ErrorOther ErrorKind = "other"
)

// APIError is a classified error of a provider. It wraps
// [ErrContextWindowExceeded] when its kind is [ErrorContextOverflow].
type APIError struct {
	Kind ErrorKind
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
	// PerDay says that a rate limit counts by the day, so that a wait of
	// minutes is useless.
	PerDay bool
	// Err is the error of the SDK, may be nil.
	Err error
}

// Error returns the provider's own words with what they are about. It never
// contains a secret or a request body.
func (e *APIError) Error() string {
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
func (e *APIError) Unwrap() []error {
	var wrapped []error
	if e.Err != nil {
		wrapped = append(wrapped, e.Err)
	}
	if e.Kind == ErrorContextOverflow {
		wrapped = append(wrapped, ErrContextWindowExceeded)
	}
	return wrapped
}

// rawError is what an adapter read from its SDK, before anybody decided what
// it means.
type rawError struct {
	Provider string
	Status   int
	// Code, Type, Param and Message are the fields the SDK parsed, any of
	// them may be empty.
	Code, Type, Param, Message string
	// Body is the raw body or stream event, may be empty.
	Body string
	// RetryAfter is taken from the headers.
	RetryAfter time.Duration
	Err        error
}
