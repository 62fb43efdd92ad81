package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"keen/internal/llm/apierror"
	"keen/internal/llm/token"
	"keen/internal/tools"
)

// fakeAdapter is an adapter without a wire: its native items are plain text.
// A script answers its requests; it enforces a hard window by the local
// estimate, as a server would by its own.
type fakeAdapter struct {
	window int // believed
	output int
	hard   int // enforced on input + output, 0: none
	script func(r fakeRequest) fakeReply

	mu       sync.Mutex
	requests []fakeRequest
	started  int
}

// fakeRequest is a request as it was sent.
type fakeRequest struct {
	System     string
	Items      []string // one line a piece, in order
	Tokens     int
	Output     int
	OneShot    bool
	Compaction bool
	// Parent and Nested count the requests of their kind, this one included.
	Parent, Nested int
	SessionID      string
	Tools          int
}

func (r fakeRequest) text() string { return r.System + "\n" + strings.Join(r.Items, "\n") }

// fakeReply is what the script makes of a request.
type fakeReply struct {
	deltas []delta
	step   step
	err    error
	// before runs in the sampler before anything is sent, with its context.
	before func(ctx context.Context) error
}

func say(text string) fakeReply {
	return fakeReply{deltas: []delta{{Text: text}}, step: step{Text: text, Stop: StopEnd}}
}

func call(text string, calls ...tools.Call) fakeReply {
	r := fakeReply{step: step{Text: text, Calls: calls, Stop: StopToolCalls}}
	if text != "" {
		r.deltas = []delta{{Text: text}}
	}
	return r
}

func toolCall(name string, input string) tools.Call {
	return tools.Call{Name: name, Input: json.RawMessage(input)}
}

func fail(kind apierror.Kind, message string) fakeReply {
	return fakeReply{err: &apierror.Error{Kind: kind, Provider: "fake", Message: message}}
}

func (a *fakeAdapter) limits() limits { return limits{Window: a.window, Output: a.output} }

func (a *fakeAdapter) classify(err error) *apierror.Error {
	var e *apierror.Error
	if errors.As(err, &e) {
		return e
	}
	return &apierror.Error{Kind: apierror.KindOther, Provider: "fake", Message: err.Error(), Err: err}
}

func (a *fakeAdapter) start(r turnRequest) (conversation, error) {
	a.mu.Lock()
	a.started++
	a.mu.Unlock()
	c := &fakeConversation{a: a, r: r}
	c.history.fixed = token.Estimate(r.System)
	for _, s := range r.Specs {
		c.history.fixed += token.Estimate(s.Description) + token.Estimate(string(s.Schema))
	}
	for _, e := range formatHistory(r.History) {
		switch e.kind {
		case entryUser:
			c.add("user: " + e.text)
		case entryAssistant:
			c.add("assistant: " + e.text)
			c.addCalls(e.calls)
		case entryResults:
			c.addResults(e.results)
		}
	}
	return c, nil
}

type fakeConversation struct {
	a       *fakeAdapter
	r       turnRequest
	history nativeHistory[string]
	calls   int
}

func (c *fakeConversation) add(s string) { c.history.add(s, token.Estimate(s)) }

func (c *fakeConversation) addCalls(calls []tools.Call) {
	for _, k := range calls {
		c.add(fmt.Sprintf("call %s %s %s", k.ID, k.Name, k.Input))
	}
}

func (c *fakeConversation) addResults(results []tools.Result) {
	c.history.beginResults()
	for _, r := range results {
		c.history.addOutput(r.Output, 4, func(output string) string {
			return fmt.Sprintf("result %s: %s", r.CallID, output)
		})
	}
}

func (c *fakeConversation) estimate() int                        { return c.history.estimate() }
func (c *fakeConversation) appendResults(results []tools.Result) { c.addResults(results) }
func (c *fakeConversation) appendUser(text string)               { c.add("user: " + text) }

func (c *fakeConversation) prepare(l requestLimits) (prepared, error) {
	items, tokens, err := c.history.fit(l.Budget)
	if err != nil {
		return prepared{}, err
	}
	request := fakeRequest{
		System: c.r.System, Items: append([]string(nil), items...), Tokens: tokens, Output: l.Output,
		OneShot: c.r.OneShot, SessionID: c.r.SessionID, Tools: len(c.r.Specs),
		Compaction: c.r.OneShot && len(c.r.Specs) == 0,
	}
	return prepared{estimate: tokens, reduced: tokens < c.history.estimate(), sample: func(ctx context.Context, emit func(delta)) (step, error) {
		reply := c.a.answer(request)
		if reply.before != nil {
			if err := reply.before(ctx); err != nil {
				return step{}, err
			}
		}
		for _, d := range reply.deltas {
			emit(d)
		}
		if reply.err != nil {
			return step{}, reply.err
		}
		return c.record(reply.step), nil
	}}, nil
}

func (c *fakeConversation) record(s step) step {
	if s.Stop == StopLength {
		s.CutCalls, s.Calls = s.CutCalls+len(s.Calls), nil
	}
	for i := range s.Calls {
		c.calls++
		s.Calls[i].ID = fmt.Sprintf("live_%d", c.calls)
	}
	if s.Text != "" || len(s.Calls) > 0 {
		c.add("assistant: " + s.Text)
	}
	c.addCalls(s.Calls)
	return s
}

