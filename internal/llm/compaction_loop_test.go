package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// scripted answers compaction requests with a good summary and parent requests
// in order; the last reply is repeated.
func scripted(replies ...fakeReply) func(fakeRequest) fakeReply {
	return func(r fakeRequest) fakeReply {
		if r.Compaction {
			return say(goodSummary)
		}
		return replies[min(r.Parent, len(replies))-1]
	}
}

// reads makes n replies that each read a file of the given tokens, and a final
// answer.
func reads(n, tokens int) []fakeReply {
	var replies []fakeReply
	for i := range n {
		replies = append(replies, call(fmt.Sprintf("I read file %d.", i), readCall(fmt.Sprintf("file%d.go", i), tokens)))
	}
	return append(replies, say("All done."))
}

const task = "Read every file and tell me what the project does. Keep <tags> and \"quotes\" as they are."

func wantDone(t *testing.T, events []StreamEvent) {
	t.Helper()
	if end := last(events); end.Type != StreamEventTypeDone {
		t.Fatalf("the turn ended with %s: %v", end.Type, end.Err)
	}
}

func TestDecision01_FirstRequestOfATurnIsNotCompactedProactively(t *testing.T) {
	a := small()
	a.script = scripted(say("fine"))
	c := newFakeClient(t, a)
	budget := c.Sizes().Budget
	history := []Message{user("old"), {Role: RoleAssistant, Content: textOf(budget * 95 / 100)}, user(task)}
	events := runTurn(t, c, registry(), history...)
	wantDone(t, events)
	parent, nested := a.sent()
	if len(parent) != 1 || len(nested) != 0 {
		t.Fatalf("got %d requests and %d compactions, want 1 and 0", len(parent), len(nested))
	}
}

func TestDecision01_FirstRequestThatDoesNotFitIsCompactedBeforeAnythingIsSent(t *testing.T) {
	a := small()
	a.hard = a.window
	a.script = scripted(say("fine"))
	c := newFakeClient(t, a)
	history := []Message{user("old"), {Role: RoleAssistant, Content: textOf(60000)}, user(task)}
	events := runTurn(t, c, registry(), history...)
	wantDone(t, events)
	parent, nested := a.sent()
	if len(parent) != 1 {
		t.Fatalf("got %d real requests, want 1", len(parent))
	}
	if len(nested) == 0 {
		t.Fatal("nothing was compacted")
	}
	for _, r := range append(parent, nested...) {
		if r.Tokens > c.Sizes().Budget {
			t.Errorf("a request of %d tokens left Keen, the budget is %d", r.Tokens, c.Sizes().Budget)
		}
	}
}

func TestDecision02_ThresholdIsExactAt90Percent(t *testing.T) {
	for _, budget := range []int{1, 7, 10, 20480, 20481, 20485, 20489, 102068, 113408, 126000, 886000} {
		smallest := (9*budget + 9) / 10
		if shouldAutoCompact(smallest-1, budget) && smallest > 0 {
			t.Errorf("budget %d: %d triggers below 90 %%", budget, smallest-1)
		}
		if !shouldAutoCompact(smallest, budget) {
			t.Errorf("budget %d: %d does not trigger at 90 %%", budget, smallest)
		}
	}
	if shouldAutoCompact(100, 0) {
		t.Error("a budget of nothing triggers")
	}
}

func TestDecision03_ReserveIsCappedByModelAndByAThirdOfTheWindow(t *testing.T) {
	for _, c := range []struct{ wanted, modelMax, window, want int }{
		{8192, 0, 128000, 8192},
		{8192, 0, 32768, 8192},
		{8192, 4096, 128000, 4096},
		{64000, 0, 200000, 64000},
		{64000, 0, 192000, 64000},
		{64000, 0, 191999, 63999},
		{64000, 64000, 1000000, 64000},
		{64000, 32000, 200000, 32000},
		{64000, 0, 64000, 21333},
	} {
		if got := outputReserve(c.wanted, c.modelMax, c.window); got != c.want {
			t.Errorf("outputReserve(%d, %d, %d) = %d, want %d", c.wanted, c.modelMax, c.window, got, c.want)
		}
	}
	for _, c := range []struct{ window, reserve, want int }{
		{32768, 8192, 20480}, {128000, 8192, 113408}, {200000, 64000, 126000}, {1000000, 64000, 886000}, {4096, 8192, 0},
	} {
		if got := effectiveBudget(c.window, c.reserve); got != c.want {
			t.Errorf("effectiveBudget(%d, %d) = %d, want %d", c.window, c.reserve, got, c.want)
		}
	}
}

