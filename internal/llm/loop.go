package llm

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"keen/internal/tools"
)

// Client is the one LLMClient: the loop around a provider's adapter. It keeps
// nothing of a conversation, only what it learned about the model, and may run
// several turns at once.
type Client struct {
	adapter  adapter
	provider string
	model    string
	quirks   clientQuirks
	retry    RetryPolicy
	learned  learned
}

// clientQuirks are the facts about a server that the loop has to know.
type clientQuirks struct {
	truncatesSilently bool
}

// newClient puts the loop around an adapter. It refuses windows that are too
// small to work in.
func newClient(a adapter, cfg ClientConfig) (*Client, error) {
	l := a.limits()
	if l.Window < MinContextWindow {
		return nil, fmt.Errorf("the context window of %s is set to %d tokens; Keen needs at least %d: choose a larger model, or start the server with a larger window and set --context-window", cfg.Model, l.Window, MinContextWindow)
	}
	retry := cfg.Retry
	if retry == (RetryPolicy{}) {
		retry = DefaultRetryPolicy
	}
	return &Client{
		adapter:  a,
		provider: cfg.Provider,
		model:    cfg.Model,
		quirks:   clientQuirks{truncatesSilently: cfg.TruncatesSilently},
		retry:    retry,
		learned:  learned{window: l.Window, output: l.Output, modelMax: cfg.ModelMaxOutput},
	}, nil
}

// StreamChat implements [LLMClient].
func (c *Client) StreamChat(ctx context.Context, messages []Message, registry *tools.Registry, opts StreamOptions) (<-chan StreamEvent, error) {
	system, history := splitSystem(messages)
	if lastUserIndex(history) < 0 {
		return nil, errors.New("start a turn: the history has no user message")
	}
	if opts.OneShot {
		registry = nil
	}
	events := make(chan StreamEvent)
	t := &turn{
		c: c, opts: opts, registry: registry, events: events,
		system: system, history: history, specs: registry.Specs(),
	}
	conv, err := t.start(history)
	if err != nil {
		return nil, fmt.Errorf("start a turn: %w", err)
	}
	t.conv = conv
	go t.run(ctx)
	return events, nil
}

// splitSystem separates the system prompt from the conversation, which it
// clones: the turn owns its canonical history.
func splitSystem(messages []Message) (string, []Message) {
	var system []string
	var history []Message
	for _, m := range messages {
		if m.Role == RoleSystem {
			system = append(system, m.Content)
			continue
		}
		history = append(history, m.Clone())
	}
	return strings.Join(system, "\n\n"), history
}

// turn is one run of the loop. Its goroutine owns everything in it.
type turn struct {
	c        *Client
	opts     StreamOptions
	registry *tools.Registry
	events   chan<- StreamEvent

	system  string
	specs   []tools.Spec
	history []Message
	conv    conversation

	meter meter
	guard compactionGuard
	// steps counts the answers recorded, cuts the answers in a row that the
	// output limit cut.
	steps, cuts int
	// attempted is the step count at which the last proactive compaction was
	// attempted, plus one: the same history is not compacted twice.
	attempted int
	// objection is what the user was last told about an objection of the
	// companion.
	objection string
}

// emit hands an event to the consumer, who reads until the channel is closed.
func (t *turn) emit(e StreamEvent) { t.events <- e }

func (t *turn) run(ctx context.Context) {
	defer close(t.events)
	t.emit(t.guarded(ctx))
}

// guarded runs the loop and turns a panic into the end of the turn: a fault in
// one turn must not take the program with it, nor leave a terminal unusable.
func (t *turn) guarded(ctx context.Context) (end StreamEvent) {
	defer func() {
		if p := recover(); p != nil {
			end = StreamEvent{Type: StreamEventTypeError, Err: fmt.Errorf("internal error, please report it: %v\n%s", p, debug.Stack())}
		}
	}()
	return t.loop(ctx)
}

// loop runs steps until the turn ends and returns its terminal event.
func (t *turn) loop(ctx context.Context) StreamEvent {
	for {
		if t.steps > 0 {
			t.checkpoint(ctx)
		}
		answer, err := t.step(ctx)
		if err != nil {
			return t.failure(ctx, err)
		}
		if end, ended := t.record(ctx, answer); ended {
			return end
		}
	}
}

// failure is the terminal event for an error.
func (t *turn) failure(ctx context.Context, err error) StreamEvent {
	if ctx.Err() != nil {
		return StreamEvent{Type: StreamEventTypeIncomplete, Err: fmt.Errorf("turn interrupted: %w", ctx.Err())}
	}
	return StreamEvent{Type: StreamEventTypeError, Err: err}
}

