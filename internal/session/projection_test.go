package session_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/llm"
	"keen/internal/session"
)

func TestBuildConversation(t *testing.T) {
	tests := []struct {
		name   string
		events []session.Event
		want   []llm.Message
	}{
		{name: "no events"},
		{
			name:   "messages of users and turns stay in order",
			events: []session.Event{user("one"), turn(session.OutcomeDone, step("a", readCall(1, "")), step("b")), user("two")},
			want:   []llm.Message{userMessage("one"), step("a", readCall(1, "")), step("b"), userMessage("two")},
		},
		{
			name: "work of a turn that was not done is history too",
			events: []session.Event{
				user("one"), turn(session.OutcomeInterrupted, step("a")),
				user("two"), turn(session.OutcomeError, step("b")),
				user("three"), turn(session.OutcomeIncomplete, step("c")),
			},
			want: []llm.Message{userMessage("one"), step("a"), userMessage("two"), step("b"), userMessage("three"), step("c")},
		},
		{
			name:   "a nudge stays between the steps that it stood between",
			events: []session.Event{user("one"), turn(session.OutcomeDone, step("a"), nudge("go on"), step("b"))},
			want:   []llm.Message{userMessage("one"), step("a"), nudge("go on"), step("b")},
		},
		{
			name:   "raw output of events in memory is left out",
			events: []session.Event{turn(session.OutcomeInterrupted, step("a", readCall(1, "raw")))},
			want:   []llm.Message{step("a", readCall(1, ""))},
		},
		{
			name: "a compaction replaces everything before it",
			events: []session.Event{
				user("task"), turn(session.OutcomeCheckpoint, step("before")),
				automaticCompaction("sum", "task"), turn(session.OutcomeDone, step("after")),
			},
			want: []llm.Message{wrapper("sum", "task"), step("after")},
		},
		{
			name: "of consecutive compactions the last one counts",
			events: []session.Event{
				user("task"), automaticCompaction("first", "task"), automaticCompaction("second", "task"), user("next"),
			},
			want: []llm.Message{wrapper("second", "task"), userMessage("next")},
		},
		{
			name:   "a compaction without messages does not wipe the history",
			events: []session.Event{user("task"), {Kind: session.KindCompactionApplied}},
			want:   []llm.Message{userMessage("task")},
		},
		{
			name:   "clearing empties the conversation",
			events: []session.Event{user("one"), turn(session.OutcomeDone, step("a")), {Kind: session.KindCleared}, user("two")},
			want:   []llm.Message{userMessage("two")},
		},
		{
			name: "commands, names and unknown kinds are no conversation",
			events: []session.Event{
				{Kind: session.KindSessionStarted, SessionID: "1"},
				{Kind: session.KindSessionForked, ParentID: "0"},
				{Kind: session.KindSessionRenamed, Title: "name"},
				{Kind: session.KindCommand, Text: "!ls", Output: "a.go"},
				{Kind: "from_the_future", Text: "x"},
				user("one"),
			},
			want: []llm.Message{userMessage("one")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			diff(t, session.BuildConversation(tt.events), tt.want)
		})
	}
}

func TestBuildConversationSharesNothingWithTheEvents(t *testing.T) {
	events := []session.Event{turn(session.OutcomeDone, step("a", readCall(1, "raw"))), automaticCompaction("sum", "task")}
	for _, part := range [][]session.Event{events[:1], events} {
		history := session.BuildConversation(part)
		if len(history[0].ToolActivities) > 0 {
			history[0].ToolActivities[0].Input[0] = 'X'
		}
		if history[0].Compaction != nil {
			history[0].Compaction.Summary = "X"
		}
	}
	diff(t, events, []session.Event{turn(session.OutcomeDone, step("a", readCall(1, "raw"))), automaticCompaction("sum", "task")})
}

func TestTotalUsageSumsTurnsAndCompactions(t *testing.T) {
	if got := session.TotalUsage([]session.Event{user("one"), turn(session.OutcomeDone)}); got != nil {
		t.Errorf("unreported usage is %v, want nil", got)
	}
	events := []session.Event{
		{Kind: session.KindAssistantTurn, Usage: &llm.Usage{InputTokens: 10, OutputTokens: 1}},
		{Kind: session.KindCompactionApplied, Usage: &llm.Usage{InputTokens: 100, OutputTokens: 2}},
		{Kind: session.KindCleared},
		{Kind: session.KindAssistantTurn, Usage: &llm.Usage{InputTokens: 1000, OutputTokens: 3, CacheReadTokens: 7}},
	}
	want := &llm.Usage{InputTokens: 1110, OutputTokens: 6, CacheReadTokens: 7}
	diff(t, session.TotalUsage(events), want)
	diff(t, events[0].Usage, &llm.Usage{InputTokens: 10, OutputTokens: 1})
}

func TestStatesKeepsTheLatestOfEachName(t *testing.T) {
	store := newStore(t)
	log := create(t, store)
	state := func(name, value string) session.Event {
		return session.Event{Kind: session.KindState, Name: name, State: json.RawMessage(value)}
	}
	appendEvents(t, log, user("one"), state("todo", `["a"]`), state("mode", `"plan"`), state("todo", `["a","b"]`), state("mode", `null`))
	events, _, err := store.Load(log.ID())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]json.RawMessage{"todo": json.RawMessage(`["a","b"]`)}
	if diff := cmp.Diff(want, session.States(events)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if got := session.BuildConversation(events); len(got) != 1 {
		t.Errorf("conversation = %v, want no state in it", got)
	}
	if got := session.States(append(events, session.Event{Kind: session.KindCleared})); len(got) != 0 {
		t.Errorf("states after a clear = %v, want none", got)
	}
	for name, e := range map[string]session.Event{"without a name": state("", `1`), "that is no JSON": state("x", `{`), "without a value": {Kind: session.KindState, Name: "x"}} {
		if err := log.Append(e); err == nil {
			t.Errorf("a state %s was stored", name)
		}
	}
}
