package session_test

import (
	"testing"

	"keen/internal/llm"
	"keen/internal/session"
)

func item(kind session.ReplayKind, text string) session.ReplayItem {
	return session.ReplayItem{Kind: kind, Text: text}
}

func toolItem(a llm.HistoricalToolActivity) session.ReplayItem {
	return session.ReplayItem{Kind: session.ReplayTool, Tool: &a}
}

func TestReplay(t *testing.T) {
	code := 1
	tests := []struct {
		name   string
		events []session.Event
		want   []session.ReplayItem
	}{
		{name: "no events"},
		{
			name: "text and calls come in the order in which they were made",
			events: []session.Event{
				user("one"),
				turn(session.OutcomeDone, step("I look.I look again.", readCall(7, "raw"), readCall(7, ""), readCall(20, "")), step("Done.")),
			},
			want: []session.ReplayItem{
				item(session.ReplayUser, "one"), item(session.ReplayText, "I look."), toolItem(readCall(0, "")), toolItem(readCall(0, "")),
				item(session.ReplayText, "I look again."), toolItem(readCall(0, "")), item(session.ReplayText, "Done."),
			},
		},
		{
			name: "what came before an automatic compaction stays, the compaction leaves no line",
			events: []session.Event{
				user("task"), turn(session.OutcomeCheckpoint, step("before")),
				automaticCompaction("private", "task"), turn(session.OutcomeDone, step("after")),
			},
			want: []session.ReplayItem{
				item(session.ReplayUser, "task"), item(session.ReplayText, "before"), item(session.ReplayText, "after"),
			},
		},
		{
			name: "a manual compaction shows its summary and its status",
			events: []session.Event{user("one"), {
				Kind: session.KindCompactionApplied, Messages: []llm.Message{wrapper("sum", "")},
				Status: session.StatusContextCompacted, Transcript: "## Goal\nsum",
			}},
			want: []session.ReplayItem{
				item(session.ReplayUser, "one"), item(session.ReplaySummary, "## Goal\nsum"), item(session.ReplayStatus, "Context compacted."),
			},
		},
		{
			name: "turns that were not done end with a marker",
			events: []session.Event{
				turn(session.OutcomeInterrupted, step("a")),
				{Kind: session.KindAssistantTurn, Outcome: session.OutcomeIncomplete, Error: "output limit"},
				{Kind: session.KindAssistantTurn, Outcome: session.OutcomeError, Error: "no network"},
			},
			want: []session.ReplayItem{
				item(session.ReplayText, "a"), item(session.ReplayInterrupted, ""),
				item(session.ReplayIncomplete, "output limit"), item(session.ReplayError, "no network"),
			},
		},
		{
			name:   "nudges and commands are visible",
			events: []session.Event{turn(session.OutcomeDone, step("a"), nudge("go on")), {Kind: session.KindCommand, Text: "!false", Output: "out", ExitCode: &code}},
			want: []session.ReplayItem{
				item(session.ReplayText, "a"), item(session.ReplayNudge, "go on"),
				{Kind: session.ReplayCommand, Text: "!false", Output: "out", ExitCode: &code},
			},
		},
		{
			name:   "clearing empties the screen",
			events: []session.Event{user("one"), {Kind: session.KindCleared}, user("two")},
			want:   []session.ReplayItem{item(session.ReplayUser, "two")},
		},
		{
			name:   "offsets outside the text or inside a character do no harm",
			events: []session.Event{turn(session.OutcomeDone, step("aé", readCall(2, ""), readCall(1, ""), readCall(99, "")))},
			want: []session.ReplayItem{
				item(session.ReplayText, "aé"), toolItem(readCall(0, "")), toolItem(readCall(0, "")), toolItem(readCall(0, "")),
			},
		},
		{
			name:   "blank text and unknown kinds are no items",
			events: []session.Event{turn(session.OutcomeDone, step("\n", readCall(1, ""))), {Kind: "from_the_future"}},
			want:   []session.ReplayItem{toolItem(readCall(0, ""))},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := session.Replay(tt.events)
			for _, i := range got {
				if i.Tool != nil {
					i.Tool.TextOffset = 0
				}
			}
			diff(t, got, tt.want)
		})
	}
}

func TestReplaySharesNothingWithTheEvents(t *testing.T) {
	events := []session.Event{turn(session.OutcomeDone, step("a", readCall(1, "raw")))}
	session.Replay(events)[1].Tool.Input[0] = 'X'
	diff(t, events, []session.Event{turn(session.OutcomeDone, step("a", readCall(1, "raw")))})
}