func TestDecision03_WindowsThatAreTooSmallAreRefused(t *testing.T) {
	a := &fakeAdapter{window: MinContextWindow - 1, output: 4096}
	_, err := newClient(a, ClientConfig{Model: "tiny"})
	if err == nil || !strings.Contains(err.Error(), "16384") {
		t.Fatalf("got error %v, want one that names the smallest window", err)
	}
}

func TestDecision05_StatedLimitIsLearnedForTheSession(t *testing.T) {
	a := &fakeAdapter{window: 200000, output: 8192, hard: 32768}
	a.script = scripted(reads(40, 1700)...)
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	if got := c.Sizes().Window; got != 32768 {
		t.Errorf("the learned window is %d, want 32768", got)
	}
	rejected := 0
	for _, r := range a.requests {
		if r.Tokens+r.Output > a.hard {
			rejected++
		}
	}
	if rejected != 1 {
		t.Errorf("%d requests were rejected, want 1", rejected)
	}
	if count(events, StreamEventTypeNotice) != 1 {
		t.Errorf("the user was told %d times about the window, want once", count(events, StreamEventTypeNotice))
	}
	for _, r := range a.requests {
		if !strings.Contains(r.text(), task) {
			t.Errorf("a request does not hold the task verbatim")
		}
	}
}

func TestDecision05_RejectionWithoutNumbersLowersTheCeiling(t *testing.T) {
	a := &fakeAdapter{window: 200000, output: 8192}
	rejected := 0
	replies := scripted(reads(30, 1700)...)
	done := 0
	a.script = func(r fakeRequest) fakeReply {
		if r.Tokens > 24000 {
			rejected++
			return fail(apierror.KindContextOverflow, "Please reduce the length of the messages or completion.")
		}
		if !r.Compaction {
			done++
			r.Parent = done
		}
		return replies(r)
	}
	c := newFakeClient(t, a)
	wantDone(t, runTurn(t, c, registry(), user(task)))
	if rejected != 1 {
		t.Errorf("%d requests were rejected, want 1", rejected)
	}
}

func TestDecision05_ReportedInputAboveTheWindowIsAnOverflow(t *testing.T) {
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		switch {
		case r.Compaction:
			return say(goodSummary)
		case r.Parent == 1:
			return call("reading", readCall("a.go", 5000))
		case r.Parent == 2:
			reply := say("half the truth")
			reply.step.Usage = &Usage{InputTokens: 40000, OutputTokens: 10}
			return reply
		}
		return say("the whole truth")
	}
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	if got := answerText(events); got != "readingthe whole truth" {
		t.Errorf("the answer is %q", got)
	}
	if count(events, StreamEventTypeAutoCompactionApplied) != 1 {
		t.Error("there was no compaction")
	}
}

func TestDecision05_SilentlyCutInputIsAnOverflow(t *testing.T) {
	a := mid()
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction {
			return say(goodSummary)
		}
		if r.Parent == 1 {
			return call("", readCall("a.go", 20000))
		}
		reply := say("answer")
		reply.step.Usage = &Usage{InputTokens: min(r.Tokens, 8192), OutputTokens: 5}
		return reply
	}
	c, err := newClient(a, ClientConfig{Provider: "ollama", Model: "m", Retry: testRetry, TruncatesSilently: true})
	if err != nil {
		t.Fatal(err)
	}
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	if count(events, StreamEventTypeAutoCompactionApplied) != 1 {
		t.Errorf("a cut input was taken for an answer: %v", kinds(events))
	}
}

