package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"keen/internal/llm/apierror"
	"keen/internal/llm/apierror/recorded"
	"keen/internal/simulator"
)

// clientOf makes the client of a wire for a server on loopback.
func clientOf(t *testing.T, wire, url string, cfg ClientConfig) *Client {
	t.Helper()
	cfg.Provider, cfg.Credential, cfg.HTTPClient = wire, testKey("test-key"), http.DefaultClient
	if cfg.Model == "" {
		cfg.Model = "m"
	}
	if cfg.ContextWindow == 0 {
		cfg.ContextWindow = 200000
	}
	cfg.BaseURL = url
	switch wire {
	case "chat":
		return mustClient(t)(NewOpenAIClient(cfg))
	case "responses":
		return mustClient(t)(NewOpenAIResponsesClient(cfg))
	case "codex":
		return mustClient(t)(NewOpenAICodexClient(cfg))
	case "anthropic":
		return mustClient(t)(NewAnthropicClient(cfg))
	case "gemini":
		return mustClient(t)(NewGenkitClient(t.Context(), cfg))
	case "bedrock":
		cfg.Credential, cfg.AWS = nil, AWSConfig{Region: "us-east-1", Credentials: staticAWS{}}
		return mustClient(t)(NewBedrockClient(t.Context(), cfg))
	}
	t.Fatalf("no client for %s", wire)
	return nil
}

func TestReservesOfAllSixClients(t *testing.T) {
	for _, c := range []struct {
		wires                             []string
		window, configured, modelMax, got int
	}{
		{[]string{"anthropic", "bedrock"}, 1000000, 0, 0, 64000},
		{[]string{"anthropic", "bedrock"}, 1000000, 0, 32000, 32000},
		{[]string{"anthropic", "bedrock"}, 200000, 0, 0, 64000},
		{[]string{"anthropic", "bedrock"}, 100000, 0, 0, 33333},
		{[]string{"anthropic", "bedrock"}, 200000, 20000, 0, 20000},
		{[]string{"chat", "responses", "codex", "gemini"}, 1000000, 0, 0, 8192},
		{[]string{"chat", "responses", "codex", "gemini"}, 1000000, 32000, 0, 32000},
		{[]string{"chat", "responses", "codex", "gemini"}, 1000000, 32000, 16000, 16000},
		{[]string{"chat", "responses", "codex", "gemini"}, 64000, 64000, 0, 21333},
		{[]string{"chat", "responses", "codex", "gemini", "anthropic", "bedrock"}, 16384, 0, 0, 5461},
	} {
		for _, wire := range c.wires {
			client := clientOf(t, wire, "http://127.0.0.1:1", ClientConfig{ContextWindow: c.window, MaxOutputTokens: c.configured, ModelMaxOutput: c.modelMax})
			s := client.Sizes()
			if s.Output != c.got {
				t.Errorf("%s, window %d, configured %d, model %d: reserve %d, want %d", wire, c.window, c.configured, c.modelMax, s.Output, c.got)
			}
			if want := effectiveBudget(c.window, c.got); s.Budget != want {
				t.Errorf("%s: budget %d, want %d", wire, s.Budget, want)
			}
		}
	}
}

func TestReserveIsWhatTheRequestAsksFor(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(simulator.Text("Fine."))}, 128000)
		wantDone(t, runTurn(t, client, nil, user(task)))
		want := client.Sizes().Output
		if w.name == "codex" {
			want = 0 // Its backend sets the limit and refuses another one.
		}
		if got := server.Records()[0].Request.MaxOutput; got != want {
			t.Errorf("the request asks for %d, the reserve is %d", got, want)
		}
	})
}

func recordedErrors(t *testing.T) []recorded.Error {
	t.Helper()
	rows, err := recorded.Errors()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// recordedAnswer serves one recorded row of provider errors.
func recordedAnswer(row recorded.Error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch row.Transport {
		case "sse":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, row.Body)
		case "eventstream":
			w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
			var frame bytes.Buffer
			var headers eventstream.Headers
			headers.Set(":message-type", eventstream.StringValue("exception"))
			headers.Set(":exception-type", eventstream.StringValue("validationException"))
			headers.Set(":content-type", eventstream.StringValue("application/json"))
			_ = eventstream.NewEncoder().Encode(&frame, eventstream.Message{Headers: headers, Payload: []byte(row.Body)})
			_, _ = w.Write(frame.Bytes())
		default:
			status := row.Status
			if status == 0 {
				status = http.StatusBadRequest
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, row.Body)
		}
	}
}

