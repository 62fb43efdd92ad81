package session

import (
	"bytes"
	"encoding/json"
	"slices"

	"keen/internal/llm"
)

// BuildConversation folds events into the history that the model gets: what
// the user said, and what the assistant said and did, however its turns ended.
// A compaction replaces everything before it by its messages. The result
// shares nothing with the events and holds no raw tool output, so that events
// give the same conversation before and after they were stored.
func BuildConversation(events []Event) []llm.Message {
	var history []llm.Message
	for _, e := range events {
		switch e.Kind {
		case KindUserMessage:
			history = append(history, llm.Message{Role: llm.RoleUser, Content: e.Text, Attachments: slices.Clone(e.Attachments)})
		case KindAssistantTurn:
			history = append(history, llm.WithoutRawOutput(e.Messages)...)
		case KindCompactionApplied:
			// Append refuses an empty replacement. If one stands in a file
			// all the same, too much history is better than none.
			if len(e.Messages) > 0 {
				history = llm.WithoutRawOutput(e.Messages)
			}
		case KindCleared:
			history = nil
		}
	}
	return slices.Clip(history)
}

// States folds events into what the session remembers beside its conversation,
// by name. The result shares nothing with the events.
func States(events []Event) map[string]json.RawMessage {
	states := make(map[string]json.RawMessage)
	for _, e := range events {
		switch {
		case e.Kind == KindCleared:
			clear(states)
		case e.Kind != KindState:
		case bytes.Equal(bytes.TrimSpace(e.State), []byte("null")):
			delete(states, e.Name)
		default:
			states[e.Name] = slices.Clone(e.State)
		}
	}
	return states
}

// TotalUsage sums what providers reported over a session, compactions
// included; nil when nothing was reported. Work that was cleared counts.
func TotalUsage(events []Event) *llm.Usage {
	var total *llm.Usage
	for _, e := range events {
		if e.Usage == nil {
			continue
		}
		if total == nil {
			total = &llm.Usage{}
		}
		*total = total.Plus(*e.Usage)
	}
	return total
}
