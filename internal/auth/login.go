package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/oauth2"
)

// Login signs a user in with a browser on this machine (authorization code with
// PKCE, RFC 7636, and a callback on loopback, RFC 8252). open is called once
// with the address to visit; it may open a browser or show it. Login returns
// when the user has come back or ctx ends.
func Login(ctx context.Context, issuer Issuer, open func(address string) error) (Tokens, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(issuer.RedirectPort)))
	if err != nil {
		return Tokens{}, fmt.Errorf("listen for the browser to come back: %w; close the program that uses the port, or sign in with: keen login --device", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	// The registration names localhost, not the address.
	redirect := fmt.Sprintf("http://localhost:%d/auth/callback", port)
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	codes := make(chan callback, 1)
	server := &http.Server{Handler: callbackHandler(state, codes), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // It returns when the server is closed.
	}()
	defer func() {
		// The browser gets its last page before the door closes.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = server.Shutdown(closing)
		<-served
	}()
	address := issuer.config(redirect).AuthCodeURL(state,
		oauth2.S256ChallengeOption(verifier),
		oauth2.SetAuthURLParam("id_token_add_organizations", "true"),
		oauth2.SetAuthURLParam("codex_cli_simplified_flow", "true"))
	if err := open(address); err != nil {
		return Tokens{}, fmt.Errorf("show the sign-in page: %w", err)
	}
	select {
	case <-ctx.Done():
		return Tokens{}, ctx.Err()
	case c := <-codes:
		if c.err != nil {
			return Tokens{}, c.err
		}
		return issuer.exchange(ctx, c.code, verifier, redirect)
	}
}

// callback is what the browser brought back.
type callback struct {
	code string
	err  error
}

// callbackHandler takes the first callback with the right state. Others, from
// wherever they come, change nothing.
func callbackHandler(state string, codes chan<- callback) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("state") != state {
			http.Error(w, "This is not the sign-in that Keen waits for.", http.StatusBadRequest)
			return
		}
		c := callback{code: q.Get("code")}
		if c.code == "" {
			c.err = fmt.Errorf("the sign-in was refused: %s %s", q.Get("error"), q.Get("error_description"))
			http.Error(w, "The sign-in was refused. You can close this page.", http.StatusBadRequest)
		} else {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = fmt.Fprintln(w, "You are signed in. You can close this page and go back to Keen.")
		}
		select {
		case codes <- c:
		default: // It came twice.
		}
	})
	return mux
}

// DeviceCode is what a user types on another machine.
type DeviceCode struct {
	// Address is the page to visit there.
	Address string
	// Code is what to type there.
	Code string
}

// deviceAuth is the issuer's answer to a request for a device code.
type deviceAuth struct {
	ID   string `json:"device_auth_id"`
	Code string `json:"user_code"`
	// Interval is in seconds; OpenAI sends it as a string.
	Interval json.Number `json:"interval"`
}

// deviceLimit is how long a user has to type the code.
const deviceLimit = 15 * time.Minute

// LoginDevice signs a user in with a browser on another machine: show is
// called once with the code to type there. It polls until the user has done so,
// the code has ended after fifteen minutes, or ctx ends.
func LoginDevice(ctx context.Context, issuer Issuer, show func(DeviceCode) error) (Tokens, error) {
	ctx, cancel := context.WithTimeout(ctx, deviceLimit)
	defer cancel()
	var d deviceAuth
	status, err := issuer.post(ctx, "/api/accounts/deviceauth/usercode", map[string]string{"client_id": issuer.ClientID}, &d)
	if err != nil {
		return Tokens{}, fmt.Errorf("ask for a device code: %w", err)
	}
	if status != http.StatusOK || d.Code == "" {
		return Tokens{}, fmt.Errorf("ask for a device code: the issuer answered %d; sign in with a browser on this machine instead: keen login", status)
	}
	if err := show(DeviceCode{Address: issuer.URL + "/codex/device", Code: d.Code}); err != nil {
		return Tokens{}, fmt.Errorf("show the device code: %w", err)
	}
	seconds, err := strconv.Atoi(d.Interval.String())
	if err != nil || seconds < 0 {
		seconds = 5
	}
	return issuer.poll(ctx, d, time.Duration(seconds)*time.Second)
}

// poll asks until the user has typed the code.
func (i Issuer) poll(ctx context.Context, d deviceAuth, interval time.Duration) (Tokens, error) {
	for {
		var granted struct {
			Code     string `json:"authorization_code"`
			Verifier string `json:"code_verifier"`
		}
		status, err := i.post(ctx, "/api/accounts/deviceauth/token", map[string]string{"device_auth_id": d.ID, "user_code": d.Code}, &granted)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return Tokens{}, errors.New("the device code has ended before it was typed; run keen login --device again")
		case err != nil:
			return Tokens{}, err
		case status == http.StatusOK:
			return i.exchange(ctx, granted.Code, granted.Verifier, i.URL+"/deviceauth/callback")
		case status != http.StatusForbidden && status != http.StatusNotFound:
			// Those two mean that the user has not typed it yet.
			return Tokens{}, fmt.Errorf("wait for the device code: the issuer answered %d", status)
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}