func TestRecordedErrorsAreClassifiedOverTheirOwnWire(t *testing.T) {
	// These are ends of an answer, not errors; the loop reads their reason.
	stops := map[string]StopReason{"E092": StopContextWindow, "E126": StopLength, "E128": StopLength}
	rows := 0
	for _, row := range recordedErrors(t) {
		if row.API == "chat" {
			continue // openai_test.go
		}
		rows++
		t.Run(row.ID, func(t *testing.T) {
			server := httptest.NewServer(recordedAnswer(row))
			defer server.Close()
			client := clientOf(t, row.API, server.URL, ClientConfig{})
			conv, err := client.adapter.start(turnRequest{System: "s", History: []Message{user("x")}})
			if err != nil {
				t.Fatal(err)
			}
			p, err := conv.prepare(requestLimits{Budget: 100000, Output: 1000})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := p.sample(t.Context(), func(delta) {})
			if stop, ok := stops[row.ID]; ok {
				if err != nil || answer.Stop != stop {
					t.Errorf("stop %q, error %v, want stop %q", answer.Stop, err, stop)
				}
				return
			}
			e := client.adapter.classify(err)
			if e == nil {
				t.Fatalf("no error for %s", row.Body)
			}
			if string(e.Kind) != row.Kind {
				t.Errorf("%s is %s, want %s (%v)", row.Body, e.Kind, row.Kind, err)
			}
			overflow := row.Kind == string(apierror.KindContextOverflow)
			if errors.Is(e, ErrContextWindowExceeded) != overflow {
				t.Errorf("wraps the sentinel: %v, want %v", !overflow, overflow)
			}
			if overflow && row.Tokens.Limit > 0 && e.Limit != row.Tokens.Limit {
				t.Errorf("limit %d, want %d", e.Limit, row.Tokens.Limit)
			}
			if e.Advice() == "" {
				t.Error("no advice for the user")
			}
		})
	}
	if rows < 20 {
		t.Errorf("only %d rows were found", rows)
	}
}

func TestB28_SummariesHaveRoomBesideThinking(t *testing.T) {
	for _, wire := range []string{"responses", "codex", "anthropic", "gemini", "bedrock", "chat"} {
		for _, effort := range []string{"low", "high", "max", "32000", "off"} {
			var body map[string]json.RawMessage
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewDecoder(r.Body).Decode(&body)
				w.WriteHeader(http.StatusBadRequest)
			}))
			client := clientOf(t, wire, server.URL, ClientConfig{Effort: effort, ContextWindow: 32768})
			conv, err := client.adapter.start(turnRequest{System: "s", History: []Message{user("x")}, OneShot: true})
			if err != nil {
				t.Fatal(err)
			}
			p, err := conv.prepare(requestLimits{Budget: 100000, Output: 8192})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = p.sample(t.Context(), func(delta) {})
			server.Close()
			raw := fmt.Sprintf("%s %s %s", body["thinking"], body["generationConfig"], body["additionalModelRequestFields"])
			var budget struct {
				Thinking struct {
					Budget int `json:"budget_tokens"`
				} `json:"thinking"`
			}
			var config struct {
				Thinking struct {
					Budget int `json:"thinkingBudget"`
				} `json:"thinkingConfig"`
			}
			_ = json.Unmarshal([]byte(`{"thinking":`+orNull(body["thinking"])+`}`), &budget)
			_ = json.Unmarshal(body["generationConfig"], &config)
			if budget.Thinking.Budget >= 8192 || config.Thinking.Budget >= 8192/2 {
				t.Errorf("%s with effort %s: a summary of 8192 tokens thinks for more: %s", wire, effort, raw)
			}
			if len(body) == 0 {
				t.Errorf("%s: nothing was sent", wire)
			}
			if bytes.Contains([]byte(raw), []byte(`"max"`)) || bytes.Contains([]byte(raw), []byte("HIGH")) {
				t.Errorf("%s with effort %s: a summary is thought about as hard as the work: %s", wire, effort, raw)
			}
		}
	}
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}