func TestDecision06_EstimateUsesReportedUsageAndCalibratesWhatCameSince(t *testing.T) {
	var l learned
	l.window, l.output = 128000, 8192
	var m meter
	m.sent(&l, 10000, 100, step{Usage: &Usage{InputTokens: 15000, OutputTokens: 300}, AnswerTokens: 300})
	if got := m.estimate(10100, l.scaler()); got != 15300 {
		t.Errorf("right after the answer: got %d, want what was reported, 15300", got)
	}
	if got := m.estimate(12100, l.scaler()); got != 15300+3000 {
		t.Errorf("2,000 estimated tokens later: got %d, want %d", got, 15300+3000)
	}
	if raw := m.rawBudget(18300, l.scaler()); m.estimate(raw, l.scaler()) > 18300 || m.estimate(raw+3, l.scaler()) <= 18300 {
		t.Errorf("rawBudget(18300) = %d is not the largest that fits", raw)
	}
	m.sent(&l, 10000, 100, step{Usage: &Usage{InputTokens: 12}})
	if got := m.estimate(10100, l.scaler()); got < 10000 {
		t.Errorf("an implausible report was believed: %d", got)
	}
}

func TestDecision08_UnusableSummariesAreRefused(t *testing.T) {
	cut := say(goodSummary)
	cut.step.Stop = StopLength
	thinking := fakeReply{deltas: []delta{{Reasoning: textOf(20000)}}, step: step{Reasoning: 80000, Stop: StopEnd}}
	for _, c := range []struct {
		name, reason string
		reply        fakeReply
	}{
		{"B53 cut by the output limit", "cut", cut},
		{"B55 only reasoning", "reasoning", thinking},
		{"B56 headings without content", "", say("## Goal\n(none)\n## Progress\n(none)\n## Files\n- (none)\n## Immediate next action\n(none)")},
		{"empty", "empty", say("")},
		{"a tool call", "tool call", call("", readCall("x", 1))},
		{"longer than what it replaces", "", say(textOf(22000))},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := small()
			a.script = func(r fakeRequest) fakeReply {
				if r.Compaction {
					return c.reply
				}
				return reads(12, 1700)[r.Parent-1]
			}
			events := runTurn(t, newFakeClient(t, a), registry(), user(task))
			wantDone(t, events)
			if n := count(events, StreamEventTypeAutoCompactionApplied); n != 0 {
				t.Errorf("an unusable summary was applied")
			}
			failed := slices.IndexFunc(events, func(e StreamEvent) bool { return e.Type == StreamEventTypeAutoCompactionFailed })
			if failed < 0 {
				t.Fatal("no failed event")
			}
			if err := events[failed].AutoCompaction.Err; !strings.Contains(err.Error(), c.reason) {
				t.Errorf("the reason is %q, want it to say %q", err, c.reason)
			}
			_, nested := a.sent()
			if nested[0].text() == nested[1].text() {
				t.Error("the second attempt sent the first request again")
			}
			if answerText(events) == "" || count(events, StreamEventTypeReasoningChunk) != 0 {
				t.Error("the compaction leaked into the parent stream")
			}
		})
	}
}

func TestDecision08_SecondAttemptMayGiveAUsableSummary(t *testing.T) {
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction && r.Nested == 1 {
			return say("")
		}
		return scripted(reads(12, 1700)...)(r)
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if count(events, StreamEventTypeAutoCompactionApplied) == 0 || count(events, StreamEventTypeAutoCompactionFailed) != 0 {
		t.Errorf("events: %v", kinds(events))
	}
}

func TestB92_RetryInsideTheCompactionDiscardsTheFailedAttempt(t *testing.T) {
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction && r.Nested == 1 {
			return fakeReply{deltas: []delta{{Text: "## Goal half a summ"}}, err: &apierror.Error{Kind: apierror.KindTransient, Message: "reset"}}
		}
		return scripted(reads(12, 1700)...)(r)
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if count(events, StreamEventTypeRetry) != 0 {
		t.Error("the parent saw a retry of the compaction")
	}
	for _, e := range events {
		if e.Type == StreamEventTypeAutoCompactionApplied && strings.Contains(e.AutoCompaction.Replacement[0].Content, "half a summ") {
			t.Error("the failed attempt is part of the summary")
		}
	}
}

func TestDecision09_FailedAttemptWaitsForGrowth(t *testing.T) {
	// B44: 95 % reached, the attempt fails, then ten-byte results follow.
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction {
			return fail(apierror.KindOther, "no summaries today")
		}
		switch {
		case r.Parent <= 4:
			return call("", readCall(fmt.Sprint(r.Parent), 4650))
		case r.Parent <= 8:
			return call("", readCall("tiny", 0))
		}
		return say("done")
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionStarted); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

