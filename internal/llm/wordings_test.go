package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"keen/internal/llm/apierror"
	"keen/internal/llm/apierror/recorded"
	"keen/internal/simulator"
)

// everyWire names the six clients.
var everyWire = []string{"chat", "responses", "codex", "anthropic", "gemini", "bedrock"}

func wordings(t *testing.T) []recorded.Wording {
	t.Helper()
	all, err := recorded.Wordings()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// envelope is the body that a wire puts an error into.
func envelope(t *testing.T, wire string, w recorded.Wording) string {
	t.Helper()
	if w.Body != "" {
		return w.Body
	}
	fields := map[string]any{"message": w.Message}
	body := map[string]any{"error": fields}
	switch wire {
	case "anthropic":
		fields["type"] = "invalid_request_error"
		if w.Status == http.StatusTooManyRequests {
			fields["type"] = "rate_limit_error"
		}
		body["type"] = "error"
	case "gemini":
		fields["code"], fields["status"] = w.Status, "INVALID_ARGUMENT"
		if w.Status == http.StatusTooManyRequests {
			fields["status"] = "RESOURCE_EXHAUSTED"
		}
	case "bedrock":
		body = map[string]any{"__type": "ValidationException", "message": w.Message}
		if w.Status == http.StatusTooManyRequests {
			body["__type"] = "ThrottlingException"
		}
	}
	if w.Param != "" {
		fields["param"] = w.Param
		if wire == "bedrock" {
			body["param"] = w.Param
		}
	}
	if w.Code != "" && wire != "gemini" && wire != "bedrock" {
		fields["code"] = w.Code
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refuse is a handler that answers with a wording.
func refuse(t *testing.T, wire string, w recorded.Wording) http.HandlerFunc {
	body := envelope(t, wire, w)
	return func(rw http.ResponseWriter, r *http.Request) {
		for name, value := range w.Headers {
			rw.Header().Set(name, value)
		}
		chatReply(w.Status, "application/json", body)(rw, r)
	}
}

// saying is a server that answers each request with the wording that was set
// last.
type saying struct {
	mu     sync.Mutex
	answer http.HandlerFunc
}

func (s *saying) set(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *saying) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	answer(w, r)
}

// TestEveryWordingIsReadOnEveryWire sends what servers say, and what looks like
// it, through the six SDKs.
func TestEveryWordingIsReadOnEveryWire(t *testing.T) {
	all := wordings(t)
	for _, wire := range everyWire {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			var s saying
			server := newChatServer(t, s.ServeHTTP)
			client := clientOf(t, wire, server.URL, ClientConfig{})
			for _, w := range all {
				s.set(refuse(t, wire, w))
				_, _, err := ask(t, client)
				checkWording(t, client.adapter.classify(err), w)
			}
		})
	}
}

func checkWording(t *testing.T, e *apierror.Error, w recorded.Wording) {
	t.Helper()
	said := w.ID + " " + w.Message + w.Body
	switch {
	case e == nil || string(e.Kind) != w.Kind:
		t.Errorf("%s\nis %+v, want %s", said, e, w.Kind)
		return
	case e.Kind == apierror.KindContextOverflow || e.Kind == apierror.KindMaxOutput:
		if e.Used != w.Used || e.Limit != w.Limit {
			t.Errorf("%s\n%d of %d, want %d of %d", said, e.Used, e.Limit, w.Used, w.Limit)
		}
	case e.Kind == apierror.KindRateLimit || e.Kind == apierror.KindRateLimitTokens:
		if e.Retryable() == w.Ends {
			t.Errorf("%s\nends the turn: %v, want %v", said, !w.Ends, w.Ends)
		}
		// What states a point in time is over by now.
		if want, _ := time.ParseDuration(w.Wait); e.RetryAfter != want && !statesTime(w) {
			t.Errorf("%s\nasks to wait %v, want %v", said, e.RetryAfter, want)
		}
	}
}

// statesTime reports whether a wording says when, and not for how long, to wait.
func statesTime(w recorded.Wording) bool {
	text := w.Message + w.Body
	for _, value := range w.Headers {
		text += value
	}
	return strings.Contains(text, "2025-03-07T") || strings.Contains(text, "17413056")
}

// refusing is the reply of a server that refuses a request in these words.
func refusing(t *testing.T, wire string, status int, message string) simulator.Reply {
	t.Helper()
	return simulator.Fail(simulator.Response(status, "application/json", envelope(t, wire, recorded.Wording{Status: status, Message: message})))
}

