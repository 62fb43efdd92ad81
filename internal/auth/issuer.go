package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Issuer is where users sign in, with Keen's registration there.
type Issuer struct {
	// Provider is the name under which tokens are stored.
	Provider string
	// URL is the address of the issuer, without a slash at the end.
	URL string
	// ClientID is the public id of the registration.
	ClientID string
	// RedirectPort is the loopback port of the registered callback; 0 takes
	// a free one, for tests.
	RedirectPort int
	// Client does the requests; nil means http.DefaultClient.
	Client *http.Client
}

// CodexIssuer is OpenAI's sign-in for ChatGPT accounts, with the public
// registration of its command-line tools, whose callback has a fixed port.
func CodexIssuer() Issuer {
	return Issuer{
		Provider: "openai-codex", URL: "https://auth.openai.com",
		ClientID: "app_EMoamEEZ73f0CkXaXp7hrann", RedirectPort: 1455,
	}
}

const scopes = "openid profile email offline_access"

func (i Issuer) config(redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: i.ClientID, RedirectURL: redirect, Scopes: strings.Fields(scopes),
		Endpoint: oauth2.Endpoint{
			AuthURL: i.URL + "/oauth/authorize", TokenURL: i.URL + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}

func (i Issuer) client() *http.Client {
	if i.Client != nil {
		return i.Client
	}
	return http.DefaultClient
}

func (i Issuer) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, i.client())
}

// exchange turns an authorization code into tokens.
func (i Issuer) exchange(ctx context.Context, code, verifier, redirect string) (Tokens, error) {
	t, err := i.config(redirect).Exchange(i.context(ctx), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Tokens{}, fmt.Errorf("exchange the code for tokens: %w", plainError(err))
	}
	return tokensFrom(t, Tokens{})
}

// refresh renews tokens.
func (i Issuer) refresh(ctx context.Context, old Tokens) (Tokens, error) {
	if old.Refresh == "" {
		return Tokens{}, fmt.Errorf("the sign-in cannot be renewed: %w", ErrNotSignedIn)
	}
	source := i.config("").TokenSource(i.context(ctx), &oauth2.Token{RefreshToken: old.Refresh})
	t, err := source.Token()
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
			return Tokens{}, fmt.Errorf("the sign-in has ended (%w): %w", plainError(err), ErrNotSignedIn)
		}
		return Tokens{}, fmt.Errorf("renew the sign-in: %w", err)
	}
	return tokensFrom(t, old)
}

// plainError keeps what an issuer said and drops the rest of the response,
// which may hold secrets.
func plainError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return err
	}
	text := refused.ErrorDescription
	if text == "" {
		text = refused.ErrorCode
	}
	if text == "" && refused.Response != nil {
		text = refused.Response.Status
	}
	return errors.New(text)
}

// tokensFrom reads the issuer's answer; what it leaves out stays as it was.
func tokensFrom(t *oauth2.Token, old Tokens) (Tokens, error) {
	fresh := Tokens{Access: t.AccessToken, Refresh: t.RefreshToken, ID: old.ID, AccountID: old.AccountID, Expires: t.Expiry}
	if fresh.Access == "" {
		return Tokens{}, errors.New("the issuer gave no access token")
	}
	if fresh.Refresh == "" {
		fresh.Refresh = old.Refresh
	}
	if id, ok := t.Extra("id_token").(string); ok && id != "" {
		fresh.ID = id
	}
	for _, token := range []string{fresh.ID, fresh.Access} {
		c := readClaims(token)
		if c.Auth.AccountID != "" {
			fresh.AccountID = c.Auth.AccountID
			break
		}
	}
	if fresh.Expires.IsZero() {
		if exp := readClaims(fresh.Access).Expires; exp > 0 {
			fresh.Expires = time.Unix(exp, 0)
		}
	}
	return fresh, nil
}

// claims are the parts of a token that Keen reads. Its signature is the
// issuer's business and the server's: the token came from the issuer itself.
type claims struct {
	Expires int64 `json:"exp"`
	Auth    struct {
		AccountID string `json:"chatgpt_account_id"`
	} `json:"https://api.openai.com/auth"`
}

func readClaims(token string) claims {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return c
	}
	_ = json.Unmarshal(payload, &c) // No claims is an answer too.
	return c
}

// maxAnswer bounds what is read of an issuer's answer, in bytes.
const maxAnswer = 1 << 20

// post sends JSON and reads JSON. It returns the status as well, because the
// device flow speaks through it.
func (i Issuer) post(ctx context.Context, path string, in, out any) (int, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, i.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := i.client().Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, fmt.Errorf("reach %s: %w", i.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return resp.StatusCode, fmt.Errorf("read the answer of %s: %w", i.URL, err)
	}
	return resp.StatusCode, nil
}
