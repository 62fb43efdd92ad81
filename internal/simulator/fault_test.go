package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"keen/internal/simulator"
)

// faulty is a script that says something long with a fault.
func faulty(f *simulator.Fault) simulator.Script {
	return simulator.ScriptFunc(func(*simulator.Request) simulator.Reply {
		return simulator.Reply{Text: strings.Repeat("A sentence. ", 30), Fault: f}
	})
}

func TestFaultsBeforeTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		fault  *simulator.Fault
		status int
		header string
		says   string
	}{
		"rate limit":        {simulator.RateLimit(3 * time.Second), 429, "Retry-After: 3", "rate_limit_exceeded"},
		"server error":      {simulator.HTTPError(500), 500, "", "server_error"},
		"no status":         {simulator.HTTPError(0), 500, "", "server_error"},
		"bad gateway":       {simulator.HTTPError(502), 502, "", "server_error"},
		"unavailable":       {simulator.HTTPError(503), 503, "", "overloaded"},
		"overloaded":        {simulator.HTTPError(529), 529, "", "overloaded"},
		"wrong key":         {simulator.HTTPError(401), 401, "", "invalid_api_key"},
		"forbidden":         {simulator.HTTPError(403), 403, "", "permission_denied"},
		"no model":          {simulator.HTTPError(404), 404, "", "model_not_found"},
		"another":           {simulator.HTTPError(413), 413, "", "Request Entity Too Large"},
		"a web page":        {simulator.Response(200, "text/html", "<html>Sign in</html>"), 200, "Content-Type: text/html", "<html>Sign in</html>"},
		"JSON for a stream": {simulator.Response(200, "application/json", `{"choices":[]}`), 200, "Content-Type: application/json", `{"choices":[]}`},
		"a text for error":  {simulator.Response(400, "application/json", `{"error":"text"}`), 400, "", `{"error":"text"}`},
		"an overflow":       {simulator.Overflow(), 400, "", "context_length_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, simulator.Options{Script: simulator.NewSequence(simulator.Fail(c.fault))})
			r := server.post(chatBody(hello))
			if r.status != c.status || !strings.Contains(r.body, c.says) {
				t.Errorf("status %d: %s", r.status, r.body)
			}
			if key, value, ok := strings.Cut(c.header, ": "); ok && r.header.Get(key) != value {
				t.Errorf("header %s is %q, want %q", key, r.header.Get(key), value)
			}
			if got := server.last(); got.Verdict != simulator.Accepted || got.Status != c.status || got.OverWindow {
				t.Errorf("record: %q, status %d, over the window %v", got.Verdict, got.Status, got.OverWindow)
			}
		})
	}
}

func TestFaultsInsideTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		fault *simulator.Fault
		// events is how many are sent, -1 stands for all the content.
		events int
		err    error
		last   string
	}{
		"ends early":                  {simulator.EndEarly(3), 3, nil, "content"},
		"ends before it began":        {simulator.EndEarly(0), 0, nil, ""},
		"ends without terminal event": {simulator.EndEarly(simulator.AfterContent), -1, nil, "content"},
		"dropped":                     {simulator.Drop(3), 3, io.ErrUnexpectedEOF, "content"},
		"dropped at once":             {simulator.Drop(0), 0, io.ErrUnexpectedEOF, ""},
		"reset":                       {simulator.Reset(3), 3, syscall.ECONNRESET, "content"},
		"an error":                    {simulator.StreamError(2, ""), 3, nil, "server_error"},
		"an error of its own":         {simulator.StreamError(2, "event: error\ndata: {\"x\":1}\n\n"), 3, nil, "event: error\ndata: {\"x\":1}\n\n"},
		"an overflow":                 {simulator.StreamOverflow(2), 3, nil, "context_length_exceeded"},
		"past the end":                {simulator.Drop(1000), 12, io.ErrUnexpectedEOF, "[DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, simulator.Options{Script: faulty(c.fault)})
			r := server.post(chatBody(hello))
			if r.status != http.StatusOK {
				t.Fatalf("status %d, %v", r.status, r.err)
			}
			if !errors.Is(r.err, c.err) {
				t.Errorf("error %v, want %v", r.err, c.err)
			}
			events := strings.SplitAfter(r.body, "\n\n")
			events = events[:len(events)-1]
			if c.events < 0 {
				if strings.Contains(r.body, `"finish_reason":"`) || strings.Contains(r.body, "[DONE]") || !strings.Contains(r.body, "content") {
					t.Errorf("the answer has an end, or no content: %s", r.body)
				}
				return
			}
			if len(events) != c.events {
				t.Fatalf("%d events, want %d: %s", len(events), c.events, r.body)
			}
			if c.events > 0 && !strings.Contains(events[c.events-1], c.last) {
				t.Errorf("the last event is %q", events[c.events-1])
			}
		})
	}
}

func TestAnOverflowInsideAStreamHasTheWordsOfItsServer(t *testing.T) {
	c := start(t, simulator.Options{Script: faulty(simulator.StreamOverflow(1)), Wording: simulator.WordingLMStudio})
	body := c.post(chatBody(hello)).body
	_, last, _ := strings.Cut(body, "event: error\ndata: ")
	var got struct{ Error struct{ Message string } }
	if err := json.Unmarshal([]byte(last), &got); err != nil || !strings.Contains(got.Error.Message, "Trying to keep the first") {
		t.Errorf("%v: %s", err, body)
	}
}

