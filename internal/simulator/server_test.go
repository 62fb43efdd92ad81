package simulator_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"keen/internal/simulator"
)

func TestInputAndOutputTogetherNeverExceedTheWindow(t *testing.T) {
	body := with(chatBody(say("user", strings.Repeat("word ", 500))), "max_tokens", 1000)
	c := start(t, simulator.Options{})
	c.post(body)
	exact := c.last().Request.InputTokens + 1000
	for _, size := range []struct {
		window int
		want   simulator.Verdict
	}{{exact, simulator.Accepted}, {exact - 1, simulator.RejectedWindow}} {
		c := start(t, simulator.Options{Window: size.window})
		c.post(body)
		record := c.last()
		if over := size.want != simulator.Accepted; record.Verdict != size.want || record.OverWindow != over {
			t.Errorf("window %d: %q, over %v, want %q", size.window, record.Verdict, record.OverWindow, size.want)
		}
		if got := len(c.server.Records().OverWindow()); (got == 1) != (size.want != simulator.Accepted) {
			t.Errorf("window %d: %d requests over it", size.window, got)
		}
	}
	c = start(t, simulator.Options{Window: exact - 1})
	c.post(with(body, "model", nil))
	if got := c.last(); got.Verdict != simulator.RejectedRule || !got.OverWindow {
		t.Errorf("a request with another fault: %q, over %v, want it seen as over the window too", got.Verdict, got.OverWindow)
	}
}

func TestAnOverflowIsReportedInTheChosenWords(t *testing.T) {
	type words struct{ input, output []string }
	for wording, want := range map[simulator.Wording]words{
		simulator.WordingOpenAI:     {[]string{`"code":"context_length_exceeded"`, "context length is 100 tokens", "resulted in 400 tokens"}, []string{"you requested 140 tokens (90 in the messages, 50 in the completion)"}},
		simulator.WordingVLLM:       {[]string{`"code":400`, "context length is 100 tokens", "400 input tokens plus 50 'max_tokens'"}, []string{"90 input tokens plus 50 'max_tokens'"}},
		simulator.WordingLMStudio:   {[]string{`{"error":"The number of tokens to keep`, `n_keep: 400\u003e= n_ctx: 100`}, []string{`n_keep: 140\u003e= n_ctx: 100`}},
		simulator.WordingLlamaCpp:   {[]string{`"type":"exceed_context_size_error"`, `"n_prompt_tokens":400`, `"n_ctx":100`}, []string{"request (140 tokens)"}},
		simulator.WordingOpenRouter: {[]string{"endpoint's maximum context length is 100 tokens", "about 450 tokens (400 of text input, 50 in the output)"}, []string{"about 140 tokens"}},
		simulator.WordingNoNumbers:  {[]string{`"message":"Please reduce the length of the messages or completion."`}, []string{"Please reduce"}},
	} {
		for _, c := range []struct {
			input int
			want  []string
		}{{400, want.input}, {90, want.output}} {
			count := func(s string) int {
				if s == "sized" {
					return c.input
				}
				return 0
			}
			// Without tools a request of one message takes 7 tokens more.
			server := start(t, simulator.Options{Window: 107, Wording: wording, Count: count})
			body := with(with(chatBody(say("user", "sized")), "tools", nil), "max_tokens", 50)
			r := server.post(body)
			if r.status != http.StatusBadRequest {
				t.Errorf("wording %d: status %d", wording, r.status)
			}
			got := shift(r.body)
			for _, part := range c.want {
				if !strings.Contains(got, part) {
					t.Errorf("wording %d: %s has no %q", wording, got, part)
				}
			}
		}
	}
}

// shift takes the 7 tokens that the server adds to a request out of a message.
func shift(body string) string {
	return strings.NewReplacer("107", "100", "407", "400", "457", "450", "97", "90", "147", "140").Replace(body)
}

