package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"keen/internal/llm/apierror"
)

func TestClientsTakeNothingFromTheEnvironment(t *testing.T) {
	const leak = "LEAKED-SECRET"
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET",
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	} {
		t.Setenv(name, leak)
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: "+leak)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/"+leak)
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/"+leak)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, w := range wiresUnderTest {
		t.Run(w.name, func(t *testing.T) {
			var seen atomic.Value
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				dump, _ := httputil.DumpRequest(r, true)
				seen.Store(string(dump))
				w.WriteHeader(http.StatusBadRequest)
			}))
			defer server.Close()
			if sampleOnce(t, clientOf(t, w.name, server.URL, ClientConfig{})) == nil {
				t.Error("a refused request is no error")
			}
			dump, _ := seen.Load().(string)
			if dump == "" {
				t.Fatal("no request came")
			}
			if strings.Contains(dump, leak) {
				t.Errorf("the environment leaks:\n%s", dump)
			}
			if !strings.Contains(dump, "test-key") {
				t.Errorf("the configured credential is missing:\n%s", dump)
			}
		})
	}
}

// sampleOnce sends one request and returns what came of it.
func sampleOnce(t *testing.T, client *Client) error {
	t.Helper()
	conv, err := client.adapter.start(turnRequest{System: "s", History: []Message{user("x")}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := conv.prepare(requestLimits{Budget: 100000, Output: 1000})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.sample(t.Context(), func(delta) {})
	return err
}

func TestClientsLeaveRetriesToTheLoop(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		for _, w := range wiresUnderTest {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(status)
			}))
			client := clientOf(t, w.name, server.URL, ClientConfig{})
			e := client.adapter.classify(sampleOnce(t, client))
			server.Close()
			if n := calls.Load(); n != 1 {
				t.Errorf("%s sent a request %d times on %d", w.name, n, status)
			}
			if !e.Retryable() {
				t.Errorf("%s: %d is %s, which the loop does not retry", w.name, status, e.Kind)
			}
		}
	}
}

func TestNothingIsSentOnToAnotherPlace(t *testing.T) {
	for _, w := range wiresUnderTest {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			var stranger atomic.Int32
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stranger.Add(1) }))
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				http.Redirect(w, r, other.URL+r.URL.Path, status)
			}))
			client := clientOf(t, w.name, server.URL, ClientConfig{})
			e := client.adapter.classify(sampleOnce(t, client))
			server.Close()
			other.Close()
			if e == nil || e.Retryable() || e.Provider != w.name {
				t.Errorf("%s: a redirect with %d is %+v", w.name, status, e)
			}
			if calls.Load() != 1 || stranger.Load() != 0 {
				t.Errorf("%s, %d: %d requests to the server, %d to another", w.name, status, calls.Load(), stranger.Load())
			}
		}
	}
}

func TestRefusedCredentialIsRenewedOnce(t *testing.T) {
	for _, w := range wiresUnderTest {
		if w.name == "bedrock" {
			continue // Its keys are signed with, or sent over TLS.
		}
		t.Run(w.name, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				body, _ := io.ReadAll(r.Body)
				if len(body) == 0 {
					t.Error("the second request has no body")
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer server.Close()
			client := clientOf(t, w.name, server.URL, ClientConfig{})
			if e := client.adapter.classify(sampleOnce(t, client)); e.Kind != apierror.KindAuth {
				t.Errorf("classified as %s", e.Kind)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d requests with a key that cannot be renewed, want 1", n)
			}
		})
	}
}

func TestAnthropicCompatibleServers(t *testing.T) {
	// Old version header, bearer secret, data lines without event lines.
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
			`{"type":"message_stop"}`,
		} {
			_, _ = io.WriteString(w, "data: "+data+"\n\n")
		}
	}))
	defer server.Close()
	client := clientOf(t, "anthropic", server.URL, ClientConfig{Quirks: Quirks{AnthropicVersion: "2023-06-01", BearerAuth: true, NoPromptCache: true}})
	events := runTurn(t, client, nil, user("x"))
	wantDone(t, events)
	if got := answerText(events); got != "hello" {
		t.Errorf("the answer is %q", got)
	}
	if header.Get("Anthropic-Version") != "2023-06-01" || header.Get("Authorization") != "Bearer test-key" || header.Get("X-Api-Key") != "" {
		t.Errorf("headers: %v", header)
	}
}

func TestMissingAWSCredentialsAreNoPassingTrouble(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AWS_CONFIG_FILE", home+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", home+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	client, err := NewBedrockClient(t.Context(), ClientConfig{
		Provider: "bedrock", Model: "m", ContextWindow: 200000, BaseURL: "http://127.0.0.1:1", AWS: AWSConfig{Region: "us-east-1"}, HTTPClient: http.DefaultClient,
	})
	if err != nil {
		t.Fatal(err)
	}
	e := client.adapter.classify(sampleOnce(t, client))
	if e.Kind != apierror.KindAuth || e.Retryable() {
		t.Errorf("classified as %s: %v", e.Kind, e)
	}
}
