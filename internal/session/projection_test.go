package session_test

import (
	"testing"

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
