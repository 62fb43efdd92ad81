// Package session stores conversations: one file of JSON lines a session, in a
// directory for each working directory.
//
// A [Store] finds, lists, creates, forks and deletes the sessions of one
// working directory. A [Log] is the one writer of a session: it appends a
// batch of events with a single write and a single fsync, so a batch is there
// as a whole or not at all, even after a crash in the middle of it. [Load]
// reads a file back. What was stored is turned into what is needed by two pure
// folds: [BuildConversation] makes the history for the model, [Replay] makes
// what the screen shows.
//
// Nothing is ever rewritten: files only grow, and what a newer Keen wrote
// beside what this one knows stays where it is. Raw tool output is never
// stored; see [llm.HistoricalToolActivity].
//
// The package starts no goroutines. It decides nothing about turns and draws
// nothing: callers choose what to append and when. Tests use a Store in a
// temporary directory.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"keen/internal/llm"
)

// Kind says what an [Event] records. Kinds that this version does not know are
// loaded with nothing but their kind and time, and skipped by the folds.
type Kind string

// The kinds of events, with the fields that each sets.
const (
	// KindSessionStarted is the first event of a session: SessionID, Cwd,
	// KeenVersion, Title. Its Time is when the session was created. Only
	// [Store] writes it.
	KindSessionStarted Kind = "session_started"
	// KindSessionForked says where a fork came from: ParentID. What follows
	// was copied from there. Only [Store] writes it.
	KindSessionForked Kind = "session_forked"
	// KindSessionRenamed gives the session a Title; empty takes it away.
	KindSessionRenamed Kind = "session_renamed"
	// KindUserMessage is what the user said: Text, Shown, Attachments.
	KindUserMessage Kind = "user_message"
	// KindAssistantTurn is what the assistant said and did since the last
	// user message or checkpoint: Messages, one a step, with nudges between
	// them; Outcome, Error, Usage, Model, DurationMS.
	KindAssistantTurn Kind = "assistant_turn"
	// KindCompactionApplied replaces the conversation so far by Messages, of
	// which there is at least one. Status is empty after an automatic
	// compaction; a manual one sets it, and Transcript is its visible
	// summary. Usage is what the compaction cost.
	KindCompactionApplied Kind = "compaction_applied"
	// KindCommand is a command that the user ran beside the conversation:
	// Text as it was typed, Output, ExitCode. It is shown, but the model
	// never sees it.
	KindCommand Kind = "command"
	// KindCleared empties both the conversation and the screen, and takes all
	// state away.
	KindCleared Kind = "cleared"
	// KindState is what the session remembers beside the conversation, such
	// as the list of what is left to do: Name, State. A later one takes the
	// place of an earlier one of the same name. See [States].
	KindState Kind = "state"
)

// known reports whether this version can read events of the kind.
func (k Kind) known() bool {
	switch k {
	case KindSessionStarted, KindSessionForked, KindSessionRenamed, KindUserMessage,
		KindAssistantTurn, KindCompactionApplied, KindCommand, KindCleared, KindState:
		return true
	}
	return false
}

// Outcome says how the work that an assistant turn records came to its end.
type Outcome string

// The outcomes of an assistant turn.
const (
	// OutcomeDone means that the answer is complete.
	OutcomeDone Outcome = "done"
	// OutcomeIncomplete means that the turn stopped early for the reason in
	// Error.
	OutcomeIncomplete Outcome = "incomplete"
	// OutcomeInterrupted means that the user stopped it.
	OutcomeInterrupted Outcome = "interrupted"
	// OutcomeError means that it failed for the reason in Error.
	OutcomeError Outcome = "error"
	// OutcomeStep means that the turn went on: it is stored step by step, so
	// that a crash loses at most the step that was running. A session that
	// ends with it was cut off in the middle of a turn.
	OutcomeStep Outcome = "step"
	// OutcomeCheckpoint means that a compaction follows and the turn went on
	// after it.
	OutcomeCheckpoint Outcome = "checkpoint"
)

// StatusContextCompacted is the Status of a manual compaction.
const StatusContextCompacted = "Context compacted."

// Event is one thing that happened in a session. Only the fields that its kind
// names are set.
type Event struct {
	Kind Kind `json:"kind"`
	// Time is when it happened. [Log.Append] sets it where it is zero.
	Time time.Time `json:"time"`

	// SessionID is the id of the session that starts.
	SessionID string `json:"session_id,omitempty"`
	// Cwd is the working directory, absolute and without symlinks.
	Cwd string `json:"cwd,omitempty"`
	// KeenVersion is the version of Keen that started the session.
	KeenVersion string `json:"keen_version,omitempty"`
	// Title is the name that the user gave the session.
	Title string `json:"title,omitempty"`
	// ParentID is the id of the session that was forked.
	ParentID string `json:"parent_id,omitempty"`

	// Text is the user's message, or a command as it was typed.
	Text string `json:"text,omitempty"`
	// Shown is what the user typed, where Text was made from it.
	Shown string `json:"shown,omitempty"`
	// Attachments stand beside the user's message.
	Attachments []llm.Attachment `json:"attachments,omitempty"`
	// Output is what a command printed. Whoever appends it bounds it.
	Output string `json:"output,omitempty"`
	// ExitCode is the exit code of a command, nil for what has none.
	ExitCode *int `json:"exit_code,omitempty"`

	// Messages is canonical history. Raw tool output in it is not stored.
	Messages []llm.Message `json:"messages,omitempty"`
	// Outcome says how a turn ended.
	Outcome Outcome `json:"outcome,omitempty"`
	// Error is the reason for people, where a turn was not done.
	Error string `json:"error,omitempty"`
	// Usage sums what the provider reported, nil when it reported nothing.
	Usage *llm.Usage `json:"usage,omitempty"`
	// Model is the model that worked in the turn.
	Model string `json:"model,omitempty"`
	// DurationMS is how long the work took, in milliseconds.
	DurationMS int64 `json:"duration_ms,omitempty"`

	// Name says whose state it is.
	Name string `json:"name,omitempty"`
	// State is any JSON value; null takes the state away.
	State json.RawMessage `json:"state,omitempty"`

	// Status is the line that stays on the screen after a compaction.
	Status string `json:"status,omitempty"`
	// Transcript is what a compaction showed on the screen.
	Transcript string `json:"transcript,omitempty"`
}

// check refuses what would harm the session when it is read back.
func (e Event) check() error {
	if !e.Kind.known() {
		return fmt.Errorf("unknown event kind %q", e.Kind)
	}
	if e.Kind == KindState && (e.Name == "" || !json.Valid(e.State)) {
		return errors.New("a state needs a name and a JSON value")
	}
	if e.Kind == KindCompactionApplied && len(e.Messages) == 0 {
		return errors.New("a compaction needs the messages that replace the conversation")
	}
	return nil
}
