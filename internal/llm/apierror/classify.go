package apierror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Classification reads an error in a fixed order, because the texts of
// different kinds look alike ("tokens exceeded the limit" is said of windows,
// of rates, of credit and of output alike):
//
//  1. what Go's own error types say: cancelled, or the network;
//  2. the provider's codes, wherever in the body they are;
//  3. the status together with the provider's text.
//
// The text of a Go error is never used: SDKs put the status and the request
// there. Where codes, status and text disagree, the more special one wins; an
// overflow that comes as 500, 503 or inside a 200 is an overflow.

// Classify decides what an error of a provider means. It never returns nil,
// and returns an [Error] that r.Err holds already as it is.
func Classify(r Raw) *Error {
	var done *Error
	if errors.As(r.Err, &done) {
		return done
	}
	e := &Error{Provider: r.Provider, Status: r.Status, Err: r.Err}
	if errors.Is(r.Err, context.Canceled) {
		e.Kind, e.Message = KindCancelled, "cancelled"
		return e
	}
	if kind, message, ok := classifyTransport(r); ok {
		e.Kind, e.Message = kind, message
		return e
	}
	ev := gatherEvidence(r)
	e.Kind = ev.kind()
	e.Code = ev.code()
	e.Message = clipMessage(ev.message())
	if e.Message == "" && r.Status >= 400 {
		e.Message = cmp.Or(http.StatusText(r.Status), "the server gave no reason")
	}
	e.takeNumbers(ev)
	switch e.Kind {
	case KindRateLimit, KindRateLimitTokens, KindQuota:
		e.RetryAfter, e.Period = ev.retryAfter(), ev.period()
	case KindTransient:
		e.RetryAfter = ev.retryAfter()
	}
	return e
}

// kind applies the order of the rules.
func (ev *evidence) kind() Kind {
	status := ev.status
	switch {
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired,
		ev.hasCode(KindAuth), ev.matches(rules().auth):
		return KindAuth
	case ev.saysQuota():
		return KindQuota
	case ev.hasCode(KindContextOverflow):
		return KindContextOverflow
	case ev.matches(rules().deadline), status < 500 && ev.saysOverloaded():
		return KindTransient
	case ev.saysRateLimit():
		if ev.saysTokens() {
			return KindRateLimitTokens
		}
		return KindRateLimit
	case ev.matches(rules().permanent):
		return KindOther
	case ev.saysPayloadTooLarge():
		return KindPayloadTooLarge
	case ev.refusesOutput():
		return KindMaxOutput
	case ev.saysOverflow():
		return KindContextOverflow
	case ev.saysTransient():
		return KindTransient
	case status == http.StatusForbidden && !ev.html && !ev.matches(rules().forbidden):
		return KindAuth
	}
	return KindOther
}

func (ev *evidence) saysQuota() bool {
	switch {
	case ev.status >= 500:
		// An outage of a billing service is no unpaid bill.
		return false
	case ev.status == http.StatusPaymentRequired:
		return true
	case ev.waitsForMinute():
		// Whatever else it says about plans and quotas.
		return false
	case ev.hasCode(KindQuota), ev.matches(rules().quota):
		return true
	case !ev.matches(rules().currentQuota):
		return false
	}
	// Providers say "current quota" of a limit by the minute as well, and add
	// when it is over.
	period := ev.period()
	return period.long() || ev.matches(rules().noQuota) || period != PeriodMinute && ev.retryAfter() == 0 && !ev.throttled()
}

// waitsForMinute reports whether the limit counts by the minute and the server
// says when it is over.
func (ev *evidence) waitsForMinute() bool {
	return ev.retryAfter() > 0 && ev.period() == PeriodMinute && !ev.matches(rules().noQuota) &&
		(ev.status == http.StatusTooManyRequests || ev.hasCode(KindRateLimit))
}

// throttled reports whether a code says that requests come too fast, such as
// Throttling.AllocationQuota. Names of a whole class of errors say nothing.
func (ev *evidence) throttled() bool {
	return slices.ContainsFunc(ev.codes, func(code string) bool {
		kind, special := strings.CutPrefix(squash(code), "throttling")
		return special && kind != "" && kind != "exception"
	})
}

func (ev *evidence) saysRateLimit() bool {
	if ev.status == http.StatusTooManyRequests || ev.hasCode(KindRateLimit) || ev.matches(rules().tokenRate) {
		return true
	}
	switch ev.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		return false
	}
	return ev.matches(rules().rate)
}

// saysTokens tells a limit on tokens from one on requests.
func (ev *evidence) saysTokens() bool {
	if ev.matches(rules().tokenRate) || ev.hasRawCode("tokens") {
		return true
	}
	return !ev.matches(rules().requestRate) && !ev.hasRawCode("requests") && ev.matches(rules().anyTokens)
}

func (ev *evidence) saysPayloadTooLarge() bool {
	if ev.hasRawCode("stringabovemaxlength") {
		// One string is too long: of use only when it is content.
		return ev.hasContentParam()
	}
	if ev.saysOverflow() {
		return false
	}
	return ev.status == http.StatusRequestEntityTooLarge || ev.hasCode(KindPayloadTooLarge) || ev.matches(rules().payload)
}

func (ev *evidence) saysOverflow() bool {
	return ev.matches(rules().overflow) || ev.refusesToCut()
}

func (ev *evidence) saysTransient() bool {
	switch ev.status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, statusClientClosed:
		return true
	}
	if ev.status >= 500 {
		return true
	}
	streamed := ev.status < 400
	if streamed || ev.status == http.StatusFailedDependency {
		if ev.hasCode(KindTransient) {
			return true
		}
	}
	return streamed && ev.matches(rules().transient)
}

// statusClientClosed is what proxies, and Google, answer when the upstream
// request was given up.
const statusClientClosed = 499

// isGarbled reports whether an answer could not be read as JSON, which only a
// broken connection or proxy does.
func isGarbled(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax)
}
