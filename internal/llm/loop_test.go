package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

func TestMain(m *testing.M) {
	// Genkit and Google's client write to both.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	goleak.VerifyTestMain(m, genkitGoroutines...)
}

// genkitGoroutines are what the first genkit.Init of a process leaves behind.
var genkitGoroutines = []goleak.Option{
	goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
}

func TestTurnRunsToolsUntilThereIsAnAnswer(t *testing.T) {
	a := small()
	a.script = scripted(call("I read.", readCall("a", 5), readCall("b", 5)), say("It is done."))
	events := runTurn(t, newFakeClient(t, a), registry(), system("sys"), user(task))
	want := []StreamEventType{
		StreamEventTypeStepStarted, StreamEventTypeChunk,
		StreamEventTypeToolStarted, StreamEventTypeToolEnded, StreamEventTypeToolStarted, StreamEventTypeToolEnded,
		StreamEventTypeStepStarted, StreamEventTypeChunk, StreamEventTypeDone,
	}
	if diff := cmp.Diff(want, kinds(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	parent, _ := a.sent()
	if diff := cmp.Diff(parent[0].Items, parent[1].Items[:len(parent[0].Items)]); diff != "" {
		t.Errorf("the second request does not extend the first:\n%s", diff)
	}
	text := parent[1].text()
	order := []string{"user: " + task, "assistant: I read.", "call live_1", "call live_2", "result live_1", "result live_2"}
	at := 0
	for _, piece := range order {
		i := strings.Index(text[at:], piece)
		if i < 0 {
			t.Fatalf("%q is missing or out of order in:\n%s", piece, text)
		}
		at += i
	}
}

func TestDecision15_TransientErrorsAreRetriedAfterARewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := small()
		a.script = scripted(
			fakeReply{deltas: []delta{{Text: "half an ans"}}, err: &apierror.Error{Kind: apierror.KindTransient, Message: "reset"}},
			fakeReply{err: &apierror.Error{Kind: apierror.KindRateLimit, Message: "slow down", RetryAfter: 42 * time.Second}},
			say("a whole answer"))
		c, err := newClient(a, ClientConfig{Provider: "fake"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		events := runTurn(t, c, nil, user(task))
		wantDone(t, events)
		if got := answerText(events); got != "a whole answer" {
			t.Errorf("the answer is %q", got)
		}
		var delays []time.Duration
		for _, e := range events {
			if e.Type == StreamEventTypeRetry {
				delays = append(delays, e.Retry.Delay)
			}
		}
		if len(delays) != 2 || delays[1] != 42*time.Second {
			t.Errorf("the delays are %v; Retry-After was 42s", delays)
		}
		if waited := time.Since(start); waited < 42*time.Second {
			t.Errorf("only waited %v", waited)
		}
	})
}

func TestDecision15_RetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := small()
		a.script = scripted(fail(apierror.KindTransient, "overloaded"))
		c, err := newClient(a, ClientConfig{Provider: "fake"})
		if err != nil {
			t.Fatal(err)
		}
		events := runTurn(t, c, nil, user(task))
		if last(events).Type != StreamEventTypeError || len(a.requests) != DefaultRetryPolicy.MaxRetries+1 {
			t.Errorf("%d requests, ended with %v", len(a.requests), last(events).Err)
		}
	})
}

func TestDecision15_WaitOfARetryIsCancellable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := small()
		a.script = scripted(fail(apierror.KindTransient, "overloaded"))
		c, err := newClient(a, ClientConfig{Retry: RetryPolicy{MaxRetries: 1, BaseDelay: time.Hour, MaxDelay: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		events := runTurnWith(t, ctx, c, nil, func(e StreamEvent) {
			if e.Type == StreamEventTypeRetry {
				cancel()
			}
		}, user(task))
		if !errors.Is(last(events).Err, context.Canceled) || time.Since(start) > time.Second {
			t.Errorf("ended after %v with %v", time.Since(start), last(events).Err)
		}
	})
}

func TestErrorsThatAreNotTransientAreNotRetried(t *testing.T) {
	for _, kind := range []apierror.Kind{apierror.KindAuth, apierror.KindQuota, apierror.KindOther, apierror.KindPayloadTooLarge} {
		a := small()
		a.script = scripted(fail(kind, "no"))
		events := runTurn(t, newFakeClient(t, a), nil, user(task))
		if last(events).Type != StreamEventTypeError || len(a.requests) != 1 {
			t.Errorf("%s: %d requests, %v", kind, len(a.requests), last(events).Type)
		}
	}
}