// answer records a request and asks the script, after the window was enforced.
func (a *fakeAdapter) answer(r fakeRequest) fakeReply {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, old := range a.requests {
		if old.Compaction {
			r.Nested++
		} else {
			r.Parent++
		}
	}
	if r.Compaction {
		r.Nested++
	} else {
		r.Parent++
	}
	a.requests = append(a.requests, r)
	if a.hard > 0 && r.Tokens+r.Output > a.hard {
		return fakeReply{err: &apierror.Error{Kind: apierror.KindContextOverflow, Provider: "fake", Used: r.Tokens + r.Output, Input: r.Tokens, Output: r.Output, Limit: a.hard, Message: "too long"}}
	}
	return a.script(r)
}

func (a *fakeAdapter) sent() (parent, nested []fakeRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if r.Compaction {
			nested = append(nested, r)
		} else {
			parent = append(parent, r)
		}
	}
	return parent, nested
}

// Model sizes of the field reports, in tokens.
func small() *fakeAdapter { return &fakeAdapter{window: 32768, output: 8192} }
func mid() *fakeAdapter   { return &fakeAdapter{window: 128000, output: 8192} }

// goodSummary is a summary that passes the checks.
const goodSummary = `## Goal
Finish the job the user described and report the final result.
## Progress
Steps so far were done as asked; the remaining files have to be read next.
## Immediate next action
Read the next file and go on from there.`

// testRetry retries without waiting.
var testRetry = RetryPolicy{MaxRetries: 3, MaxRetryAfter: time.Minute}

func newFakeClient(t testing.TB, a *fakeAdapter) *Client {
	t.Helper()
	c, err := newClient(a, ClientConfig{Provider: "fake", Model: "fake-1", ContextWindow: a.window, Retry: testRetry})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sizedTool returns output of about as many tokens as its input asks for. The
// marker of a call stands at the head and the tail of its output.
type sizedTool struct{ runs *int }

func (s sizedTool) Spec() tools.Spec {
	return tools.Spec{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (s sizedTool) Run(_ context.Context, input json.RawMessage, _ func(tools.Progress)) (tools.Result, error) {
	var in struct {
		Path   string `json:"path"`
		Tokens int    `json:"tokens"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return tools.Result{}, err
	}
	if s.runs != nil {
		*s.runs++
	}
	marker := "<<" + in.Path + ">>"
	return tools.Result{Output: marker + textOf(in.Tokens) + marker}, nil
}

// textOf makes text of about n tokens.
func textOf(n int) string {
	const line = "the quick brown fox jumps over the lazy dog and goes on\n"
	per := token.Estimate(strings.Repeat(line, 100))
	return strings.Repeat(line, n*100/per+1)
}

func readCall(path string, tokens int) tools.Call {
	return toolCall("read_file", fmt.Sprintf(`{"path":%q,"tokens":%d}`, path, tokens))
}

// runTurn runs a turn to its end and returns its events.
func runTurn(t testing.TB, c LLMClient, registry *tools.Registry, messages ...Message) []StreamEvent {
	t.Helper()
	return runTurnWith(t, context.Background(), c, registry, func(StreamEvent) {}, messages...)
}

func runTurnWith(t testing.TB, ctx context.Context, c LLMClient, registry *tools.Registry, on func(StreamEvent), messages ...Message) []StreamEvent {
	t.Helper()
	events, err := c.StreamChat(ctx, messages, registry, StreamOptions{SessionID: "session-1"})
	if err != nil {
		t.Fatal(err)
	}
	var all []StreamEvent
	for e := range events {
		all = append(all, e)
		on(e)
	}
	if len(all) == 0 || !all[len(all)-1].Terminal() {
		t.Fatalf("the stream has no terminal event at its end: %v", kinds(all))
	}
	for _, e := range all[:len(all)-1] {
		if e.Terminal() {
			t.Fatalf("the stream has a terminal event before its end: %v", kinds(all))
		}
	}
	return all
}

func kinds(events []StreamEvent) []StreamEventType {
	var all []StreamEventType
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

func count(events []StreamEvent, kind StreamEventType) int {
	n := 0
	for _, e := range events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// answerText folds the text a consumer would show: chunks, minus what retries
// voided.
func answerText(events []StreamEvent) string {
	var done, step strings.Builder
	for _, e := range events {
		switch e.Type {
		case StreamEventTypeStepStarted:
			done.WriteString(step.String())
			step.Reset()
		case StreamEventTypeChunk:
			step.WriteString(e.Text)
		case StreamEventTypeRetry:
			step.Reset()
		}
	}
	return done.String() + step.String()
}

func last(events []StreamEvent) StreamEvent { return events[len(events)-1] }

func system(text string) Message { return Message{Role: RoleSystem, Content: text} }
func user(text string) Message   { return Message{Role: RoleUser, Content: text} }

func registry() *tools.Registry { return tools.NewRegistry(sizedTool{}) }
