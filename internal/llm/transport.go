package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// defaultIdleTimeout is how long a request of the agent may be silent, headers
// included, before it is taken for dead and sent again. It is generous: a
// local server may think about a long prompt for minutes.
const defaultIdleTimeout = 15 * time.Minute

// NewHTTPClient returns the client that adapters use when they are given none.
// It has no total timeout, since answers may be long. A request of a context
// made by withIdleTimeout fails as a transient error after that much silence.
func NewHTTPClient() *http.Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   20 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	return &http.Client{Transport: idleTransport{transport}}
}

type idleKey struct{}

// withIdleTimeout bounds the silence of the requests made with the context.
// Compaction requests go without: nothing but the user ends those.
func withIdleTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, idleKey{}, d)
}

// idleTransport cancels requests whose server went silent.
type idleTransport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t idleTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	d, ok := r.Context().Value(idleKey{}).(time.Duration)
	if !ok || d <= 0 {
		return t.next.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	w := &watchdog{idle: d, cancel: cancel}
	w.timer = time.AfterFunc(d, w.bite)
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		w.stop()
		return nil, w.explain(err)
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, w: w}
	return resp, nil
}

// CloseIdleConnections lets http.Client close what the transport keeps open.
func (t idleTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// watchdog cancels a request when it was not fed for a while.
type watchdog struct {
	idle   time.Duration
	timer  *time.Timer
	cancel context.CancelFunc
	bitten atomic.Bool
}

func (w *watchdog) bite() {
	w.bitten.Store(true)
	w.cancel()
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
}

// explain replaces the cancellation that the watchdog caused by a timeout,
// which is a transient error.
func (w *watchdog) explain(err error) error {
	if w.bitten.Load() && err != nil {
		return &idleError{idle: w.idle}
	}
	return err
}

type watchedBody struct {
	io.ReadCloser
	w *watchdog
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.w.timer.Stop() {
		b.w.timer.Reset(b.w.idle)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.w.explain(err)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *watchedBody) Close() error {
	b.w.stop()
	return b.ReadCloser.Close()
}

// idleError says that a server was silent for too long. It is a net.Error that
// timed out.
type idleError struct{ idle time.Duration }

func (e *idleError) Error() string   { return fmt.Sprintf("the server sent nothing for %v", e.idle) }
func (e *idleError) Timeout() bool   { return true }
func (e *idleError) Temporary() bool { return true }