func TestDecision09_CompactionsAreBoundedForEveryScript(t *testing.T) {
	// B41: for any tool results up to the window, compactions <= requests/2 + 1.
	for seed := range int64(20) {
		rng := rand.New(rand.NewSource(seed))
		a := small()
		a.hard = a.window
		steps := 5 + rng.Intn(20)
		a.script = func(r fakeRequest) fakeReply {
			if r.Compaction {
				if rng.Intn(6) == 0 {
					return fail(apierror.KindOther, "no")
				}
				return say(goodSummary + textOf(rng.Intn(2000)))
			}
			if r.Parent > steps {
				return say("done")
			}
			var calls []tools.Call
			for i := range 1 + rng.Intn(4) {
				calls = append(calls, readCall(fmt.Sprintf("f%d-%d", r.Parent, i), rng.Intn(a.window)))
			}
			return call(textOf(rng.Intn(800)), calls...)
		}
		c := newFakeClient(t, a)
		events := runTurn(t, c, registry(), user(task))
		compactions := count(events, StreamEventTypeAutoCompactionStarted)
		requests := count(events, StreamEventTypeStepStarted)
		if compactions > requests/2+1 {
			t.Errorf("seed %d: %d compactions in %d requests", seed, compactions, requests)
		}
		if last(events).Type != StreamEventTypeDone {
			t.Errorf("seed %d: the turn ended with %v", seed, last(events).Err)
		}
		for _, r := range a.requests {
			if r.Tokens+r.Output > a.window {
				t.Errorf("seed %d: a request of %d + %d tokens left Keen", seed, r.Tokens, r.Output)
			}
		}
	}
}

func TestB40_SameFileAgainAndAgainStopsCompacting(t *testing.T) {
	a := small()
	a.hard = a.window
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction {
			return say(goodSummary)
		}
		if r.Parent > 30 {
			return say("gave up")
		}
		return call("", readCall("huge.log", 50000))
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionStarted); n > 3 {
		t.Errorf("%d compactions, want at most 3", n)
	}
	i := slices.IndexFunc(events, func(e StreamEvent) bool { return e.Type == StreamEventTypeNotice })
	if i < 0 || !strings.Contains(events[i].Text, "huge.log") {
		t.Errorf("no notice names the file")
	}
}

func TestB02_CompactionWaitsForTheWholeBatch(t *testing.T) {
	a := small()
	a.script = scripted(
		call("three at once", readCall("one", 19000), readCall("two", 300), readCall("three", 300)),
		say("done"))
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	_, nested := a.sent()
	if len(nested) != 1 {
		t.Fatalf("%d compaction requests, want 1", len(nested))
	}
	for _, path := range []string{"one", "two", "three"} {
		if !strings.Contains(nested[0].text(), "<<"+path+">>") && !strings.Contains(nested[0].text(), path) {
			t.Errorf("the result of %s is missing", path)
		}
	}
	if nested[0].Tools != 0 || !nested[0].OneShot || nested[0].SessionID != "session-1" {
		t.Errorf("the compaction request has tools=%d oneShot=%v session=%q", nested[0].Tools, nested[0].OneShot, nested[0].SessionID)
	}
}

func TestB01_CompactionRunsBetweenRoundsOfOneTurn(t *testing.T) {
	a := mid()
	a.script = scripted(reads(30, 12000)...)
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), system("You are Keen."), user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionApplied); n < 2 {
		t.Fatalf("%d compactions, want several", n)
	}
	parent, _ := a.sent()
	for _, r := range parent {
		if r.Tokens > c.Sizes().Budget {
			t.Errorf("request %d has %d tokens", r.Parent, r.Tokens)
		}
		if r.System != "You are Keen." {
			t.Errorf("request %d lost the system prompt", r.Parent)
		}
		if n := strings.Count(r.text(), "<compacted_context>"); n > 1 {
			t.Errorf("request %d has %d wrappers", r.Parent, n)
		}
		if !strings.Contains(r.text(), task) {
			t.Errorf("request %d lost the task", r.Parent)
		}
	}
	applied := false
	for i, e := range events {
		if e.Type == StreamEventTypeAutoCompactionApplied {
			applied = true
			if events[i-1].Type != StreamEventTypeAutoCompactionStarted {
				t.Errorf("%s comes between started and applied", events[i-1].Type)
			}
			if len(e.AutoCompaction.Replacement) != 1 || e.AutoCompaction.Replacement[0].Compaction.Task != task {
				t.Errorf("the replacement is %+v", e.AutoCompaction.Replacement)
			}
		}
		if applied && e.Type == StreamEventTypeChunk && strings.Contains(e.Text, "## Goal") {
			t.Error("the summary reached the parent stream")
		}
	}
}