func TestOverflowIsNotRetriedAsATransientError(t *testing.T) {
	a := small()
	a.script = scripted(fail(apierror.KindContextOverflow, "too long"))
	events := runTurn(t, newFakeClient(t, a), nil, user(task))
	if len(a.requests) != 1 || count(events, StreamEventTypeRetry) != 0 || !errors.Is(last(events).Err, ErrContextWindowExceeded) {
		t.Errorf("%d requests, events %v, error %v", len(a.requests), kinds(events), last(events).Err)
	}
}

func TestMaxOutputErrorLowersTheOutputLimit(t *testing.T) {
	a := mid()
	a.output = 20000
	a.script = func(r fakeRequest) fakeReply {
		if r.Output > 4096 {
			return fakeReply{err: &apierror.Error{Kind: apierror.KindMaxOutput, Message: "at most 4096", Limit: 4096}}
		}
		return say("ok")
	}
	c := newFakeClient(t, a)
	wantDone(t, runTurn(t, c, nil, user(task)))
	if got := c.Sizes().Output; got != 4096 {
		t.Errorf("the output limit is %d, want 4096", got)
	}
}

func TestDecision17_CutAnswerIsContinued(t *testing.T) {
	cut := fakeReply{deltas: []delta{{Text: "the first half, "}}, step: step{Text: "the first half, ", Stop: StopLength}}
	a := small()
	a.script = scripted(cut, say("the second half"))
	events := runTurn(t, newFakeClient(t, a), nil, user(task))
	wantDone(t, events)
	if got := answerText(events); got != "the first half, the second half" {
		t.Errorf("the answer is %q", got)
	}
	parent, _ := a.sent()
	if n := len(parent[1].Items); !strings.HasPrefix(parent[1].Items[n-1], "user: Your answer was cut off") {
		t.Errorf("the request ends with %q", parent[1].Items[n-1])
	}
}

func TestDecision17_CutToolCallIsNotRun(t *testing.T) {
	runs := 0
	cut := fakeReply{step: step{Calls: []tools.Call{readCall("a", 5)}, Stop: StopLength}}
	a := small()
	a.script = scripted(cut, say("I will write less"))
	events := runTurn(t, newFakeClient(t, a), tools.NewRegistry(sizedTool{&runs}), user(task))
	wantDone(t, events)
	if runs != 0 {
		t.Error("half a call was run")
	}
	if parent, _ := a.sent(); !strings.Contains(parent[1].text(), "tool call was cut off") {
		t.Error("the model was not told")
	}
}

func TestDecision17_AnswerThatIsCutAgainAndAgainIsReported(t *testing.T) {
	a := small()
	a.script = scripted(fakeReply{step: step{Text: "more ", Stop: StopLength}})
	events := runTurn(t, newFakeClient(t, a), nil, user(task))
	if end := last(events); end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, ErrOutputLimit) || end.StopReason != StopLength {
		t.Errorf("ended with %+v", end)
	}
	if len(a.requests) != maxCuts {
		t.Errorf("%d requests, want %d", len(a.requests), maxCuts)
	}
}

func TestRefusalIsReported(t *testing.T) {
	a := small()
	a.script = scripted(fakeReply{step: step{Text: "I", Stop: StopRefusal, RawStop: "content_filter"}})
	end := last(runTurn(t, newFakeClient(t, a), nil, user(task)))
	if end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, ErrRefused) {
		t.Errorf("ended with %+v", end)
	}
}

func TestEmptyAnswerIsAskedForOnceMore(t *testing.T) {
	a := small()
	a.script = scripted(say(""), say("here"))
	wantDone(t, runTurn(t, newFakeClient(t, a), nil, user(task)))
	b := small()
	b.script = scripted(say(""))
	end := last(runTurn(t, newFakeClient(t, b), nil, user(task)))
	if end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, ErrEmptyAnswer) || len(b.requests) != 2 {
		t.Errorf("%d requests, ended with %+v", len(b.requests), end)
	}
}

// stepTool cancels the turn while it runs.
type stepTool struct{ cancel func() }

