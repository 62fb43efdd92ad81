// Package compaction makes the requests that summarise a conversation, and the
// text that replaces it. [NewPlan] turns a conversation into requests that fit a
// budget, [Check] says whether an answer can be used, [Replacement] wraps it for
// the model that goes on.
//
// The package sends nothing and decides nothing about when to compact. It has
// its own view of a conversation, [Entry], so that it depends on no provider and
// on no way of keeping history. Everything is pure; sizes are in tokens of the
// local estimate.
package compaction

import (
	"encoding/json"
	"fmt"

	"keen/internal/tools"
)

// Speaker says whose an [Entry] is.
type Speaker int

// The speakers. What Keen says by itself is never taken for the user's words.
const (
	SpeakerUser Speaker = iota
	SpeakerAssistant
	SpeakerKeen
)

// Entry is one thing that was said in a conversation, with the calls that
// followed it.
type Entry struct {
	Speaker Speaker
	// Summary is what an earlier compaction left, on an entry of the user
	// whose Text is the task that it retained; both may be empty.
	Summary string
	Text    string
	// Calls are the assistant's, in the order they were made.
	Calls []Call
}

// Call is a tool call with what became of it.
type Call struct {
	Tool string
	// Input is the call's JSON object, nil for an empty one.
	Input json.RawMessage
	// Status is empty for a call that never ended.
	Status tools.Status
	// ExitCode is the exit code of a command, or nil.
	ExitCode *int
	// Output is what is known of the result, may be empty.
	Output string
}

// statusText says how a call ended.
func (c Call) statusText() string {
	status := c.Status
	if status == "" {
		status = "unanswered"
	}
	if c.ExitCode == nil {
		return string(status)
	}
	return fmt.Sprintf("%s exit_code=%d", status, *c.ExitCode)
}

// lastOfUser returns the index of the user's latest entry, or -1.
func lastOfUser(conversation []Entry) int {
	for i := len(conversation) - 1; i >= 0; i-- {
		if conversation[i].Speaker == SpeakerUser {
			return i
		}
	}
	return -1
}