func TestB04_FixedPromptPartsCount(t *testing.T) {
	for _, c := range []struct {
		name   string
		system int
		want   int
	}{{"large system prompt", 14000, 1}, {"small system prompt", 10, 0}} {
		t.Run(c.name, func(t *testing.T) {
			a := mid()
			a.script = scripted(call("", readCall("a", 45000), readCall("b", 45000)), say("done"))
			events := runTurn(t, newFakeClient(t, a), registry(), system(textOf(c.system)), user(task))
			wantDone(t, events)
			if n := count(events, StreamEventTypeAutoCompactionApplied); n != c.want {
				t.Errorf("%d compactions, want %d", n, c.want)
			}
		})
	}
}

func TestB05_FixedPromptThatFillsTheWindowIsNotCompacted(t *testing.T) {
	a := small()
	a.script = scripted(reads(20, 200)...)
	events := runTurn(t, newFakeClient(t, a), registry(), system(textOf(18600)), user(task))
	if n := count(events, StreamEventTypeAutoCompactionStarted); n != 0 {
		t.Errorf("%d compactions, want 0", n)
	}
	wantDone(t, events)
	events = runTurn(t, newFakeClient(t, a), registry(), system(textOf(25000)), user(task))
	var ce *ContextError
	if !errors.As(last(events).Err, &ce) || ce.Largest.Kind != PartSystem || !errors.Is(last(events).Err, ErrContextWindowExceeded) {
		t.Errorf("got %v, want a context error that blames the system prompt", last(events).Err)
	}
}

func TestB08_OverflowByRequestedOutputIsAnsweredByASmallerLimit(t *testing.T) {
	a := &fakeAdapter{window: 131072, output: 30000}
	a.script = func(r fakeRequest) fakeReply {
		if r.Output > 20000 {
			return fakeReply{err: &apierror.Error{Kind: apierror.KindContextOverflow, Message: "too long", Used: 7884 + 131072, Input: 7884, Output: 131072, Limit: 28000}}
		}
		return say("done")
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task), Message{Role: RoleAssistant, Content: "old"}, user("more"))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionStarted); n != 0 {
		t.Errorf("%d compactions, want 0", n)
	}
}

func TestB16_B20_HugeResultIsClippedIntoTheCompaction(t *testing.T) {
	a := small()
	a.hard = a.window
	a.script = scripted(call("", readCall("a", 12000)), call("now the big one", readCall("big.go", 75000)), say("done"))
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	_, nested := a.sent()
	if len(nested) != 1 {
		t.Fatalf("%d compaction requests, want 1", len(nested))
	}
	if n := strings.Count(nested[0].text(), "<<big.go>>"); n != 2 {
		t.Errorf("head and tail of the big result: found %d of 2", n)
	}
	if !strings.Contains(nested[0].text(), task) {
		t.Error("the compaction request lost the task")
	}
}

func TestB34_B35_OverflowInAStreamOrAsAStopReasonIsRecovered(t *testing.T) {
	stop := fakeReply{deltas: []delta{{Text: "partial"}}, step: step{Text: "partial", Stop: StopContextWindow, RawStop: "model_context_window_exceeded"}}
	midStream := fakeReply{deltas: []delta{{Text: "par"}, {Text: "ti"}, {Text: "al"}}, err: &apierror.Error{Kind: apierror.KindContextOverflow, Message: "maximum context length is 32768 tokens", Limit: 32768}}
	silent := fakeReply{step: step{Stop: StopLength, Usage: &Usage{InputTokens: 32760}}}
	for name, bad := range map[string]fakeReply{"stop reason": stop, "mid-stream": midStream, "nothing at the end of the window": silent} {
		t.Run(name, func(t *testing.T) {
			a := small()
			a.script = scripted(call("reading", readCall("a", 5000)), bad, say(" finished"))
			events := runTurn(t, newFakeClient(t, a), registry(), user(task))
			wantDone(t, events)
			if got := answerText(events); got != "reading finished" {
				t.Errorf("the transcript is %q", got)
			}
			if n := count(events, StreamEventTypeAutoCompactionApplied); n != 1 {
				t.Errorf("%d compactions, want 1", n)
			}
		})
	}
}

