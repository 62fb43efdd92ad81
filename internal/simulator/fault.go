package simulator

import (
	"net/http"
	"strconv"
	"time"
)

// FaultKind says how an answer goes wrong.
type FaultKind int

// The kinds of faults.
const (
	// FaultStatus answers with Status, Header and Body; an empty Body means
	// the wire's usual one for the status.
	FaultStatus FaultKind = iota + 1
	// FaultOverflow rejects the request as too large, whatever its size.
	FaultOverflow
	// FaultStallHeaders sends nothing at all until it is released.
	FaultStallHeaders
	// FaultStall stops in the middle of the stream until it is released.
	FaultStall
	// FaultEndEarly ends the response in good order, though the answer is not
	// whole.
	FaultEndEarly
	// FaultDrop closes the connection in the middle of the response.
	FaultDrop
	// FaultReset resets the connection in the middle of the response.
	FaultReset
	// FaultStreamError sends an error inside the stream and ends it: Body, or
	// the wire's usual one.
	FaultStreamError
	// FaultStreamOverflow reports inside the stream that the request is too
	// large, and ends it.
	FaultStreamOverflow
	// FaultNullErrors sends the whole answer with an error of null in each
	// event, as some servers do.
	FaultNullErrors
)

// AfterContent as a place in the stream is after all that the model says and
// before the events that end the answer.
const AfterContent = -1

// Fault makes an answer go wrong. The functions of this file make the usual
// ones.
type Fault struct {
	Kind FaultKind
	// After is the number of events that are sent before a fault inside the
	// stream: 0 is after the response headers, AfterContent before the end.
	After int
	// Status, Header and Body are the response of a FaultStatus; no Status is
	// 500. Body is also
	// the text of a FaultStreamError, byte for byte with its blank line.
	Status int
	Header http.Header
	Body   string
	// Release ends a stall when it is closed; the answer then goes on. A nil
	// channel stalls until the client goes away or the server is closed.
	Release <-chan struct{}
	// Reached is called when a stall begins, with everything before it sent.
	// It may be nil.
	Reached func()
}

// HTTPError answers with a status and the wire's usual body for it.
func HTTPError(status int) *Fault { return &Fault{Kind: FaultStatus, Status: status} }

// RateLimit answers with status 429 and a Retry-After header of whole seconds.
func RateLimit(retryAfter time.Duration) *Fault {
	header := http.Header{"Retry-After": {strconv.Itoa(int(retryAfter.Seconds()))}}
	return &Fault{Kind: FaultStatus, Status: http.StatusTooManyRequests, Header: header}
}

// Response answers with exactly this, which may be anything: a web page with
// status 200, an error of an unusual shape.
func Response(status int, contentType, body string) *Fault {
	return &Fault{Kind: FaultStatus, Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Overflow rejects the request as too large, whatever its size.
func Overflow() *Fault { return &Fault{Kind: FaultOverflow} }

// StallHeaders sends nothing at all; see [Fault] about release and reached.
func StallHeaders(release <-chan struct{}, reached func()) *Fault {
	return &Fault{Kind: FaultStallHeaders, Release: release, Reached: reached}
}

// Stall stops after a number of events; see [Fault] about release and reached.
func Stall(after int, release <-chan struct{}, reached func()) *Fault {
	return &Fault{Kind: FaultStall, After: after, Release: release, Reached: reached}
}

// EndEarly ends the response in good order after a number of events.
func EndEarly(after int) *Fault { return &Fault{Kind: FaultEndEarly, After: after} }

// Drop closes the connection after a number of events.
func Drop(after int) *Fault { return &Fault{Kind: FaultDrop, After: after} }

// Reset resets the connection after a number of events.
func Reset(after int) *Fault { return &Fault{Kind: FaultReset, After: after} }

// StreamError reports an error after a number of events. An empty body means
// the wire's usual one.
func StreamError(after int, body string) *Fault {
	return &Fault{Kind: FaultStreamError, After: after, Body: body}
}

// StreamOverflow reports after a number of events that the request is too
// large.
func StreamOverflow(after int) *Fault { return &Fault{Kind: FaultStreamOverflow, After: after} }

// NullErrors sends the answer with an error of null in each event.
func NullErrors() *Fault { return &Fault{Kind: FaultNullErrors} }

// replaces reports whether nothing of the scripted answer is sent.
func (f *Fault) replaces() bool {
	return f != nil && (f.Kind == FaultStatus || f.Kind == FaultOverflow)
}

// status is the status of a FaultStatus, 500 when none was set.
func (f *Fault) status() int {
	if f.Status == 0 {
		return http.StatusInternalServerError
	}
	return f.Status
}

// Loses reports whether the client does not get a whole answer. It is false
// for nil.
func (f *Fault) Loses() bool {
	switch {
	case f == nil, f.Kind == FaultNullErrors:
		return false
	case f.Kind == FaultStall, f.Kind == FaultStallHeaders:
		return f.Release == nil
	}
	return true
}