// record adds an answer to the canonical history, does what it asks for, and
// returns the terminal event when the turn ends with it.
func (t *turn) record(ctx context.Context, answer step) (StreamEvent, bool) {
	t.steps++
	switch {
	case t.opts.OneShot:
		return oneShotEnd(answer), true
	case len(answer.Calls) > 0:
		t.cuts = 0
		t.runBatch(ctx, answer)
		if ctx.Err() != nil {
			return t.failure(ctx, ctx.Err()), true
		}
		return StreamEvent{}, false
	}
	if answer.Text != "" {
		t.history = append(t.history, Message{Role: RoleAssistant, Content: answer.Text})
	}
	switch {
	case answer.Stop == StopLength:
		return t.continueCut(answer)
	case answer.Stop == StopRefusal:
		return StreamEvent{Type: StreamEventTypeIncomplete, Err: fmt.Errorf("%w (%s)", ErrRefused, answer.RawStop), StopReason: StopRefusal}, true
	case answer.Text == "":
		return StreamEvent{Type: StreamEventTypeIncomplete, Err: ErrEmptyAnswer, StopReason: answer.Stop}, true
	}
	return StreamEvent{Type: StreamEventTypeDone, StopReason: answer.Stop}, true
}

// Reasons for which a turn ends incomplete, beside an interrupt.
var (
	// ErrOutputLimit means that answers were cut by the output limit again
	// and again.
	ErrOutputLimit = errors.New("the answer was cut by the output limit; raise it with --max-output-tokens or ask for a shorter answer")
	// ErrRefused means that a filter or the model itself refused to answer.
	ErrRefused = errors.New("the model refused to go on; rephrase the request or use another model")
	// ErrEmptyAnswer means that the model ended without a word, twice.
	ErrEmptyAnswer = errors.New("the model ended without an answer; send another message to go on")
	// errToolCallInOneShot means that a plain answer was asked for and the
	// model called a tool that nobody offered.
	errToolCallInOneShot = errors.New("the model called a tool although none was offered")
)

// oneShotEnd is the terminal event of a turn that asked for one plain answer.
func oneShotEnd(answer step) StreamEvent {
	end := StreamEvent{Type: StreamEventTypeIncomplete, StopReason: answer.Stop}
	switch {
	case len(answer.Calls) > 0 || answer.CutCalls > 0:
		end.Err = errToolCallInOneShot
	case answer.Stop == StopLength:
		end.Err = ErrOutputLimit
	case answer.Stop == StopRefusal:
		end.Err = fmt.Errorf("%w (%s)", ErrRefused, answer.RawStop)
	case answer.Text == "":
		end.Err = ErrEmptyAnswer
	default:
		end.Type = StreamEventTypeDone
	}
	return end
}

// maxCuts is how many answers in a row may be cut by the output limit.
const maxCuts = 4

// continueCut goes on after an answer that the output limit cut: it asks for
// the rest, or, when it happens again and again, ends the turn and says so.
func (t *turn) continueCut(answer step) (StreamEvent, bool) {
	t.cuts++
	if t.cuts >= maxCuts {
		return StreamEvent{Type: StreamEventTypeIncomplete, Err: ErrOutputLimit, StopReason: StopLength}, true
	}
	text := nudgeCutText
	if answer.CutCalls > 0 {
		text = nudgeCutCall
	}
	t.history = append(t.history, Message{Role: RoleUser, Content: text, Nudge: true})
	t.conv.appendUser(text)
	t.emit(StreamEvent{Type: StreamEventTypeNudge, Text: text})
	return StreamEvent{}, false
}

const (
	nudgeCutText = "Your answer was cut off by the output limit. Go on exactly where it stopped; do not repeat what you already said."
	nudgeCutCall = "Your tool call was cut off by the output limit, so nothing was run. Call again with a smaller input, for instance by writing a long file in several parts."
)

// ContinuesText reports whether m is the message with which Keen asks for the
// rest of a text that the output limit cut: the next answer goes on inside a
// sentence.
func ContinuesText(m Message) bool {
	return m.Nudge && m.Content == nudgeCutText
}

// start makes a native conversation of a history.
func (t *turn) start(history []Message) (conversation, error) {
	return t.c.adapter.start(turnRequest{
		System: t.system, History: history, Specs: t.specs,
		SessionID: t.opts.SessionID, OneShot: t.opts.OneShot,
	})
}