func (s stepTool) Spec() tools.Spec {
	return tools.Spec{Name: "stop", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (s stepTool) Run(ctx context.Context, _ json.RawMessage, report func(tools.Progress)) (tools.Result, error) {
	report(tools.Progress{Text: "working"})
	s.cancel()
	<-ctx.Done()
	return tools.Result{Output: "half"}, ctx.Err()
}

func TestDecision14_InterruptedBatchLeavesAResultForEachCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := small()
	a.script = scripted(call("three", readCall("a", 5), toolCall("stop", "{}"), readCall("c", 5)), say("never"))
	events := runTurnWith(t, ctx, newFakeClient(t, a), tools.NewRegistry(sizedTool{}, stepTool{cancel}), func(StreamEvent) {}, user(task))
	var statuses []tools.Status
	for _, e := range events {
		if e.Type == StreamEventTypeToolEnded {
			statuses = append(statuses, e.Tool.Result.Status)
		}
	}
	want := []tools.Status{tools.StatusSuccess, tools.StatusCancelled, tools.StatusCancelled}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if end := last(events); end.Type != StreamEventTypeIncomplete || !errors.Is(end.Err, context.Canceled) {
		t.Errorf("ended with %+v", end)
	}
	if count(events, StreamEventTypeToolOutput) != 1 {
		t.Error("the tool's progress is missing")
	}
}

func TestDecision14_WorkOfAnInterruptedTurnIsInTheNextOne(t *testing.T) {
	code := 1
	history := []Message{
		user(task),
		{Role: RoleAssistant, Content: "I read.", ToolActivities: []HistoricalToolActivity{
			{TextOffset: 7, Tool: "read_file", Input: json.RawMessage(`{"path":"a"}`), Status: tools.StatusSuccess, HasRawOutput: true, RawOutput: "RAW OUTPUT OF A"},
			{TextOffset: 7, Tool: "bash", Input: json.RawMessage(`{"command":"make"}`), Status: tools.StatusError, ExitCode: &code},
		}},
		user("go on"),
	}
	a := small()
	a.script = scripted(say("ok"))
	wantDone(t, runTurn(t, newFakeClient(t, a), registry(), history...))
	text := a.requests[0].text()
	for _, want := range []string{"assistant: I read.", "RAW OUTPUT OF A", `"exit_code":1`, "user: go on"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestUnknownToolsAndBadInputBecomeResults(t *testing.T) {
	a := small()
	a.script = scripted(call("", toolCall("no_such_tool", "{}"), toolCall("read_file", string(NormalizeInput("{oops")))), say("ok"))
	events := runTurn(t, newFakeClient(t, a), registry(), user(task))
	wantDone(t, events)
	parent, _ := a.sent()
	if text := parent[1].text(); !strings.Contains(text, "there is no tool named") || !strings.Contains(text, "not valid JSON") {
		t.Errorf("the model was not told:\n%s", text)
	}
}

func TestHistoryIsNotChangedAndNotKept(t *testing.T) {
	a := small()
	a.script = scripted(reads(14, 1700)...)
	history := []Message{user("first"), {Role: RoleAssistant, Content: "x", ToolActivities: []HistoricalToolActivity{{Tool: "read_file", Input: json.RawMessage(`{"path":"a"}`), HasRawOutput: true, RawOutput: "raw"}}}, user(task)}
	before := CloneMessages(history)
	wantDone(t, runTurn(t, newFakeClient(t, a), registry(), history...))
	if diff := cmp.Diff(before, history); diff != "" {
		t.Errorf("the caller's history changed:\n%s", diff)
	}
}

func TestHistoryWithoutAUserMessageIsRefused(t *testing.T) {
	a := small()
	if _, err := newFakeClient(t, a).StreamChat(t.Context(), []Message{system("x")}, nil, StreamOptions{}); err == nil {
		t.Error("no error")
	}
}

func TestPanicEndsTheTurnAndNotTheProgram(t *testing.T) {
	a := small()
	a.script = func(fakeRequest) fakeReply {
		return fakeReply{before: func(context.Context) error { panic("a fault in an adapter") }}
	}
	end := last(runTurn(t, newFakeClient(t, a), nil, user(task)))
	if end.Type != StreamEventTypeError || !strings.Contains(end.Err.Error(), "a fault in an adapter") {
		t.Errorf("ended with %s: %v", end.Type, end.Err)
	}
}

func TestOneShotEndsAfterOneSample(t *testing.T) {
	a := small()
	a.script = func(fakeRequest) fakeReply { return call("text", readCall("a", 5)) }
	events, err := newFakeClient(t, a).StreamChat(t.Context(), []Message{user(task)}, registry(), StreamOptions{OneShot: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []StreamEvent
	for e := range events {
		all = append(all, e)
	}
	if len(a.requests) != 1 || a.requests[0].Tools != 0 || last(all).Type != StreamEventTypeIncomplete {
		t.Errorf("%d requests with %d tools, ended with %+v", len(a.requests), a.requests[0].Tools, last(all))
	}
}

func TestRawOutputNeverReachesJSON(t *testing.T) {
	m := Message{Role: RoleAssistant, ToolActivities: []HistoricalToolActivity{{Tool: "bash", HasRawOutput: true, RawOutput: "SECRET-MARKER"}}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "SECRET-MARKER") || strings.Contains(string(text), "aw_output") || strings.Contains(string(text), "RawOutput") {
		t.Errorf("raw output is in %s", text)
	}
}

func TestClonesAreDeep(t *testing.T) {
	code := 3
	original := []Message{{
		Role: RoleAssistant, Content: "c", Compaction: &CompactedContext{Summary: "s", Task: "t"},
		ToolActivities: []HistoricalToolActivity{{Tool: "bash", Input: json.RawMessage(`{"a":1}`), ExitCode: &code, HasRawOutput: true, RawOutput: "raw"}},
	}}
	clone := CloneMessages(original)
	if diff := cmp.Diff(original, clone); diff != "" {
		t.Fatalf("the clone differs:\n%s", diff)
	}
	clone[0].ToolActivities[0].Input[2] = 'X'
	*clone[0].ToolActivities[0].ExitCode = 9
	clone[0].ToolActivities[0].RawOutput = "changed"
	clone[0].Compaction.Task = "changed"
	if a := original[0].ToolActivities[0]; string(a.Input) != `{"a":1}` || *a.ExitCode != 3 || a.RawOutput != "raw" || original[0].Compaction.Task != "t" {
		t.Errorf("changing the clone changed the original: %+v", original[0])
	}
	stripped := WithoutRawOutput(original)
	if a := stripped[0].ToolActivities[0]; a.HasRawOutput || a.RawOutput != "" {
		t.Error("raw output survived WithoutRawOutput")
	}
}

func TestB88_ReducerLeavesTheHistoryWhole(t *testing.T) {
	var h nativeHistory[string]
	for _, text := range []string{"first", "second", "third"} {
		h.beginResults()
		h.addOutput(text+" "+textOf(4000)+text, 4, func(o string) string { return "result " + o })
	}
	before := append([]string(nil), h.values...)
	values, size, err := h.fit(9000)
	if err != nil {
		t.Fatal(err)
	}
	if size > 9000 {
		t.Errorf("the reduced request has %d tokens", size)
	}
	if diff := cmp.Diff(before, h.values); diff != "" {
		t.Error("the reducer changed the history in place")
	}
	if strings.Contains(values[0], "fox") && len(values[0]) >= len(before[0]) {
		t.Error("the oldest output was not shortened")
	}
	if values[2] != before[2] {
		t.Error("the newest output was shortened although the older ones had room to give")
	}
	if _, _, err := h.fit(10); !errors.Is(err, ErrContextWindowExceeded) {
		t.Errorf("got %v, want the context error", err)
	}
}

func TestDecision16_NoRequestEndsWithTheAssistant(t *testing.T) {
	entries := formatHistory([]Message{user("x"), {Role: RoleAssistant, Content: "said"}})
	if e := entries[len(entries)-1]; e.kind != entryUser {
		t.Errorf("the last entry is of kind %d", e.kind)
	}
	entries = formatHistory([]Message{user("x"), {Role: RoleAssistant, Content: "I will read.", ToolActivities: []HistoricalToolActivity{{TextOffset: 12, Tool: "read_file", HasRawOutput: true, RawOutput: "out"}}}})
	if len(entries) != 3 || entries[1].text != "I will read." || len(entries[1].calls) != 1 || entries[2].results[0].Output != "out" {
		t.Errorf("the order is wrong: %+v", entries)
	}
}
