package llm

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm/apierror"
)

// codexAccountStub is a ChatGPT account whose tokens are made by a function.
type codexAccountStub struct {
	chatCredential
	id  string
	err error
}

func (c *codexAccountStub) AccountID(context.Context) (string, error) { return c.id, c.err }

func TestCodexRequestHasItsShape(t *testing.T) {
	s := newChatServer(t, chatStream(responsesText("ok")))
	c := begin(t, wireOf(t, s, "codex", func(c *ClientConfig) { c.BaseURL += "/backend-api/codex" }), turnRequest{
		History: []Message{user("Hi.")}, SessionID: "session-1",
	})
	if _, _, err := chatSample(t, c); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()[0]
	// Neither an output limit nor an empty list of instructions: the backend
	// refuses both.
	wantJSON(t, "request", sentJSON(t, sent), `{
  "model": "model-1", "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "session-1",
  "instructions": "You are a helpful coding agent.", "input": [{"role": "user", "content": "Hi."}]
}`)
	if sent.path != "/backend-api/codex/responses" {
		t.Errorf("path = %s", sent.path)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer key-1", "chatgpt-account-id": "account-1", "originator": "keen", "User-Agent": "keen",
		"OpenAI-Beta": "responses=experimental", "session_id": "session-1", "Accept": "text/event-stream",
	} {
		if diff := cmp.Diff([]string{want}, sent.header.Values(name)); diff != "" {
			t.Errorf("header %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCodexInstructionsAreTheSystemPrompt(t *testing.T) {
	s := newChatServer(t, chatStream(responsesText("ok")))
	if _, _, err := ask(t, wireOf(t, s, "codex")); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, "instructions", sentJSON(t, s.sent()[0])["instructions"], `"Be brief."`)
}

func TestCodexRenewsARefusedTokenOnce(t *testing.T) {
	refuse := chatReply(http.StatusUnauthorized, "application/json", `{"detail":"Could not parse your authentication token. Please try signing in again."}`)
	answer := chatStream(responsesText("ok"))
	renew := func(rejected string) (string, error) {
		if rejected == "" {
			return "old", nil
		}
		return "new", nil
	}
	for name, tt := range map[string]struct {
		account codexAccountStub
		replies []http.HandlerFunc
		sent    []string
		asked   []string
		kind    apierror.Kind
	}{
		"renewed":       {codexAccountStub{chatCredential: chatCredential{token: renew}, id: "a"}, []http.HandlerFunc{refuse, answer}, []string{"Bearer old", "Bearer new"}, []string{"", "old"}, ""},
		"refused again": {codexAccountStub{chatCredential: chatCredential{token: renew}, id: "a"}, []http.HandlerFunc{refuse}, []string{"Bearer old", "Bearer new"}, []string{"", "old"}, apierror.KindAuth},
		"signed out": {
			codexAccountStub{chatCredential: chatCredential{token: func(string) (string, error) { return "", errors.New("run keen login") }}, id: "a"},
			[]http.HandlerFunc{answer},
			nil,
			[]string{""},
			apierror.KindAuth,
		},
		"no account": {codexAccountStub{chatCredential: chatCredential{token: renew}, err: errors.New("run keen login")}, []http.HandlerFunc{answer}, nil, nil, apierror.KindAuth},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, tt.replies...)
			account := tt.account
			c := wireOf(t, s, "codex", func(c *ClientConfig) { c.Credential = &account })
			_, _, err := ask(t, c)
			var kind apierror.Kind
			if e := c.adapter.classify(err); e != nil {
				kind = e.Kind
			}
			if kind != tt.kind {
				t.Errorf("error %v is %q, want %q", err, kind, tt.kind)
			}
			var sent []string
			for _, r := range s.sent() {
				sent = append(sent, r.header.Get("Authorization"))
				if !bytes.Equal(r.body, s.sent()[0].body) || len(r.body) == 0 || r.header.Get("chatgpt-account-id") != "a" {
					t.Errorf("the request changed when it was sent again: %v %s", r.header, r.body)
				}
			}
			if diff := cmp.Diff(tt.sent, sent); diff != "" {
				t.Errorf("secrets sent (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.asked, account.asked); diff != "" {
				t.Errorf("secrets refused (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCodexReadsItsOwnErrors(t *testing.T) {
	for name, b := range map[string]brokenAnswer{
		"detail":          {chatReply(400, "application/json", `{"detail":"The 'gpt-9' model is not supported when using Codex with a ChatGPT account."}`), apierror.KindOther, "not supported"},
		"detail of 500":   {chatReply(500, "application/json", `{"detail":"Internal Server Error"}`), apierror.KindTransient, "500"},
		"detail of 403":   {chatReply(403, "application/json", `{"detail":"Forbidden"}`), apierror.KindAuth, "Forbidden"},
		"detail of 429":   {chatReply(429, "application/json", `{"detail":"Rate limit exceeded"}`), apierror.KindRateLimit, "Rate limit"},
		"detail overflow": {chatReply(400, "application/json", `{"detail":"Your input exceeds the context window of this model."}`), apierror.KindContextOverflow, "context window"},
		"used up":         {chatReply(429, "application/json", `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":602705}}`), apierror.KindQuota, "usage limit"},
		"failed inside":   {chatStream(events(`{"type":"codex.rate_limits"}`, `{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`)), apierror.KindContextOverflow, "context window"},
		"cut":             {chatStream(events(responsesDelta("Hi"), responsesMessage("Hi"))), apierror.KindTransient, "before its end"},
	} {
		t.Run(name, func(t *testing.T) { wantBroken(t, "codex", b) })
	}
}
