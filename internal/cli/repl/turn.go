package repl

import (
	"context"
	"errors"
	"time"

	"keen/internal/cli/repl/appstate"
	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

// Turn is one turn as a front end lives through it: it folds the events of the
// stream, keeps the application state right, and says what has to be stored.
// It does no I/O and belongs to one goroutine.
//
// Every finished step is stored as soon as the next one starts, so that
// killing the process loses at most the step that was running.
type Turn struct {
	handler *StreamHandler
	state   *appstate.AppState
	model   string
	start   time.Time
	now     func() time.Time

	// stored is how many messages of the handler's memory are on their way
	// to the session already.
	stored int
	// before is the visible answer before the last checkpoint.
	before      string
	compactions int
	end         *llm.StreamEvent
	counted     llm.Usage
}

// NewTurn begins a turn. state already holds the user's message.
func NewTurn(state *appstate.AppState, model string) *Turn {
	return &Turn{handler: NewStreamHandler(), state: state, model: model, start: time.Now(), now: time.Now}
}

// Handler returns what is visible of the turn.
func (t *Turn) Handler() *StreamHandler { return t.handler }

// Fold takes in one event and returns what has to be appended to the session,
// as one batch, before the next event is read.
func (t *Turn) Fold(e llm.StreamEvent) []session.Event {
	t.handler.Handle(e)
	switch e.Type {
	case llm.StreamEventTypeStepStarted:
		return t.steps()
	case llm.StreamEventTypeToolEnded:
		return states(e.Tool.Result.State)
	case llm.StreamEventTypeAutoCompactionFailed:
		t.handler.AddUsage(e.AutoCompaction.Usage)
	case llm.StreamEventTypeAutoCompactionApplied:
		return t.applyCompaction(e.AutoCompaction)
	case llm.StreamEventTypeDone, llm.StreamEventTypeIncomplete, llm.StreamEventTypeError:
		return t.finish(e)
	}
	return nil
}

// steps returns the steps that are finished and not stored yet.
func (t *Turn) steps() []session.Event {
	fresh := t.handler.memory[t.stored:]
	if len(fresh) == 0 {
		return nil
	}
	t.stored = len(t.handler.memory)
	return []session.Event{t.event(session.OutcomeStep, fresh)}
}

// states makes the session events of what a call left to remember.
func states(list []tools.State) []session.Event {
	var events []session.Event
	for _, s := range list {
		events = append(events, session.Event{Kind: session.KindState, Name: s.Name, State: s.Value})
	}
	return events
}

// finish ends the turn: what it did becomes part of the application state.
func (t *Turn) finish(e llm.StreamEvent) []session.Event {
	t.end = &e
	messages := t.handler.memory
	ev := t.event(outcome(e), messages[t.stored:])
	ev.DurationMS = t.now().Sub(t.start).Milliseconds()
	if e.Err != nil {
		ev.Error = e.Err.Error()
	}
	t.stored = len(messages)
	if e.Type == llm.StreamEventTypeDone {
		t.state.FinishTurn(messages)
	} else {
		t.state.InterruptTurn(messages)
	}
	return []session.Event{ev}
}

// event makes the session event of a part of the turn, with the usage since
// the part before it.
func (t *Turn) event(o session.Outcome, messages []llm.Message) session.Event {
	e := session.Event{Kind: session.KindAssistantTurn, Messages: messages, Outcome: o, Model: t.model}
	if total, known := t.handler.Usage(); known {
		u := total.Minus(t.counted)
		t.counted = total
		if u != (llm.Usage{}) {
			e.Usage = &u
		}
	}
	return e
}

func outcome(e llm.StreamEvent) session.Outcome {
	switch {
	case e.Type == llm.StreamEventTypeDone:
		return session.OutcomeDone
	case errors.Is(e.Err, context.Canceled):
		return session.OutcomeInterrupted
	case e.Type == llm.StreamEventTypeIncomplete:
		return session.OutcomeIncomplete
	}
	return session.OutcomeError
}

// Answer returns the visible answer of the whole turn so far: what came before
// its checkpoints and what came after, in order.
func (t *Turn) Answer() string {
	said := t.handler.memory
	if t.handler.said.Len() > 0 {
		said = append(said[:len(said):len(said)], llm.Message{Role: llm.RoleAssistant, Content: t.handler.said.String()})
	}
	return JoinAnswers(t.before, AnswerText(said))
}

// Compactions returns how many automatic compactions were applied.
func (t *Turn) Compactions() int { return t.compactions }

// End returns the terminal event, nil while the turn runs.
func (t *Turn) End() *llm.StreamEvent { return t.end }
