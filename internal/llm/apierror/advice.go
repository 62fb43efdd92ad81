package apierror

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// minOutputRoom is the smallest output, in tokens, that lowering the output
// limit is worth it for.
const minOutputRoom = 256

// OutputAtFault reports whether a smaller output limit cures an overflow, and
// which: the input is stated and leaves at least an eighth of the window.
//
// Less room than that is not useful, however many tokens it is: the
// conversation is then past the point where compaction is due anyway, and the
// next step would overflow again. A fixed number of tokens would be wrong both
// ways, as 20,000 of 200,000 are little and 1,000 of 4,096 are plenty.
func (e *Error) OutputAtFault() (newOutput int, ok bool) {
	if e.Kind != KindContextOverflow || e.Input <= 0 || e.Limit <= 0 {
		return 0, false
	}
	room := e.Limit - e.Input
	if room < max(e.Limit/8, minOutputRoom) {
		return 0, false
	}
	// The counts are the provider's own, but some call them estimates.
	return room - max(room/64, 8), true
}

// Retryable reports whether the same request may succeed after a wait of
// seconds or minutes.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case KindTransient:
		return true
	case KindRateLimit:
		return !e.Period.long()
	case KindRateLimitTokens:
		return !e.Period.long() && !e.overRate()
	}
	return false
}

// overRate reports whether one request alone is over a limit on tokens in a
// span of time, so that no wait helps.
func (e *Error) overRate() bool {
	return e.Kind == KindRateLimitTokens && e.Limit > 0 && e.Used > e.Limit
}

// Advice says in one or two sentences what the user can do.
func (e *Error) Advice() string {
	switch e.Kind {
	case KindAuth:
		return e.authAdvice()
	case KindQuota:
		return e.quotaAdvice()
	case KindRateLimit, KindRateLimitTokens:
		return e.rateAdvice()
	case KindMaxOutput:
		if e.Limit > 0 {
			return fmt.Sprintf("The model does not give that much output. Use --max-output-tokens %d.", e.Limit)
		}
		return "The output limit does not suit the model or its thinking budget. Set another one with --max-output-tokens."
	case KindPayloadTooLarge:
		return "The message is too large in bytes. Send a smaller one, for instance by saving the text to a file and naming it, or use /compact."
	case KindContextOverflow:
		return "Use /compact, paste less, or choose a model with a larger window."
	case KindTransient:
		return e.transientAdvice()
	case KindCancelled:
		return "Send the message again to go on."
	}
	return e.otherAdvice()
}

func (e *Error) authAdvice() string {
	missing := strings.Contains(strings.ToLower(e.Message), "missing") || strings.Contains(strings.ToLower(e.Message), "no api key")
	switch {
	case missing:
		return fmt.Sprintf("No credential reached %s. Set its API key with keen config or in the environment, or sign in with keen login.", e.Provider)
	case e.Status == http.StatusForbidden:
		return fmt.Sprintf("%s does not allow this with the credential it was given. Check the rights of the account or key, and that it may use this model.", e.Provider)
	}
	return fmt.Sprintf("%s refused the credential. Check its API key with keen config, or sign in again with keen login.", e.Provider)
}

func (e *Error) rateAdvice() string {
	switch {
	case e.overRate():
		return fmt.Sprintf("One request alone is over the account's limit of %d tokens, so waiting does not help. Lower --context-window to below it, or raise the account's tier.", e.Limit)
	case e.Period.long():
		return fmt.Sprintf("The limit of the %s is reached. %s, raise the account's tier, or choose another model.", e.Period, e.goOn())
	case e.RetryAfter >= longWait:
		return e.goOn() + ", raise the account's tier, or choose another model."
	case e.Kind == KindRateLimitTokens:
		return "Too many tokens in a short time. Wait a little; if it happens often, lower --context-window or raise the account's tier."
	}
	return "Too many requests in a short time. Wait a little, or raise the account's tier."
}

func (e *Error) quotaAdvice() string {
	const used = "The credit, plan or entitlement of this account is used up. "
	if e.Period.long() || e.RetryAfter >= longWait {
		return used + "Top it up, " + strings.ToLower(e.goOn()) + ", or choose another provider or model."
	}
	return used + "Top it up or wait for its reset, or choose another provider or model."
}

// longWait is a wait that is worth naming.
const longWait = 2 * time.Minute

// goOn says when to go on, as far as that is known.
func (e *Error) goOn() string {
	switch {
	case e.RetryAfter >= longWait:
		return "Go on in " + roughly(e.RetryAfter)
	case e.Period == PeriodDay:
		return "Go on tomorrow"
	case e.Period.long():
		return "Go on next " + string(e.Period)
	}
	return "Go on later"
}

// roughly writes a long span for people.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("about %d days", (d+day/2)/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("about %d hours", (d+time.Hour/2)/time.Hour)
	}
	return fmt.Sprintf("about %d minutes", (d+time.Minute/2)/time.Minute)
}

func (e *Error) transientAdvice() string {
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "Nothing answers at that address. Check that the server runs and that the base URL in keen config is right."
	case strings.HasPrefix(e.Message, noSuchHost):
		return "The host name is not known. Check the network connection and the base URL in keen config."
	}
	return "The provider or the network has trouble at the moment. Try again in a little while."
}

func (e *Error) otherAdvice() string {
	var certificate *tls.CertificateVerificationError
	text := normalise(e.Message)
	code := squash(e.Code)
	switch {
	case errors.As(e.Err, &certificate):
		return "The server's certificate is not trusted. Check the base URL in keen config, and whether a proxy is in between."
	case code == "modelnotfound", e.Status == http.StatusNotFound, rules().missingModel.MatchString(text):
		return "Check the model's name and the base URL with keen config, or choose another model with --model."
	case strings.Contains(code, "contentfilter"), strings.Contains(code, "contentpolicy"), strings.Contains(code, "datainspection"),
		rules().contentFilter.MatchString(text):
		return "The provider's content filter refused this conversation. Rephrase the last message, or start a new session with /new."
	case e.Status == 0 && e.Message == "", isBadURL(e.Err):
		return "Check the base URL and the settings of this provider with keen config."
	}
	return "Sending the same again will not help. The provider's message says what it does not accept; keen config shows the settings in use."
}