func TestB37_BodySizeIsNotATokenOverflow(t *testing.T) {
	a := mid()
	a.script = scripted(fail(apierror.KindPayloadTooLarge, "Request exceeds the maximum size"))
	events := runTurn(t, newFakeClient(t, a), registry(), user("x"), Message{Role: RoleAssistant, Content: "y"}, user(task))
	var e *apierror.Error
	if !errors.As(last(events).Err, &e) || e.Kind != apierror.KindPayloadTooLarge || count(events, StreamEventTypeAutoCompactionStarted) != 0 {
		t.Errorf("got %v and %v", last(events).Err, kinds(events))
	}
}

func TestB38_ProviderOverrulesTheLocalCount(t *testing.T) {
	a := mid()
	a.script = scripted(call("", readCall("a", 50000)), fail(apierror.KindContextOverflow, "too large"), say("done"))
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionApplied); n != 1 {
		t.Errorf("%d compactions, want 1", n)
	}
}

func TestSecondOverflowAfterRecoveryIsTerminal(t *testing.T) {
	a := mid()
	a.script = scripted(call("", readCall("a", 50000)), fail(apierror.KindContextOverflow, "too large"), fail(apierror.KindContextOverflow, "still too large"), say("never"))
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	if end := last(events); end.Type != StreamEventTypeError || !errors.Is(end.Err, ErrContextWindowExceeded) {
		t.Errorf("the turn ended with %s: %v", end.Type, end.Err)
	}
	parent, nested := a.sent()
	if len(parent) != 3 || len(nested) != 1 {
		t.Errorf("%d requests and %d compactions, want 3 and 1", len(parent), len(nested))
	}
}

func TestB43_ErrorNamesTheLargestPart(t *testing.T) {
	refuse := func(r fakeRequest) fakeReply {
		if r.Compaction {
			return fail(apierror.KindOther, "no summaries")
		}
		if r.Parent == 1 && strings.Contains(r.text(), "READ") {
			return call("", readCall("huge.json", 60000))
		}
		return fail(apierror.KindContextOverflow, "too large")
	}
	for _, c := range []struct {
		name     string
		messages []Message
		kind     PartKind
		part     string
	}{
		{"system prompt", []Message{system(textOf(19000)), user(task)}, PartSystem, "system prompt"},
		{"pasted message", []Message{user(textOf(19000))}, PartTask, "your own message"},
		{"tool result", []Message{user("READ it")}, PartOutput, "read_file huge.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := small()
			a.script = refuse
			events := runTurn(t, newFakeClient(t, a), registry(), c.messages...)
			var ce *ContextError
			if !errors.As(last(events).Err, &ce) {
				t.Fatalf("got %v", last(events).Err)
			}
			if ce.Largest.Kind != c.kind || !strings.Contains(ce.Error(), c.part) {
				t.Errorf("got %q", ce.Error())
			}
		})
	}
}

func TestB46_FinishedAnswerIsNotCompacted(t *testing.T) {
	a := small()
	a.script = scripted(say("final"))
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user("x"), Message{Role: RoleAssistant, Content: textOf(c.Sizes().Budget * 97 / 100)}, user("and now?"))
	wantDone(t, events)
	if parent, nested := a.sent(); len(parent) != 1 || len(nested) != 0 {
		t.Errorf("%d requests and %d compactions", len(parent), len(nested))
	}
}

func TestB47_RoundsAfterACompactionStartFromTheRebuiltHistory(t *testing.T) {
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		switch {
		case r.Compaction:
			return say(goodSummary)
		case r.Parent == 1:
			return call("", readCall("old", 19500))
		case r.Parent <= 6:
			return call("", readCall("tiny", 5))
		}
		return say("done")
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionApplied); n != 1 {
		t.Errorf("%d compactions, want 1", n)
	}
	parent, _ := a.sent()
	for _, r := range parent[1:] {
		if strings.Contains(r.text(), "<<old>>") || strings.Count(r.text(), "<compacted_context>") != 1 {
			t.Errorf("request %d does not start from the rebuilt history", r.Parent)
		}
	}
}