func TestMoreOutputThanTheModelHasIsRefused(t *testing.T) {
	c := start(t, simulator.Options{MaxOutput: 4096, Window: 2000})
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		r := c.post(with(chatBody(hello), key, 8192))
		if r.status != http.StatusBadRequest || !strings.Contains(r.body, "max_tokens is too large: 8192. This model supports at most 4096 completion tokens") {
			t.Errorf("%s: status %d: %s", key, r.status, r.body)
		}
		if got := c.last(); got.Verdict != simulator.RejectedOutput || !got.OverWindow {
			t.Errorf("%s: %q, over the window %v", key, got.Verdict, got.OverWindow)
		}
	}
}

func TestAKeyIsRequiredWhereThereIsOne(t *testing.T) {
	c := start(t, simulator.Options{Key: "secret"})
	for _, k := range []struct {
		header string
		status int
		says   string
	}{
		{"", http.StatusUnauthorized, "didn't provide an API key"},
		{"Bearer ", http.StatusUnauthorized, "didn't provide an API key"},
		{"Bearer wrong", http.StatusUnauthorized, "invalid_api_key"},
		{"Bearer secret", http.StatusOK, "[DONE]"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.server.URL()+"/v1/chat/completions", bytes.NewReader(marshal(t, chatBody(hello))))
		if err != nil {
			t.Fatal(err)
		}
		if k.header != "" {
			r.Header.Set("Authorization", k.header)
		}
		response, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != k.status || !strings.Contains(body.String(), k.says) {
			t.Errorf("%q: status %d: %s", k.header, response.StatusCode, body.String())
		}
	}
	if got := len(c.server.Records().Accepted()); got != 1 {
		t.Errorf("%d accepted, want 1", got)
	}
	if got := c.server.Records()[0].Verdict; got != simulator.RejectedKey {
		t.Errorf("verdict %q", got)
	}
}

