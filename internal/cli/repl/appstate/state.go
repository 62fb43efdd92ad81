// Package appstate keeps the conversation of a running session as the front
// ends know it: the system prompt and the canonical history of the turns that
// ended. The turn that runs is not in it; its checkpoint or its end puts it
// there.
//
// An [AppState] belongs to the front end's goroutine. It stores nothing; the
// session package does.
package appstate

import (
	"context"
	"errors"
	"slices"

	"keen/internal/llm"
)

// AppState is the conversation as the next turn will start from it.
type AppState struct {
	system  string
	history []llm.Message
}

// New returns the state of a session whose stored conversation is history.
func New(system string, history []llm.Message) *AppState {
	return &AppState{system: system, history: llm.CloneMessages(history)}
}

// System returns the system prompt.
func (s *AppState) System() string { return s.system }

// SetSystem replaces the system prompt for the turns to come.
func (s *AppState) SetSystem(system string) { s.system = system }

// Messages returns a deep copy of the history, without the system prompt.
func (s *AppState) Messages() []llm.Message { return llm.CloneMessages(s.history) }

// Request returns what a turn is started with: the system prompt and a copy of
// the history.
func (s *AppState) Request() []llm.Message {
	request := make([]llm.Message, 0, len(s.history)+1)
	if s.system != "" {
		request = append(request, llm.Message{Role: llm.RoleSystem, Content: s.system})
	}
	return append(request, s.Messages()...)
}

// AddUser adds a message of the user.
func (s *AppState) AddUser(text string, attachments ...llm.Attachment) {
	s.history = append(s.history, llm.Message{Role: llm.RoleUser, Content: text, Attachments: slices.Clone(attachments)})
}

// FinishTurn adds the messages of a turn that is complete. Raw tool output is
// forgotten, here and in everything before: it is kept only while the work it
// belongs to is unfinished.
func (s *AppState) FinishTurn(messages []llm.Message) {
	s.history = llm.WithoutRawOutput(append(s.history, messages...))
}

// InterruptTurn adds the messages of a turn that stopped early. Their raw tool
// output stays in memory, so that the next turn can go on from it.
func (s *AppState) InterruptTurn(messages []llm.Message) {
	s.history = append(s.history, llm.CloneMessages(messages)...)
}

// Replace puts the replacement of a compaction in the place of the history.
func (s *AppState) Replace(replacement []llm.Message) {
	s.history = llm.CloneMessages(replacement)
}

// Clear forgets the conversation.
func (s *AppState) Clear() { s.history = nil }

// ErrNothingToCompact means that there is no conversation yet.
var ErrNothingToCompact = errors.New("there is nothing to compact yet")

// Compacter is a client that knows how large a compaction request may be.
type Compacter interface {
	llm.LLMClient
	// CompactionBudget returns the most that one compaction request may
	// have, in tokens.
	CompactionBudget() int
}

// CompactOptions adjusts a manual compaction.
type CompactOptions struct {
	// Hint is what the summary should focus on, may be empty.
	Hint string
	// SessionID is for request metadata.
	SessionID string
	// Companion is that of the session's turns; nil for none.
	Companion llm.Companion
}

// StreamCompact compacts the history on the user's command. The events of the
// visible summary go to emit, from the calling goroutine. It changes nothing:
// the caller stores the replacement first and then calls Replace with it.
func (s *AppState) StreamCompact(ctx context.Context, client Compacter, o CompactOptions, emit func(llm.StreamEvent)) (llm.AutoCompactResult, error) {
	if len(s.history) == 0 {
		return llm.AutoCompactResult{}, ErrNothingToCompact
	}
	return llm.ManualCompact(ctx, client, llm.ManualCompactRequest{
		History: s.Messages(), Hint: o.Hint, SessionID: o.SessionID, Companion: o.Companion, Budget: client.CompactionBudget,
	}, emit)
}
