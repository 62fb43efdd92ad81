package apierror

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// classifyTransport recognises errors of the network by their types. It
// returns false when an answer came and says itself what is wrong.
func classifyTransport(r Raw) (Kind, string, bool) {
	err := r.Err
	var certificate *tls.CertificateVerificationError
	var host *net.DNSError
	switch {
	case err == nil:
		return "", "", false
	case errors.As(err, &certificate), isBadURL(err):
		return KindOther, transportMessage(err), true
	case errors.As(err, &host) && host.IsNotFound:
		return KindTransient, clipMessage(noSuchHost + host.Name), true
	case isNetwork(err):
		return KindTransient, transportMessage(err), true
	case r.Status >= 400:
		return "", "", false
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return KindTransient, "the connection was closed before the answer was complete", true
	case isGarbled(err) && r.Body == "" && r.Message == "":
		return KindTransient, "the answer could not be read: " + transportMessage(err), true
	}
	return "", "", false
}

// noSuchHost begins the message about an unknown host.
const noSuchHost = "no such host: "

// isNetwork reports whether the network is at fault.
func isNetwork(err error) bool {
	var network net.Error
	var stream streamReset
	if errors.As(err, &network) || errors.As(err, &stream) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if slices.ContainsFunc([]error{
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN,
	}, func(target error) bool { return errors.Is(err, target) }) {
		return true
	}
	// Go's HTTP/2 client keeps its other error types to itself. This is the
	// one place where a text is read, and it is Go's own.
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "http2: ") {
			return true
		}
	}
	return false
}

// streamReset has the fields of net/http's error for a reset HTTP/2 stream,
// which converts itself to any struct that has them.
type streamReset struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (s streamReset) Error() string { return fmt.Sprintf("stream %d was reset", s.StreamID) }

// isBadURL reports whether a request could never be sent because its address
// makes no sense.
func isBadURL(err error) bool {
	var u *url.Error
	if !errors.As(err, &u) {
		return false
	}
	address, parseErr := url.Parse(u.URL)
	return parseErr != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https"
}

// transportMessage phrases a network error without the request's URL, which
// may hold a key.
func transportMessage(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return clipMessage(err.Error())
}
