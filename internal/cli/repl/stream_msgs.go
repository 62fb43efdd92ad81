package repl

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/llm"
	"keen/internal/session"
)

// activeStream is the turn that runs. Its zero value is none.
type activeStream struct {
	// generation counts the turns, so that a late message of an earlier one is
	// known as such.
	generation int
	turn       *Turn
	// ctx is the turn's, and cancel interrupts it.
	ctx    context.Context
	cancel context.CancelFunc
	// interrupted says that the user asked for that.
	interrupted bool
	events      <-chan llm.StreamEvent
	started     time.Time
}

func (s *activeStream) active() bool { return s.turn != nil }

// release frees what belongs to the turn.
func (s *activeStream) release() {
	if s.cancel != nil {
		s.cancel()
	}
}

// The messages of the command that reads a turn.
type (
	// streamStartedMsg says that the turn was started, or why not.
	streamStartedMsg struct {
		generation int
		events     <-chan llm.StreamEvent
		err        error
		// storeErr says that the user's message could not be stored.
		storeErr error
	}
	// streamEventsMsg brings events, in order. At most the last one asks for
	// something to be stored.
	streamEventsMsg struct {
		generation int
		events     []llm.StreamEvent
		storeErr   error
	}
	// streamClosedMsg says that all was read and stored.
	streamClosedMsg struct {
		generation int
		storeErr   error
	}
)

// handleStream takes in the messages of turns and compactions, and reports
// whether it was one. Messages of an earlier turn change nothing.
func (m *Model) handleStream(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case preparedMsg:
		return m.handlePrepared(msg), true
	case streamStartedMsg:
		return m.handleStarted(msg), true
	case streamEventsMsg:
		if msg.generation != m.stream.generation || !m.stream.active() {
			return nil, true
		}
		m.warnOnce(msg.storeErr)
		return m.fold(msg.events), true
	case streamClosedMsg:
		if msg.generation != m.stream.generation || !m.stream.active() {
			return nil, true
		}
		m.warnOnce(msg.storeErr)
		return m.handleClosed(), true
	case compactEventsMsg:
		return m.handleCompactEvents(msg), true
	case compactedMsg:
		return m.handleCompacted(msg), true
	case compactStoredMsg:
		return m.handleCompactStored(msg), true
	}
	return nil, false
}

// warnOnce tells the user that the session cannot be written. The work goes on
// in memory.
func (m *Model) warnOnce(err error) {
	if err == nil || m.broken {
		return
	}
	m.broken = true
	m.warn("The session cannot be written; Keen goes on in memory. " + err.Error())
}

// startTurn makes a message of what the user typed and sends it.
func (m *Model) startTurn(typed string) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	m.stream = activeStream{
		generation: m.stream.generation + 1, ctx: ctx, cancel: cancel, started: m.now(),
		turn: NewTurn(m.state, m.choice.Name),
	}
	m.live.reset()
	m.transcript.mark()
	if m.options.Prepare == nil {
		return tea.Batch(m.beginTurn(typed, Prompt{Text: typed}), m.work(workingText))
	}
	generation, prepare := m.stream.generation, m.options.Prepare
	return tea.Batch(m.work(workingText), func() tea.Msg {
		prompt, err := prepare.prepare(ctx, typed)
		return preparedMsg{generation: generation, typed: typed, prompt: prompt, err: err}
	})
}

// beginTurn sends the message that was made of what the user typed.
func (m *Model) beginTurn(typed string, prompt Prompt) tea.Cmd {
	m.state.AddUser(prompt.Text, prompt.Attachments...)
	ctx, generation := m.stream.ctx, m.stream.generation
	journal, client, registry, companion := m.journal, m.client, m.registry, m.options.Companion
	request := m.state.Request()
	return func() tea.Msg {
		err := journal.append(prompt.event(typed))
		msg := streamStartedMsg{generation: generation, storeErr: err}
		msg.events, msg.err = client.StreamChat(ctx, request, registry, llm.StreamOptions{SessionID: journal.id(), Companion: companion})
		return msg
	}
}

func (m *Model) handleStarted(msg streamStartedMsg) tea.Cmd {
	if msg.generation != m.stream.generation || !m.stream.active() {
		return nil // Nobody can be here: a turn is only reset when it ended.
	}
	m.warnOnce(msg.storeErr)
	if msg.err != nil {
		return m.fold([]llm.StreamEvent{{Type: llm.StreamEventTypeError, Err: msg.err}})
	}
	m.stream.events = msg.events
	return m.readNext(nil)
}

// fold takes in events of the running turn and returns the command that stores
// what they ask for and then reads on.
func (m *Model) fold(events []llm.StreamEvent) tea.Cmd {
	var batch []session.Event
	var cmds []tea.Cmd
	for _, e := range events {
		m.before(e)
		batch = append(batch, m.stream.turn.Fold(e)...)
		cmds = append(cmds, m.after(e))
	}
	return tea.Batch(append(cmds, m.readNext(batch))...)
}