func TestOnlyTheModelThereIsIsServed(t *testing.T) {
	c := start(t, simulator.Options{Model: "other"})
	if r := c.post(chatBody(hello)); r.status != http.StatusNotFound || !strings.Contains(r.body, "model_not_found") {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if r := c.post(with(chatBody(hello), "model", "other")); r.status != http.StatusOK {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestAnAnswerIsCutAtItsLimit(t *testing.T) {
	long := strings.Repeat("A sentence of a few words. ", 40)
	call := simulator.Call{ID: "c", Name: "read", Input: `{"path":"` + long + `"}`}
	for name, c := range map[string]struct {
		o      simulator.Options
		ask    int
		reply  simulator.Reply
		cut    bool
		finish string
	}{
		"it fits":                {simulator.Options{}, 5000, simulator.Reply{Text: long, Calls: []simulator.Call{call}}, false, "tool_calls"},
		"in the text":            {simulator.Options{}, 50, simulator.Reply{Text: long, Calls: []simulator.Call{call}}, true, "length"},
		"in the reasoning":       {simulator.Options{}, 50, simulator.Reply{Reasoning: long, Text: "Hm."}, true, "length"},
		"in a call":              {simulator.Options{}, 50, simulator.Reply{Text: "I look.", Calls: []simulator.Call{call}}, true, "length"},
		"before a call":          {simulator.Options{}, 3, simulator.Reply{Text: "I look.", Calls: []simulator.Call{call}}, true, "length"},
		"at the model's limit":   {simulator.Options{MaxOutput: 50}, 0, simulator.Reply{Text: long}, true, "length"},
		"at the end of a window": {simulator.Options{Window: 120}, 0, simulator.Reply{Text: long}, true, "length"},
		"nowhere":                {simulator.Options{}, 0, simulator.Reply{Text: long}, false, "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Script = simulator.NewSequence(c.reply)
			server := start(t, c.o)
			body := chatBody(hello)
			limit := c.o.MaxOutput
			if c.ask > 0 {
				body, limit = with(body, "max_tokens", c.ask), c.ask
			}
			got, _ := readStream(t, server.post(body).body)
			record := server.last()
			if c.o.Window > 0 {
				limit = c.o.Window - record.Request.InputTokens
			}
			if got.Finish != c.finish || record.Cut != c.cut {
				t.Errorf("finish reason %q, cut %v", got.Finish, record.Cut)
			}
			if limit > 0 && record.OutputTokens > limit {
				t.Errorf("%d tokens, want at most %d", record.OutputTokens, limit)
			}
			if c.cut && c.ask >= 50 && record.OutputTokens < limit-5 {
				t.Errorf("%d tokens of %d: cut too early", record.OutputTokens, limit)
			}
			if !strings.HasPrefix(c.reply.Text, got.Text) || !strings.HasPrefix(c.reply.Reasoning, got.Reasoning) {
				t.Errorf("the answer is not a beginning of the reply: %q", got.Text)
			}
		})
	}
}

func TestAServerNeedsAScript(t *testing.T) {
	if _, err := simulator.New(simulator.Options{}); err == nil || !strings.Contains(err.Error(), "needs a script") {
		t.Errorf("error %v", err)
	}
}

func TestCloseEndsStalledAnswersAndLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	stalled := make(chan struct{})
	script := simulator.ScriptFunc(func(*simulator.Request) simulator.Reply {
		return simulator.Reply{Text: "Some text.", Fault: simulator.Stall(2, nil, func() { close(stalled) })}
	})
	s, err := simulator.New(simulator.Options{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	c := &client{t: t, server: s, http: &http.Client{Transport: transport}}
	answered := make(chan response)
	body := marshal(t, chatBody(hello))
	go func() { answered <- c.send(t.Context(), body) }()
	<-stalled
	s.Close()
	if r := <-answered; r.err == nil {
		t.Errorf("the answer ended in good order: %q", r.body)
	}
	if s.Records()[0].ClientLeft {
		t.Error("the client is said to have left, but the server was closed")
	}
	s.Close() // Again, which does nothing.
	transport.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func TestRequestsThatArriveAtOnceAreServedOneByOne(t *testing.T) {
	inside, seen := 0, 0
	var numbers []int
	c := start(t, simulator.Options{
		// Neither needs a lock: the server calls them one at a time.
		Script: simulator.ScriptFunc(func(r *simulator.Request) simulator.Reply {
			inside++
			defer func() { inside-- }()
			if inside != 1 {
				t.Error("two calls of the script at once")
			}
			seen++
			return simulator.Text(strings.Repeat("An answer. ", 20))
		}),
		OnRecord: func(r simulator.Record) { numbers = append(numbers, r.Request.Number) },
	})
	body := marshal(t, chatBody(hello))
	var clients sync.WaitGroup
	for range 24 {
		clients.Go(func() {
			if r := c.send(t.Context(), body); r.err != nil || !strings.HasSuffix(r.body, "[DONE]\n\n") {
				t.Errorf("%v: %s", r.err, r.body)
			}
		})
	}
	clients.Wait()
	records := c.server.Records()
	if seen != 24 || len(records) != 24 {
		t.Fatalf("%d replies, %d records, want 24", seen, len(records))
	}
	for i, r := range records {
		if r.Request.Number != i+1 || numbers[i] != i+1 {
			t.Errorf("record %d has number %d, reported as %d", i, r.Request.Number, numbers[i])
		}
	}
}

func TestRecordsAreSelectedAndMeasured(t *testing.T) {
	c := start(t, simulator.Options{})
	c.post(chatBody(hello))
	c.post(chatBody(say("user", strings.Repeat("word ", 100))))
	c.post(chatBody(say("robot", strings.Repeat("word ", 200))))
	c.post(compactionBody("<keen_user>\nHello."))
	records := c.server.Records()
	if got := []int{
		len(records), len(records.Accepted()), len(records.Rejected()), len(records.Compactions()), len(records.Parents()),
		len(records.Accepted().Parents()), len(records.OverWindow()),
	}; !equal(got, []int{4, 3, 1, 1, 3, 2, 0}) {
		t.Errorf("counts %v", got)
	}
	if all, accepted := records.LargestInput(), records.Accepted().LargestInput(); accepted <= 100 || all <= accepted+50 {
		t.Errorf("largest input %d, of the accepted ones %d", all, accepted)
	}
	input, output := records.Accepted().Tokens()
	if want := records[0].Request.InputTokens + records[1].Request.InputTokens + records[3].Request.InputTokens; input != want || output != 3*simulator.CountTokens("Fine.") {
		t.Errorf("sums %d and %d", input, output)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