func TestB49_PromptAloneTooLargeEndsTheTurn(t *testing.T) {
	a := small()
	a.hard = a.window
	a.script = scripted(say("never"))
	events := runTurn(t, newFakeClient(t, a), registry(), user(textOf(40000)))
	var ce *ContextError
	if !errors.As(last(events).Err, &ce) || ce.Largest.Kind != PartTask {
		t.Errorf("got %v", last(events).Err)
	}
	if parent, nested := a.sent(); len(parent)+len(nested) != 0 {
		t.Errorf("%d requests and %d compactions were sent, want none", len(parent), len(nested))
	}
}

func TestB50_FailedProactiveCompactionLeavesTheRequestAsItWas(t *testing.T) {
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction {
			return fail(apierror.KindTransient, "500 on every attempt")
		}
		return []fakeReply{call("", readCall("a", 19000)), say("done")}[r.Parent-1]
	}
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	parent, _ := a.sent()
	if len(parent) != 2 {
		t.Fatalf("%d requests, want 2", len(parent))
	}
	if n := len(parent[0].Items); strings.Join(parent[1].Items[:n], "\n") != strings.Join(parent[0].Items, "\n") || !strings.Contains(parent[1].text(), "<<a>>") {
		t.Error("the request after the failure is not the one that would have been sent")
	}
	if count(events, StreamEventTypeAutoCompactionFailed) != 1 {
		t.Errorf("events: %v", kinds(events))
	}
}

func TestB52_TaskThatFillsTheWindowIsCompactedAtMostOnce(t *testing.T) {
	a := mid()
	a.script = scripted(reads(40, 3000)...)
	c := newFakeClient(t, a)
	limit := threshold(c.Sizes().Budget)
	events := runTurn(t, c, registry(), user("before"), Message{Role: RoleAssistant, Content: textOf(limit / 10)}, user(textOf(limit*95/100)))
	if n := count(events, StreamEventTypeAutoCompactionStarted); n > 1 {
		t.Errorf("%d compactions, want at most 1", n)
	}
	wantDone(t, events)
}

func TestB52_ProactiveAndForcedInOneRoundMakeOneRequest(t *testing.T) {
	a := small()
	a.script = scripted(call("", readCall("a", 9000), readCall("b", 9000), readCall("c", 9000)), say("done"))
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	if _, nested := a.sent(); len(nested) != 1 {
		t.Errorf("%d compaction requests, want 1", len(nested))
	}
}

func TestDecision10_WrappersNeverNest(t *testing.T) {
	// B62: two compactions in one turn, three over two turns.
	a := small()
	a.script = scripted(reads(30, 1700)...)
	c := newFakeClient(t, a)
	events := runTurn(t, c, registry(), user(task))
	wantDone(t, events)
	var history []Message
	for _, e := range events {
		if e.Type == StreamEventTypeAutoCompactionApplied {
			history = e.AutoCompaction.Replacement
		}
	}
	if n := count(events, StreamEventTypeAutoCompactionApplied); n < 2 {
		t.Fatalf("%d compactions, want 2 or more", n)
	}
	const next = "Now write it down."
	history = append(history, Message{Role: RoleAssistant, Content: "All done."}, user(next))
	b := small()
	b.script = scripted(reads(12, 1700)...)
	events = runTurn(t, newFakeClient(t, b), registry(), history...)
	wantDone(t, events)
	parent, nested := b.sent()
	if first := parent[0].text(); !strings.Contains(first, "was the most recent user message") || strings.Contains(first, "is the most recent user message") {
		t.Error("the superseded wrapper still claims to hold the most recent message")
	}
	for _, r := range nested {
		if strings.Contains(r.text(), "<compacted_context>") || strings.Contains(r.text(), "<last_user_message>") {
			t.Error("the compaction request holds the wrapper's text")
		}
		if !strings.Contains(r.text(), task) {
			t.Error("the compaction request lost the first user's words")
		}
	}
	for _, e := range events {
		if e.Type != StreamEventTypeAutoCompactionApplied {
			continue
		}
		m := e.AutoCompaction.Replacement[0]
		if strings.Count(m.Content, "<compacted_context>") != 1 || strings.Count(m.Content, "<last_user_message>") != 1 || m.Compaction.Task != next {
			t.Errorf("the second turn's wrapper is wrong:\n%s", m.Content)
		}
	}
}

