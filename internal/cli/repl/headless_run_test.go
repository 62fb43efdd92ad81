package repl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/appstate"
	"keen/internal/llm"
	"keen/internal/permission"
	"keen/internal/session"
	"keen/internal/tools"
)

// scriptedClient is an LLMClient that plays events; onEvent sees each before
// it is sent.
type scriptedClient struct {
	events   []llm.StreamEvent
	requests [][]llm.Message
}

func (c *scriptedClient) StreamChat(_ context.Context, messages []llm.Message, _ *tools.Registry, _ llm.StreamOptions) (<-chan llm.StreamEvent, error) {
	c.requests = append(c.requests, messages)
	out := make(chan llm.StreamEvent)
	go func() {
		defer close(out)
		for _, e := range c.events {
			out <- e
		}
	}()
	return out, nil
}

// memoryLog keeps what was appended, as it would be read back from a file.
type memoryLog struct {
	batches [][]session.Event
	raw     bytes.Buffer
	fail    error
}

func (l *memoryLog) Append(events ...session.Event) error {
	if l.fail != nil && len(l.batches) > 0 {
		return l.fail
	}
	text, err := json.Marshal(events)
	if err != nil {
		return err
	}
	l.raw.Write(text)
	var stored []session.Event
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	l.batches = append(l.batches, stored)
	return nil
}

func (l *memoryLog) events() []session.Event {
	var all []session.Event
	for _, b := range l.batches {
		all = append(all, b...)
	}
	return all
}

func step(n int) llm.StreamEvent {
	return llm.StreamEvent{Type: llm.StreamEventTypeStepStarted, Step: &llm.StepInfo{Number: n, ContextTokens: 100 * n, Budget: 1000, Window: 2000}}
}

func chunk(text string) llm.StreamEvent {
	return llm.StreamEvent{Type: llm.StreamEventTypeChunk, Text: text}
}

func ran(id, name, output string) []llm.StreamEvent {
	call := tools.Call{ID: id, Name: name, Input: json.RawMessage(`{"path":"a.go"}`)}
	return []llm.StreamEvent{
		{Type: llm.StreamEventTypeToolStarted, Tool: &llm.ToolEvent{Call: call}},
		{Type: llm.StreamEventTypeToolEnded, Tool: &llm.ToolEvent{Call: call, Result: &tools.Result{CallID: id, Tool: name, Status: tools.StatusSuccess, Output: output}}},
	}
}

const wrapperText = "<compacted_context>\nPRIVATE SUMMARY\n</compacted_context>\n\n<last_user_message>\ndo it\n</last_user_message>"

func compaction(kind llm.StreamEventType) llm.StreamEvent {
	e := &llm.AutoCompactionEvent{Cancel: func() {}}
	switch kind {
	case llm.StreamEventTypeAutoCompactionApplied:
		e.Replacement = []llm.Message{{Role: llm.RoleUser, Content: wrapperText, Compaction: &llm.CompactedContext{Summary: "PRIVATE SUMMARY", Task: "do it"}}}
		e.Usage = &llm.Usage{InputTokens: 1000, OutputTokens: 50}
	case llm.StreamEventTypeAutoCompactionFailed:
		e.Err = errors.New("no summary")
	}
	return llm.StreamEvent{Type: kind, AutoCompaction: e}
}

func usage(in, out int) llm.StreamEvent {
	return llm.StreamEvent{Type: llm.StreamEventTypeUsage, Usage: &llm.Usage{InputTokens: in, OutputTokens: out}}
}

func done() llm.StreamEvent { return llm.StreamEvent{Type: llm.StreamEventTypeDone} }

// compactedTurn is a turn with one compaction in its middle.
func compactedTurn() []llm.StreamEvent {
	events := []llm.StreamEvent{step(1), chunk("I read "), chunk("the file."), usage(10, 5)}
	events = append(events, ran("1", "read_file", "RAW-OUTPUT-MARKER")...)
	events = append(events, compaction(llm.StreamEventTypeAutoCompactionStarted), compaction(llm.StreamEventTypeAutoCompactionApplied))
	events = append(events, step(2), chunk("Now I change it."), usage(20, 7))
	events = append(events, ran("2", "edit_file", "EDIT-MARKER")...)
	return append(events, step(3), chunk("Finished."), usage(30, 9), done())
}

