package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keen/internal/tools"
)

func TestDecision07_CompactionRequestIsPlainTextThatFits(t *testing.T) {
	a := small()
	a.hard = a.window
	a.script = scripted(reads(25, 2500)...)
	c := newFakeClient(t, a)
	wantDone(t, runTurn(t, c, registry(), system("You are Keen."), user(task)))
	_, nested := a.sent()
	if len(nested) < 2 {
		t.Fatalf("%d compactions", len(nested))
	}
	seen := make(map[string]bool)
	for _, r := range nested {
		if len(r.Items) != 1 || !strings.HasPrefix(r.Items[0], "user: ") || r.Tools != 0 {
			t.Errorf("the request is not one plain text: %d items, %d tools", len(r.Items), r.Tools)
		}
		if r.Tokens > c.Sizes().Budget {
			t.Errorf("the request has %d tokens, the budget is %d", r.Tokens, c.Sizes().Budget)
		}
		if strings.Contains(r.System, "You are Keen.") {
			t.Error("the agent's system prompt is in the compaction request")
		}
		if seen[r.text()] {
			t.Error("a request was sent twice unchanged")
		}
		seen[r.text()] = true
	}
}

func TestDecision08_NothingToRetainIsAnError(t *testing.T) {
	a := small()
	a.script = scripted(say(goodSummary))
	history := []Message{{Role: RoleAssistant, Content: textOf(5000)}}
	_, err := AutoCompact(t.Context(), newFakeClient(t, a), AutoCompactRequest{History: history, Budget: func() int { return 10000 }})
	if err == nil || len(a.requests) != 0 {
		t.Errorf("%d requests, error %v", len(a.requests), err)
	}
}

func TestB13_SwitchingModelsDoesNotCompact(t *testing.T) {
	history := []Message{user("x"), {Role: RoleAssistant, Content: textOf(20000)}, user(task)}
	for range 2 { // The second client is another model with the same window.
		a := mid()
		a.script = scripted(call("", readCall("a", 10)), say("done"))
		if n := count(runTurn(t, newFakeClient(t, a), registry(), history...), StreamEventTypeAutoCompactionStarted); n != 0 {
			t.Errorf("%d compactions at a fifth of the threshold", n)
		}
	}
}

func TestB26_SlowCompactionIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := small()
		a.script = func(r fakeRequest) fakeReply {
			if r.Compaction {
				reply := say(goodSummary)
				reply.before = func(ctx context.Context) error { return wait(ctx, 3*time.Hour) }
				return reply
			}
			return []fakeReply{call("", readCall("a", 19500)), say("done")}[min(r.Parent, 2)-1]
		}
		start := time.Now()
		events := runTurn(t, newFakeClient(t, a), registry(), user(task))
		wantDone(t, events)
		if count(events, StreamEventTypeAutoCompactionApplied) != 1 || time.Since(start) < 3*time.Hour {
			t.Errorf("after %v: %v", time.Since(start), kinds(events))
		}
	})
}

// brokenClient is an LLMClient whose streams end as no stream should.
type brokenClient struct{ events []StreamEvent }

func (b brokenClient) StreamChat(context.Context, []Message, *tools.Registry, StreamOptions) (<-chan StreamEvent, error) {
	out := make(chan StreamEvent, len(b.events))
	for _, e := range b.events {
		out <- e
	}
	close(out)
	return out, nil
}

func TestB76_EveryEndOfTheNestedStreamIsAnEnd(t *testing.T) {
	chunk := StreamEvent{Type: StreamEventTypeChunk, Text: goodSummary}
	history := []Message{user(task), {Role: RoleAssistant, Content: textOf(5000)}}
	for name, events := range map[string][]StreamEvent{
		"closed at once":             nil,
		"closed without an end":      {chunk},
		"an error of nil":            {chunk, {Type: StreamEventTypeError}},
		"incomplete without a cause": {chunk, {Type: StreamEventTypeIncomplete}},
	} {
		_, err := AutoCompact(t.Context(), brokenClient{events}, AutoCompactRequest{History: history, Budget: func() int { return 20000 }})
		if err == nil {
			t.Errorf("%s: a summary was accepted", name)
		}
	}
	events := []StreamEvent{chunk, {Type: StreamEventTypeDone, StopReason: StopEnd}}
	if _, err := AutoCompact(t.Context(), brokenClient{events}, AutoCompactRequest{History: history, Budget: func() int { return 20000 }}); err != nil {
		t.Errorf("a good end: %v", err)
	}
}

// rawTool returns what it was given.
type rawTool struct{ output string }

func (r rawTool) Spec() tools.Spec { return sizedTool{}.Spec() }

func (r rawTool) Run(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
	return tools.Result{Output: r.output}, nil
}

func TestB91_HugeAndOddOutputsDoNotEndTheTurn(t *testing.T) {
	for name, output := range map[string]string{
		"300 KB":        textOf(75000),
		"20 MB":         strings.Repeat("0123456789abcdef\n", 20<<20/17),
		"binary":        strings.Repeat("\x00\x01\x02\xff\xfe\x1b[2J", 20000),
		"invalid UTF-8": strings.Repeat("caf\xe9 ", 50000),
		"one line":      strings.Repeat("x", 300<<10),
	} {
		t.Run(name, func(t *testing.T) {
			a := small()
			a.hard = a.window
			a.script = scripted(call("", readCall("a", 1)), call("", readCall("b", 1)), say("done"))
			c := newFakeClient(t, a)
			events := runTurn(t, c, tools.NewRegistry(rawTool{output}), user(task))
			wantDone(t, events)
			for i, r := range a.requests {
				if r.Tokens > c.Sizes().Budget {
					t.Errorf("request %d has %d tokens, the budget is %d", i+1, r.Tokens, c.Sizes().Budget)
				}
			}
		})
	}
}

func TestManualCompactionIsVisibleAndSizedLikeTheAutomaticOne(t *testing.T) {
	// B97: the session is far above the window.
	a := small()
	a.hard = a.window
	a.script = scripted(say(goodSummary))
	history := []Message{system("You are Keen.")}
	for i := range 30 {
		history = append(history, user(fmt.Sprintf("Request %d. %s", i, textOf(800))), Message{Role: RoleAssistant, Content: textOf(1500)})
	}
	c := newFakeClient(t, a)
	var shown strings.Builder
	result, err := ManualCompact(t.Context(), c, ManualCompactRequest{History: history, Hint: "the numbers", Budget: c.CompactionBudget}, func(e StreamEvent) {
		if e.Terminal() {
			t.Errorf("%s reached the screen", e.Type)
		}
		if e.Type == StreamEventTypeChunk {
			shown.WriteString(e.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if shown.String() != goodSummary {
		t.Errorf("the screen shows %q", shown.String())
	}
	m := result.Replacement[0]
	if len(result.Replacement) != 1 || m.Compaction.Task != "" || strings.Contains(m.Content, "<last_user_message>") || !strings.Contains(m.Content, goodSummary) {
		t.Errorf("the replacement is %+v", result.Replacement)
	}
	for _, r := range a.requests {
		if r.Tokens > c.Sizes().Budget {
			t.Errorf("a request has %d tokens, the budget is %d", r.Tokens, c.Sizes().Budget)
		}
	}
}
