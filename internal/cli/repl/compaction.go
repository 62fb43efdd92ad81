package repl

import (
	"keen/internal/llm"
	"keen/internal/session"
)

// applyCompaction takes in that the loop goes on from a replacement. The
// visible work before the checkpoint becomes an ordinary assistant turn of the
// session, directly before the compaction and in the same batch; the
// application state holds the replacement alone; the turn memory starts
// afresh. The loop has swapped its history already, so the swap stands even
// when the session cannot be written.
//
// The compaction has no status: its completion is shown for a moment and not
// replayed. Its summary is in the replacement and nowhere else.
func (t *Turn) applyCompaction(e *llm.AutoCompactionEvent) []session.Event {
	t.compactions++
	t.before = t.Answer()
	messages, _ := t.handler.Checkpoint()
	events := make([]session.Event, 0, 2)
	events = append(events, t.event(session.OutcomeCheckpoint, messages[t.stored:]))
	t.stored = 0
	if e.Usage != nil {
		// It stands in the compaction event, not in a turn's.
		t.handler.AddUsage(e.Usage)
		t.counted = t.counted.Plus(*e.Usage)
	}
	t.state.Replace(e.Replacement)
	return append(events, session.Event{Kind: session.KindCompactionApplied, Messages: e.Replacement, Usage: e.Usage})
}