func headless(client llm.LLMClient, log Appender, format HeadlessFormat) (*HeadlessRun, *bytes.Buffer) {
	out := new(bytes.Buffer)
	return &HeadlessRun{
		Client: client, State: appstate.New("system", nil), Log: log, SessionID: "s1", Model: "m1", Format: format, Stdout: out,
	}, out
}

func TestHeadlessTextKeepsWhatWasSaidBeforeAndAfterACheckpointInOrder(t *testing.T) {
	run, out := headless(&scriptedClient{events: compactedTurn()}, &memoryLog{}, FormatText)
	result, err := run.Run(t.Context(), "do it")
	if err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	if got, want := out.String(), "I read the file.\n\nNow I change it.\n\nFinished.\n"; got != want {
		t.Errorf("stdout is %q, want %q", got, want)
	}
}

func TestHeadlessJSONIsOneDocumentWithoutTheSummary(t *testing.T) {
	run, out := headless(&scriptedClient{events: compactedTurn()}, &memoryLog{}, FormatJSON)
	if _, err := run.Run(t.Context(), "do it"); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"PRIVATE SUMMARY", "Compacting", "Context compacted", "RAW-OUTPUT"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("stdout holds %q", secret)
		}
	}
	var doc HeadlessResult
	d := json.NewDecoder(out)
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Error("there is more than one document")
	}
	want := HeadlessResult{
		Type: "result", SessionID: "s1", Model: "m1", Status: session.OutcomeDone,
		Text:  "I read the file.\n\nNow I change it.\n\nFinished.",
		Usage: &llm.Usage{InputTokens: 1060, OutputTokens: 71}, Steps: 3, Compactions: 1, DurationMS: doc.DurationMS,
	}
	if diff := cmp.Diff(want, doc, cmp.AllowUnexported(HeadlessResult{})); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestHeadlessStreamJSONIsLines(t *testing.T) {
	run, out := headless(&scriptedClient{events: compactedTurn()}, &memoryLog{}, FormatStreamJSON)
	if _, err := run.Run(t.Context(), "do it"); err != nil {
		t.Fatal(err)
	}
	var types []string
	for line := range strings.Lines(out.String()) {
		var v struct{ Type, Phase string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		types = append(types, strings.TrimSuffix(v.Type+":"+v.Phase, ":"))
	}
	want := []string{
		"session", "step", "text", "text", "usage", "tool_start", "tool_end", "compaction:started", "compaction:applied",
		"step", "text", "usage", "tool_start", "tool_end", "step", "text", "usage", "result",
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if strings.Contains(out.String(), "PRIVATE SUMMARY") {
		t.Error("the summary is in the stream")
	}
}

func TestCheckpointIsStoredInOneBatchAndProjectsTheReplacement(t *testing.T) {
	log := &memoryLog{}
	run, _ := headless(&scriptedClient{events: compactedTurn()}, log, FormatText)
	if _, err := run.Run(t.Context(), "do it"); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, batch := range log.batches {
		for i, e := range batch {
			if e.Kind != session.KindCompactionApplied {
				continue
			}
			found = true
			if i != 1 || batch[0].Kind != session.KindAssistantTurn || batch[0].Outcome != session.OutcomeCheckpoint {
				t.Errorf("the checkpoint does not stand directly before the compaction in one batch: %+v", batch)
			}
			if e.Status != "" || e.Transcript != "" {
				t.Errorf("the automatic compaction has status %q, transcript %q", e.Status, e.Transcript)
			}
		}
	}
	if !found {
		t.Fatal("no compaction was stored")
	}
	conversation := session.BuildConversation(log.events())
	var contents []string
	for _, m := range conversation {
		contents = append(contents, m.Content)
	}
	if diff := cmp.Diff([]string{wrapperText, "Now I change it.", "Finished."}, contents); diff != "" {
		t.Errorf("projection (-want +got):\n%s", diff)
	}
	var visible []string
	for _, item := range session.Replay(log.events()) {
		visible = append(visible, fmt.Sprint(item.Kind, " ", item.Text))
	}
	want := []string{"user do it", "text I read the file.", "tool ", "text Now I change it.", "tool ", "text Finished."}
	if diff := cmp.Diff(want, visible); diff != "" {
		t.Errorf("replay (-want +got):\n%s", diff)
	}
	// B83: neither raw outputs nor the summary outside the compaction event.
	if raw := log.raw.String(); strings.Contains(raw, "RAW-OUTPUT-MARKER") || strings.Contains(raw, "EDIT-MARKER") || strings.Count(raw, "PRIVATE SUMMARY") != 2 {
		t.Errorf("the session holds what it must not: %s", raw)
	}
	if got := session.TotalUsage(log.events()); got == nil || got.InputTokens != 1060 {
		t.Errorf("the session's usage is %+v, want 1060 input tokens", got)
	}
	if diff := cmp.Diff(conversation, run.State.Messages()); diff != "" {
		t.Errorf("the state differs from what a resume would see (-resume +state):\n%s", diff)
	}
}

func TestB80_EveryStepIsStoredBeforeTheNextOne(t *testing.T) {
	log := &memoryLog{}
	turn := NewTurn(appstate.New("", []llm.Message{{Role: llm.RoleUser, Content: "do it"}}), "m")
	var stored []int
	for _, e := range compactedTurn() {
		if batch := turn.Fold(e); len(batch) > 0 {
			if err := log.Append(batch...); err != nil {
				t.Fatal(err)
			}
		}
		if e.Type == llm.StreamEventTypeStepStarted {
			stored = append(stored, len(session.BuildConversation(log.events())))
		}
	}
	// Nothing before step 1; the replacement before step 2; replacement and
	// step 2 before step 3.
	if diff := cmp.Diff([]int{0, 1, 2}, stored); diff != "" {
		t.Errorf("messages stored at the start of each step (-want +got):\n%s", diff)
	}
}

func TestInterruptStoresAndPrintsPartialWork(t *testing.T) {
	events := []llm.StreamEvent{step(1), chunk("I read.")}
	events = append(events, ran("1", "read_file", "RAW")...)
	events = append(events, step(2), chunk("Half an ans"), llm.StreamEvent{Type: llm.StreamEventTypeIncomplete, Err: fmt.Errorf("turn interrupted: %w", context.Canceled)})
	log := &memoryLog{}
	run, out := headless(&scriptedClient{events: events}, log, FormatText)
	result, err := run.Run(t.Context(), "do it")
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != session.OutcomeInterrupted || result.Error.Kind != "interrupted" {
		t.Errorf("the result is %+v", result)
	}
	if got := out.String(); got != "I read.\n\nHalf an ans\n" {
		t.Errorf("stdout is %q", got)
	}
	history := session.BuildConversation(log.events())
	if len(history) != 3 || history[2].Content != "Half an ans" {
		t.Errorf("the stored history is %+v", history)
	}
	// Decision 14: the interrupted work keeps its raw output in memory.
	if m := run.State.Messages(); !m[1].ToolActivities[0].HasRawOutput || m[1].ToolActivities[0].RawOutput != "RAW" {
		t.Errorf("the raw output of the interrupted turn is gone: %+v", m[1])
	}
}

func TestCompletedTurnForgetsRawOutput(t *testing.T) {
	run, _ := headless(&scriptedClient{events: compactedTurn()}, &memoryLog{}, FormatText)
	if _, err := run.Run(t.Context(), "do it"); err != nil {
		t.Fatal(err)
	}
	for _, m := range run.State.Messages() {
		for _, a := range m.ToolActivities {
			if a.HasRawOutput {
				t.Errorf("raw output of %s is kept after the turn", a.Tool)
			}
		}
	}
}

func TestFailedAndCancelledCompactionChangeNothing(t *testing.T) {
	for _, kind := range []llm.StreamEventType{llm.StreamEventTypeAutoCompactionFailed, llm.StreamEventTypeAutoCompactionCancelled} {
		events := []llm.StreamEvent{step(1), chunk("Before.")}
		events = append(events, ran("1", "read_file", "RAW")...)
		events = append(events, compaction(llm.StreamEventTypeAutoCompactionStarted), compaction(kind), step(2), chunk("After."), done())
		log := &memoryLog{}
		run, out := headless(&scriptedClient{events: events}, log, FormatText)
		if _, err := run.Run(t.Context(), "do it"); err != nil {
			t.Fatal(err)
		}
		if out.String() != "Before.\n\nAfter.\n" {
			t.Errorf("%s: stdout is %q", kind, out.String())
		}
		for _, e := range log.events() {
			if e.Kind == session.KindCompactionApplied {
				t.Errorf("%s: a compaction was stored", kind)
			}
		}
		if history := session.BuildConversation(log.events()); len(history) != 3 || history[1].Content != "Before." {
			t.Errorf("%s: the history is %+v", kind, history)
		}
	}
}

func TestB82_ForcedFailureReturnsTheContextErrorAfterStoring(t *testing.T) {
	events := []llm.StreamEvent{step(1), chunk("Partial.")}
	events = append(events, ran("1", "read_file", "RAW")...)
	events = append(events, compaction(llm.StreamEventTypeAutoCompactionStarted), compaction(llm.StreamEventTypeAutoCompactionFailed),
		llm.StreamEvent{Type: llm.StreamEventTypeError, Err: fmt.Errorf("too large: %w", llm.ErrContextWindowExceeded)})
	log := &memoryLog{}
	run, out := headless(&scriptedClient{events: events}, log, FormatJSON)
	result, err := run.Run(t.Context(), "do it")
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(result.Err(), llm.ErrContextWindowExceeded) || result.Error.Kind != "context_limit" || !strings.Contains(out.String(), "Partial.") {
		t.Errorf("the result is %+v", result)
	}
	if history := session.BuildConversation(log.events()); len(history) != 2 {
		t.Errorf("the history is %+v", history)
	}
}

func TestWeakPoint24_FailedSessionWriteKeepsTheSwapAndWarns(t *testing.T) {
	log := &memoryLog{fail: errors.New("disk full")}
	run, out := headless(&scriptedClient{events: compactedTurn()}, log, FormatText)
	var warnings bytes.Buffer
	run.Warnings = &warnings
	result, err := run.Run(t.Context(), "do it")
	if err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	if !strings.Contains(out.String(), "Finished.") || strings.Count(warnings.String(), "disk full") != 1 {
		t.Errorf("stdout %q, warnings %q", out.String(), warnings.String())
	}
	if m := run.State.Messages(); m[0].Content != wrapperText {
		t.Errorf("the state holds %q, not the replacement", m[0].Content)
	}
}

func TestRetryRewindsWhatWasSaid(t *testing.T) {
	events := []llm.StreamEvent{
		step(1), chunk("Half"),
		{Type: llm.StreamEventTypeRetry, Retry: &llm.RetryInfo{Attempt: 1, Err: errors.New("reset")}},
		chunk("Whole."), done(),
	}
	run, out := headless(&scriptedClient{events: events}, &memoryLog{}, FormatText)
	if _, err := run.Run(t.Context(), "do it"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "Whole.\n" {
		t.Errorf("stdout is %q", out.String())
	}
}

func TestDeniedCallsAreListed(t *testing.T) {
	run, out := headless(&scriptedClient{events: []llm.StreamEvent{step(1), chunk("I may not."), done()}}, &memoryLog{}, FormatJSON)
	run.Denied = func() []permission.Request {
		return []permission.Request{{Tool: "bash", Action: "Run rm x", Reason: "runs rm"}}
	}
	result, err := run.Run(t.Context(), "do it")
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Denied) != 1 || !strings.Contains(out.String(), `"permissions_denied":[{"tool":"bash","action":"Run rm x","reason":"runs rm"}]`) {
		t.Errorf("the document is %s", out.String())
	}
}

func TestAnswerTextJoins(t *testing.T) {
	said := func(text string) llm.Message { return llm.Message{Role: llm.RoleAssistant, Content: text} }
	for _, c := range []struct {
		name     string
		messages []llm.Message
		want     string
	}{
		{"two steps get a blank line", []llm.Message{said("a"), said("b")}, "a\n\nb"},
		{"a blank line that is there stays one", []llm.Message{said("a\n\n"), said("b")}, "a\n\nb"},
		{"one line end becomes a blank line", []llm.Message{said("a\n"), said("b")}, "a\n\nb"},
		{"steps without text leave no gap", []llm.Message{said(""), said("b"), said("")}, "b"},
	} {
		if got := AnswerText(c.messages); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