func TestDecision11_FailedForcedRecoveryEndsWithAnActionableError(t *testing.T) {
	a := small()
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction {
			return fail(apierror.KindOther, "no summaries today")
		}
		return []fakeReply{call("", readCall("a", 4000)), fail(apierror.KindContextOverflow, "too large")}[min(r.Parent, 2)-1]
	}
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	var ce *ContextError
	if !errors.As(last(events).Err, &ce) || !strings.Contains(ce.Error(), "no summaries today") {
		t.Fatalf("got %v", last(events).Err)
	}
	if parent, _ := a.sent(); len(parent) != 2 {
		t.Errorf("%d requests; the known-oversized one was sent again", len(parent))
	}
}

func TestDecision12_LoopStateIsSwappedBeforeAppliedIsEmitted(t *testing.T) {
	a := small()
	a.script = scripted(reads(14, 1700)...)
	c := newFakeClient(t, a)
	var before int
	runTurnWith(t, context.Background(), c, registry(), func(e StreamEvent) {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch e.Type {
		case StreamEventTypeToolEnded:
			before = a.started
		case StreamEventTypeAutoCompactionApplied:
			// The compaction's own turn, and the rebuilt one; the guard may
			// have sized up one more.
			if a.started < before+2 {
				t.Error("applied came before the history was rebuilt")
			}
			e.AutoCompaction.Replacement[0].Content = "the consumer owns this"
		}
	}, user(task))
	parent, _ := a.sent()
	for _, r := range parent {
		if strings.Contains(r.text(), "the consumer owns this") {
			t.Error("the consumer's copy is the loop's")
		}
	}
}

func TestB70_EscCancelsOnlyTheCompaction(t *testing.T) {
	block := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	text := fakeReply{deltas: []delta{{Text: "## Goal"}}, before: nil}
	text.err = nil
	for name, nested := range map[string]fakeReply{
		"before the first byte": {before: block},
		"in a retry's backoff":  fail(apierror.KindRateLimit, "slow down"),
	} {
		t.Run(name, func(t *testing.T) {
			a := small()
			a.script = func(r fakeRequest) fakeReply {
				if r.Compaction {
					return nested
				}
				return reads(12, 1700)[r.Parent-1]
			}
			c, err := newClient(a, ClientConfig{Retry: RetryPolicy{MaxRetries: 3, BaseDelay: time.Hour, MaxDelay: time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			events := runTurnWith(t, context.Background(), c, registry(), func(e StreamEvent) {
				if e.Type == StreamEventTypeAutoCompactionStarted {
					e.AutoCompaction.Cancel()
					e.AutoCompaction.Cancel()
				}
			}, user(task))
			wantDone(t, events)
			if count(events, StreamEventTypeAutoCompactionCancelled) == 0 || count(events, StreamEventTypeAutoCompactionFailed) != 0 {
				t.Errorf("events: %v", kinds(events))
			}
		})
	}
}

func TestB71_CancelledCompactionDoesNotComeBackAtOnce(t *testing.T) {
	a := small()
	a.script = scripted(call("", readCall("a", 19200)), call("", readCall("b", 10)), call("", readCall("c", 10)), say("done"))
	c := newFakeClient(t, a)
	cancel := func(e StreamEvent) {
		if e.Type == StreamEventTypeAutoCompactionStarted && !e.AutoCompaction.Forced {
			e.AutoCompaction.Cancel()
		}
	}
	events := runTurnWith(t, context.Background(), c, registry(), cancel, user(task))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionStarted); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	// The next turn starts afresh.
	events = runTurnWith(t, context.Background(), c, registry(), cancel, user("x"), Message{Role: RoleAssistant, Content: textOf(30000)}, user("go on"))
	wantDone(t, events)
	if n := count(events, StreamEventTypeAutoCompactionApplied); n != 1 {
		t.Errorf("%d compactions in the next turn, want 1", n)
	}
}

func TestCtrlCDuringCompactionEndsTheTurn(t *testing.T) {
	a := small()
	ctx, cancel := context.WithCancel(context.Background())
	a.script = func(r fakeRequest) fakeReply {
		if r.Compaction {
			cancel()
			return fakeReply{before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		}
		return reads(12, 1700)[r.Parent-1]
	}
	events := runTurnWith(t, ctx, newFakeClient(t, a), registry(), func(StreamEvent) {}, user(task))
	if end := last(events); end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, context.Canceled) {
		t.Errorf("the turn ended with %s: %v", end.Type, end.Err)
	}
}