func TestRefusalToCutIsRecoveredOnEveryWire(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		for _, message := range []string{
			"Cannot truncate prompt with n_keep (30100) >= n_ctx (30000)",
			"context shift is disabled",
			"Unable to trim the conversation any further: nothing left to drop",
		} {
			server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(
				simulator.Calls(simulator.Call{Name: "read_file", Input: `{"path":"a","tokens":3000}`}),
				refusing(t, w.name, 400, message), simulator.Text(goodSummary), simulator.Text("All done."),
			)}, 128000)
			events := runTurn(t, client, registry(), user(task))
			wantDone(t, events)
			if n := count(events, StreamEventTypeAutoCompactionApplied); n != 1 || len(server.Records()) != 4 {
				t.Errorf("%s: %d compactions in %d requests, want 1 in 4", message, n, len(server.Records()))
			}
		}
	})
}

func TestRateLimitThatSaysWhenIsWaitedForOnEveryWire(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(
			refusing(t, w.name, 429, "You exceeded your current quota, please check your plan and billing details. Limit: 15 requests per minute. Please retry in 0.05s."),
			simulator.Text("All done."),
		)}, 128000)
		events := runTurn(t, client, nil, user(task))
		wantDone(t, events)
		var waits []time.Duration
		for _, e := range events {
			if e.Type == StreamEventTypeRetry {
				waits = append(waits, e.Retry.Delay)
			}
		}
		if len(waits) != 1 || waits[0] != 50*time.Millisecond || len(server.Records()) != 2 {
			t.Errorf("waits of %v and %d requests, want one of 50ms and 2", waits, len(server.Records()))
		}
	})
}

func TestWaitForARateLimitCanBeCancelledOnEveryWire(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		client := limited(t, w, "Requests per minute exceeded. Please retry in 59s.")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		events := runTurnWith(t, ctx, client, nil, func(e StreamEvent) {
			if e.Type == StreamEventTypeRetry {
				cancel()
			}
		}, user(task))
		if end := last(events); end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, context.Canceled) {
			t.Errorf("ends with %s %v", end.Type, end.Err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("the wait went on for %v", took)
		}
	})
}

func TestQuotaOfADayEndsTheTurnAtOnceOnEveryWire(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		for message, advice := range map[string]string{
			"Rate limit reached on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s.": "Go on in about 10 minutes",
			"Monthly quota exceeded. Please retry in 17.2s.":                                                                       "Go on next month",
			"You exceeded your current quota, please check your plan and billing details.":                                         "Top it up",
		} {
			events := runTurn(t, limited(t, w, message), nil, user(task))
			var e *apierror.Error
			if end := last(events); end.Type != StreamEventTypeError || !errors.As(end.Err, &e) || !strings.Contains(strings.ToLower(e.Advice()), strings.ToLower(advice)) {
				t.Errorf("%s\nends with %s %v, want an error that advises %q", message, end.Type, end.Err, advice)
			}
			if n := count(events, StreamEventTypeRetry); n != 0 {
				t.Errorf("%s\nis sent again %d times", message, n)
			}
		}
	})
}

// limited is a client of a server that has a rate limit for everything.
func limited(t *testing.T, w wireUnderTest, message string) *Client {
	t.Helper()
	_, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(
		refusing(t, w.name, 429, message), simulator.Text("never"),
	)}, 128000)
	return client
}

func TestRefusedOutputLimitIsLoweredForTheSessionOnEveryWire(t *testing.T) {
	onEveryWire(t, func(t *testing.T, w wireUnderTest) {
		server, client := w.simulate(t, simulator.Options{Script: simulator.NewSequence(
			refusing(t, w.name, 400, "max_tokens is too large: 8192. This model supports at most 2048 completion tokens, whereas you provided 8192."),
			simulator.Text("All done."), simulator.Text("Done again."),
		)}, 128000)
		before := client.Sizes().Budget
		events := runTurn(t, client, registry(), user(task))
		wantDone(t, events)
		wantDone(t, runTurn(t, client, registry(), user(task)))
		if n := count(events, StreamEventTypeAutoCompactionStarted); n != 0 {
			t.Errorf("%d compactions, want none", n)
		}
		if n := count(events, StreamEventTypeNotice); n != 1 {
			t.Errorf("%d notices, want 1", n)
		}
		if s := client.Sizes(); s.Output != 2048 || s.Budget != before+8192-2048 {
			t.Errorf("the session goes on with %+v", s)
		}
		want := []int{8192, 2048, 2048}
		if w.name == "codex" {
			want = []int{0, 0, 0} // Its backend sets the limit itself.
		}
		var got []int
		for _, r := range server.Records() {
			got = append(got, r.Request.MaxOutput)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the requests ask for %v, want %v", got, want)
		}
	})
}
