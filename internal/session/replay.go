package session

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"keen/internal/llm"
)

// ReplayKind says what a [ReplayItem] shows.
type ReplayKind string

// The kinds of replay items, with the fields that each sets.
const (
	// ReplayUser is a user message: Text.
	ReplayUser ReplayKind = "user"
	// ReplayText is text of the assistant up to its next tool call: Text.
	ReplayText ReplayKind = "text"
	// ReplayTool is a tool call that has ended: Tool.
	ReplayTool ReplayKind = "tool"
	// ReplayNudge is a message that Keen added by itself: Text.
	ReplayNudge ReplayKind = "nudge"
	// ReplayInterrupted marks where the user stopped a turn.
	ReplayInterrupted ReplayKind = "interrupted"
	// ReplayIncomplete marks a turn that stopped early: Text says why.
	ReplayIncomplete ReplayKind = "incomplete"
	// ReplayError marks a turn that failed: Text says why.
	ReplayError ReplayKind = "error"
	// ReplaySummary is the visible summary of a manual compaction: Text.
	ReplaySummary ReplayKind = "summary"
	// ReplayStatus is a line that stayed on the screen: Text.
	ReplayStatus ReplayKind = "status"
	// ReplayCommand is a command beside the conversation: Text, Output,
	// ExitCode.
	ReplayCommand ReplayKind = "command"
)

// ReplayItem is one thing on the screen of a replayed session. Only the fields
// that its kind names are set, and Time.
type ReplayItem struct {
	Kind ReplayKind
	// Time is that of the event the item comes from.
	Time time.Time
	// Text is the text to show.
	Text string
	// Tool is the call to show. It has no raw output.
	Tool *llm.HistoricalToolActivity
	// Output is what a command printed.
	Output string
	// ExitCode is the exit code of a command, or nil.
	ExitCode *int
}

// Replay folds events into what the screen shows, in order. Unlike the
// conversation it keeps what came before a compaction: the user saw it. An
// automatic compaction itself leaves no trace, a manual one its summary and
// its status line. The result shares nothing with the events.
func Replay(events []Event) []ReplayItem {
	var items []ReplayItem
	for _, e := range events {
		switch e.Kind {
		case KindUserMessage:
			items = append(items, ReplayItem{Kind: ReplayUser, Time: e.Time, Text: cmp.Or(e.Shown, e.Text)})
		case KindAssistantTurn:
			items = appendTurn(items, e)
		case KindCompactionApplied:
			items = appendCompaction(items, e)
		case KindCommand:
			item := ReplayItem{Kind: ReplayCommand, Time: e.Time, Text: e.Text, Output: e.Output}
			if e.ExitCode != nil {
				code := *e.ExitCode
				item.ExitCode = &code
			}
			items = append(items, item)
		case KindCleared:
			items = nil
		}
	}
	return items
}

func appendTurn(items []ReplayItem, e Event) []ReplayItem {
	for _, m := range llm.WithoutRawOutput(e.Messages) {
		switch {
		case m.Role == llm.RoleAssistant:
			items = appendStep(items, e.Time, m)
		case m.Role == llm.RoleUser && m.Nudge:
			items = append(items, ReplayItem{Kind: ReplayNudge, Time: e.Time, Text: m.Content})
		}
	}
	switch e.Outcome {
	case OutcomeInterrupted:
		items = append(items, ReplayItem{Kind: ReplayInterrupted, Time: e.Time})
	case OutcomeIncomplete:
		items = append(items, ReplayItem{Kind: ReplayIncomplete, Time: e.Time, Text: e.Error})
	case OutcomeError:
		items = append(items, ReplayItem{Kind: ReplayError, Time: e.Time, Text: e.Error})
	}
	return items
}

// appendStep adds the text and the calls of a message in the order in which
// they came.
func appendStep(items []ReplayItem, at time.Time, m llm.Message) []ReplayItem {
	said := 0
	say := func(end int) {
		if text := m.Content[said:end]; strings.TrimSpace(text) != "" {
			items = append(items, ReplayItem{Kind: ReplayText, Time: at, Text: text})
		}
		said = end
	}
	for _, a := range m.ToolActivities {
		// A damaged offset must not tear a character apart.
		offset := min(max(a.TextOffset, said), len(m.Content))
		for offset < len(m.Content) && !utf8.RuneStart(m.Content[offset]) {
			offset++
		}
		say(offset)
		items = append(items, ReplayItem{Kind: ReplayTool, Time: at, Tool: &a})
	}
	say(len(m.Content))
	return items
}

func appendCompaction(items []ReplayItem, e Event) []ReplayItem {
	if e.Status == "" {
		return items
	}
	if e.Transcript != "" {
		items = append(items, ReplayItem{Kind: ReplaySummary, Time: e.Time, Text: e.Transcript})
	}
	return append(items, ReplayItem{Kind: ReplayStatus, Time: e.Time, Text: e.Status})
}