func TestEveryEventMayHaveANullError(t *testing.T) {
	c := start(t, simulator.Options{Script: faulty(simulator.NullErrors())})
	body := c.post(chatBody(hello)).body
	got, chunks := readStream(t, body)
	if !got.Done || got.Finish != "stop" || strings.Count(body, `"error":null`) != len(chunks) {
		t.Errorf("%d chunks: %s", len(chunks), body)
	}
}

func TestAStalledAnswerGoesOnWhenItIsReleased(t *testing.T) {
	for name, stall := range map[string]func(<-chan struct{}, func()) *simulator.Fault{
		"before the headers": simulator.StallHeaders,
		"inside the stream": func(release <-chan struct{}, reached func()) *simulator.Fault {
			return simulator.Stall(2, release, reached)
		},
	} {
		t.Run(name, func(t *testing.T) {
			release, reached := make(chan struct{}), make(chan struct{})
			c := start(t, simulator.Options{Script: faulty(stall(release, func() { close(reached) }))})
			answered := make(chan response)
			body := marshal(t, chatBody(hello))
			go func() { answered <- c.send(t.Context(), body) }()
			<-reached
			select {
			case r := <-answered:
				t.Fatalf("answered while stalled: %s", r.body)
			default:
			}
			close(release)
			if got, _ := readStream(t, (<-answered).body); !got.Done {
				t.Error("the answer is not whole")
			}
		})
	}
}

func TestAClientThatLeavesEndsAStall(t *testing.T) {
	for name, stall := range map[string]func(<-chan struct{}, func()) *simulator.Fault{
		"before the headers": simulator.StallHeaders,
		"inside the stream": func(release <-chan struct{}, reached func()) *simulator.Fault {
			return simulator.Stall(2, release, reached)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			c := start(t, simulator.Options{Script: faulty(stall(nil, leave))})
			if r := c.send(ctx, marshal(t, chatBody(hello))); !errors.Is(r.err, context.Canceled) {
				t.Errorf("error %v", r.err)
			}
			if err := c.server.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !c.last().ClientLeft {
				t.Error("the record does not say that the client left")
			}
		})
	}
}

func TestIdleWaitsForAnswersThatAreBeingSent(t *testing.T) {
	release, reached := make(chan struct{}), make(chan struct{})
	c := start(t, simulator.Options{Script: faulty(simulator.Stall(1, release, func() { close(reached) }))})
	if err := c.server.Idle(t.Context()); err != nil {
		t.Errorf("before any request: %v", err)
	}
	answered := make(chan response)
	body := marshal(t, chatBody(hello))
	go func() { answered <- c.send(t.Context(), body) }()
	<-reached
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.server.Idle(over); !errors.Is(err, context.Canceled) {
		t.Errorf("while an answer is being sent: %v", err)
	}
	close(release)
	<-answered
	if err := c.server.Idle(t.Context()); err != nil || c.last().ClientLeft {
		t.Errorf("after the answer: %v, client left %v", err, c.last().ClientLeft)
	}
}

func TestInjectAsksTheScriptOnlyForWhatIsSent(t *testing.T) {
	faults := []*simulator.Fault{simulator.HTTPError(500), simulator.Drop(2), nil}
	asked := 0
	var seen []*simulator.Fault
	inner := simulator.ScriptFunc(func(r *simulator.Request) simulator.Reply {
		asked++
		seen = append(seen, r.Fault)
		return simulator.Text("An answer.")
	})
	c := start(t, simulator.Options{Script: simulator.Inject(inner, func(r *simulator.Request) *simulator.Fault {
		return faults[r.Number-1]
	})})
	if r := c.post(chatBody(hello)); r.status != 500 || asked != 0 {
		t.Errorf("status %d, the script was asked %d times", r.status, asked)
	}
	if r := c.post(chatBody(hello)); r.err == nil || asked != 1 {
		t.Errorf("dropped: %v, the script was asked %d times", r.err, asked)
	}
	if r := c.post(chatBody(hello)); !strings.Contains(r.body, "[DONE]") || asked != 2 {
		t.Errorf("last: %s, the script was asked %d times", r.body, asked)
	}
	if seen[0] != faults[1] || seen[1] != nil {
		t.Errorf("the script saw %v", seen)
	}
}

func TestFaultsKnowWhetherTheAnswerIsLost(t *testing.T) {
	release := make(chan struct{})
	for name, c := range map[string]struct {
		fault *simulator.Fault
		want  bool
	}{
		"none":            {nil, false},
		"null errors":     {simulator.NullErrors(), false},
		"a stall":         {simulator.Stall(1, release, nil), false},
		"an endless one":  {simulator.Stall(1, nil, nil), true},
		"no headers":      {simulator.StallHeaders(nil, nil), true},
		"a status":        {simulator.HTTPError(500), true},
		"an early end":    {simulator.EndEarly(1), true},
		"a broken stream": {simulator.Drop(1), true},
	} {
		if got := c.fault.Loses(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
