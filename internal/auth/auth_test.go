package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jwt makes an unsigned token with the claims that Keen reads.
func jwt(account string, expires time.Time) string {
	payload, err := json.Marshal(map[string]any{
		"exp": expires.Unix(), "https://api.openai.com/auth": map[string]string{"chatgpt_account_id": account},
	})
	if err != nil {
		panic(err)
	}
	return "h." + base64.RawURLEncoding.EncodeToString(payload) + ".s"
}

// fakeIssuer is OpenAI's sign-in on loopback.
type fakeIssuer struct {
	*httptest.Server
	mu sync.Mutex
	// forms are the requests to the token endpoint.
	forms []url.Values
	// pending is how many polls answer that the code was not typed yet.
	pending int
	refuse  bool
}

func newFakeIssuer(t *testing.T) (*fakeIssuer, Issuer) {
	t.Helper()
	f := &fakeIssuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = r.ParseForm()
		f.forms = append(f.forms, r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		if f.refuse {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"refresh token was revoked"}`)
			return
		}
		n := len(f.forms)
		_, _ = fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh-%d","id_token":%q,"expires_in":3600,"token_type":"bearer"}`, n, n, jwt("account-1", time.Now().Add(time.Hour)))
	})
	mux.HandleFunc("POST /api/accounts/deviceauth/usercode", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"device_auth_id":"d1","user_code":"ABCD-1234","interval":"0"}`)
	})
	mux.HandleFunc("POST /api/accounts/deviceauth/token", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.pending > 0 {
			f.pending--
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"authorization_code":"code-1","code_challenge":"c","code_verifier":"verifier-1"}`)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f, Issuer{Provider: "openai-codex", URL: f.URL, ClientID: "client-1", Client: f.Client()}
}

func (f *fakeIssuer) form(t *testing.T, i int) url.Values {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if i >= len(f.forms) {
		t.Fatalf("only %d token requests came", len(f.forms))
	}
	return f.forms[i]
}

// visit is a browser that signs in and comes back.
func visit(t *testing.T, address string, change func(url.Values)) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("client_id") != "client-1" || q.Get("state") == "" {
		t.Errorf("the sign-in page is asked for with %v", q)
	}
	back := url.Values{"code": {"code-1"}, "state": {q.Get("state")}}
	change(back)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(strings.Replace(q.Get("redirect_uri"), "localhost", "127.0.0.1", 1) + "?" + back.Encode())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestLoginWithABrowser(t *testing.T) {
	f, issuer := newFakeIssuer(t)
	got, err := Login(t.Context(), issuer, func(address string) error {
		if status := visit(t, address, func(v url.Values) { v.Set("state", "forged") }); status != http.StatusBadRequest {
			t.Errorf("a callback with a forged state is answered %d", status)
		}
		if status := visit(t, address, func(url.Values) {}); status != http.StatusOK {
			t.Errorf("the callback is answered %d", status)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Access != "access-1" || got.Refresh != "refresh-1" || got.AccountID != "account-1" || time.Until(got.Expires) < 50*time.Minute {
		t.Errorf("got %+v", got)
	}
	if form := f.form(t, 0); form.Get("code") != "code-1" || len(form.Get("code_verifier")) < 43 {
		t.Errorf("the exchange sends %v", form)
	}
}

func TestLoginThatIsRefusedSaysSo(t *testing.T) {
	_, issuer := newFakeIssuer(t)
	_, err := Login(t.Context(), issuer, func(address string) error {
		visit(t, address, func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") })
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("got %v", err)
	}
}

func TestLoginEndsWithItsContext(t *testing.T) {
	_, issuer := newFakeIssuer(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Login(ctx, issuer, func(string) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLoginFromAnotherMachine(t *testing.T) {
	f, issuer := newFakeIssuer(t)
	f.pending = 2
	var shown DeviceCode
	got, err := LoginDevice(t.Context(), issuer, func(c DeviceCode) error { shown = c; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if shown.Code != "ABCD-1234" || shown.Address != issuer.URL+"/codex/device" || got.Access != "access-1" {
		t.Errorf("shown %+v, got %+v", shown, got)
	}
	if form := f.form(t, 0); form.Get("code_verifier") != "verifier-1" || form.Get("redirect_uri") != issuer.URL+"/deviceauth/callback" {
		t.Errorf("the exchange sends %v", form)
	}
}

func account(t *testing.T, issuer Issuer, tokens Tokens) (*Account, *Store) {
	t.Helper()
	store := NewStore(filepath.Join(t.TempDir(), "keen", "auth.json"))
	if err := store.Put(issuer.Provider, tokens); err != nil {
		t.Fatal(err)
	}
	return NewAccount(store, issuer), store
}

func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	f, issuer := newFakeIssuer(t)
	a, store := account(t, issuer, Tokens{Access: "old", Refresh: "refresh-0", AccountID: "account-0", Expires: time.Now().Add(30 * time.Second)})
	got, err := a.Token(t.Context(), "")
	if err != nil || got != "access-1" {
		t.Fatalf("got %q, %v", got, err)
	}
	if form := f.form(t, 0); form.Get("grant_type") != "refresh_token" || form.Get("refresh_token") != "refresh-0" {
		t.Errorf("the renewal sends %v", form)
	}
	if stored, err := store.Tokens(issuer.Provider); err != nil || stored.Access != "access-1" || stored.Refresh != "refresh-1" {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

func TestRejectedTokenIsRenewedOnceForAll(t *testing.T) {
	f, issuer := newFakeIssuer(t)
	a, _ := account(t, issuer, Tokens{Access: "old", Refresh: "refresh-0", Expires: time.Now().Add(time.Hour)})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := a.Token(t.Context(), "old"); err != nil || got != "access-1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if len(f.forms) != 1 {
		t.Errorf("%d renewals, want 1", len(f.forms))
	}
}

func TestRevokedSignInSaysWhatToDo(t *testing.T) {
	f, issuer := newFakeIssuer(t)
	f.refuse = true
	a, _ := account(t, issuer, Tokens{Access: "old", Refresh: "secret-refresh"})
	_, err := a.Token(t.Context(), "old")
	if !errors.Is(err, ErrNotSignedIn) || !strings.Contains(err.Error(), "revoked") || strings.Contains(err.Error(), "secret-refresh") {
		t.Errorf("got %v", err)
	}
}

func TestStoreIsForTheUserAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keen", "auth.json")
	store := NewStore(path)
	if _, err := store.Tokens("x"); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("got %v", err)
	}
	if err := store.Put("x", Tokens{Access: "a"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %o", info.Mode().Perm())
	}
	if err := store.Delete("x"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Tokens("x"); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("after delete: %v", err)
	}
	if err := os.WriteFile(path, []byte("{oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Tokens("x"); err == nil || !strings.Contains(err.Error(), "delete the file") {
		t.Errorf("a damaged file: %v", err)
	}
}