// before brings the transcript up to date where an event takes segments away.
func (m *Model) before(e llm.StreamEvent) {
	handler := m.stream.turn.Handler()
	switch e.Type {
	case llm.StreamEventTypeRetry:
		if !m.transcript.rewind() {
			m.note("The answer above was cut off. It begins anew:")
		}
		m.live = liveView{next: handler.stepStart}
	case llm.StreamEventTypeAutoCompactionApplied:
		m.live.advance(m.transcript, handler, m.look(), true)
	}
}

// after does what an event means for the screen.
func (m *Model) after(e llm.StreamEvent) tea.Cmd {
	handler := m.stream.turn.Handler()
	switch e.Type {
	case llm.StreamEventTypeStepStarted:
		m.meter.step(e.Step)
		m.markStep(handler)
	case llm.StreamEventTypeNotice:
		m.markStep(handler)
	case llm.StreamEventTypeUsage:
		m.meter.reported(e.Usage)
	case llm.StreamEventTypeAutoCompactionStarted:
		m.autoCompactionStarted(e.AutoCompaction)
	case llm.StreamEventTypeAutoCompactionApplied:
		return m.autoCompactionApplied()
	case llm.StreamEventTypeAutoCompactionCancelled:
		return m.autoCompactionEnded(e.AutoCompaction, "Compaction cancelled.")
	case llm.StreamEventTypeAutoCompactionFailed:
		return m.autoCompactionEnded(e.AutoCompaction, "Compaction failed: "+shortError(e.AutoCompaction.Err))
	}
	return nil
}

// markStep notes that what comes next can be taken back, up to here.
func (m *Model) markStep(handler *StreamHandler) {
	m.live.advance(m.transcript, handler, m.look(), false)
	if m.live.next == len(handler.Segments()) {
		m.transcript.mark()
	}
}

// coalesce bounds how long and how much is read into one message when text
// pours in: less than a picture takes, so that nobody sees it.
const (
	coalesceTime  = 8 * time.Millisecond
	coalesceCount = 1024
)

// readNext returns the command that stores a batch and then reads on: after
// the terminal event to the end of the stream, else the next events.
func (m *Model) readNext(batch []session.Event) tea.Cmd {
	generation, journal, events := m.stream.generation, m.journal, m.stream.events
	if m.stream.turn.End() != nil {
		return func() tea.Msg {
			err := journal.append(batch...)
			for events != nil {
				if _, open := <-events; !open {
					break
				}
			}
			return streamClosedMsg{generation: generation, storeErr: err}
		}
	}
	return func() tea.Msg {
		err := journal.append(batch...)
		read := readEvents(events)
		if len(read) == 0 {
			return streamClosedMsg{generation: generation, storeErr: err}
		}
		return streamEventsMsg{generation: generation, events: read, storeErr: err}
	}
}

// readEvents waits for an event and returns it with those that follow closely,
// up to the first one that is more than a piece of text. It returns nothing
// when the stream is closed.
func readEvents(events <-chan llm.StreamEvent) []llm.StreamEvent {
	first, open := <-events
	if !open {
		return nil
	}
	read := []llm.StreamEvent{first}
	if !isPiece(first) {
		return read
	}
	timer := time.NewTimer(coalesceTime)
	defer timer.Stop()
	for len(read) < coalesceCount {
		select {
		case e, open := <-events:
			if !open {
				return read
			}
			read = append(read, e)
			if !isPiece(e) {
				return read
			}
		case <-timer.C:
			return read
		}
	}
	return read
}

// isPiece reports whether an event is one of many that come quickly and have
// nothing to be stored.
func isPiece(e llm.StreamEvent) bool {
	switch e.Type {
	case llm.StreamEventTypeChunk, llm.StreamEventTypeReasoningChunk, llm.StreamEventTypeToolOutput:
		return true
	}
	return false
}

// errNoEnding ends a turn whose stream just stopped.
var errNoEnding = errors.New("the turn ended without saying how; what it did is kept, send a message to go on")

// handleClosed ends the turn.
func (m *Model) handleClosed() tea.Cmd {
	if m.stream.turn.End() == nil {
		return m.fold([]llm.StreamEvent{{Type: llm.StreamEventTypeError, Err: errNoEnding}})
	}
	return m.endTurn()
}

// shortError returns the first line of an error, for a notification.
func shortError(err error) string {
	if err == nil {
		return "unknown reason"
	}
	const most = 80
	text := []rune(firstLineOf(err.Error()))
	if len(text) > most {
		return string(text[:most-1]) + "…"
	}
	return string(text)
}
