package repl

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/appstate"
	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/session"
)

// compactionMode says who compacts.
type compactionMode uint8

const (
	compactionNone compactionMode = iota
	// compactionManual is the user's own /compact, with a visible summary.
	compactionManual
	// compactionAutomatic happens inside a turn, which goes on after it.
	compactionAutomatic
)

// compactingText stands beside the spinner while a compaction runs.
const compactingText = "Compacting..."

// compactionState is the compaction that runs. Its zero value is none.
type compactionState struct {
	mode compactionMode
	// cancel stops only the compaction; cancelled says that it was called.
	cancel    func()
	cancelled bool

	// What follows is for manual compactions: the summary so far.
	summary *render.Stream
	text    *strings.Builder
}

// release frees what belongs to a manual compaction. An automatic one belongs
// to its turn.
func (c *compactionState) release() {
	if c.mode == compactionManual {
		c.cancel()
	}
}

// stop cancels the compaction, once.
func (c *compactionState) stop() {
	c.cancelled = true
	c.cancel()
}

// begin forgets the summary so far.
func (c *compactionState) begin(m *render.Markdown) {
	c.text.Reset()
	c.summary = m.Stream()
}

func (c *compactionState) restyle(m *render.Markdown) {
	if c.text != nil {
		c.summary = m.Stream()
		c.summary.Write(c.text.String())
	}
}

// autoCompactionStarted changes the words beside the spinner and nothing else.
func (m *Model) autoCompactionStarted(e *llm.AutoCompactionEvent) {
	m.compaction = compactionState{mode: compactionAutomatic, cancel: e.Cancel}
	m.loading.text = compactingText
	m.stream.turn.Handler().SetLoading(compactingText)
}

// autoCompactionApplied goes on after a checkpoint. The turn has replaced the
// application state already, and what was visible before is in the transcript.
func (m *Model) autoCompactionApplied() tea.Cmd {
	m.live.reset()
	m.transcript.mark()
	m.meter.compacted()
	m.resumeLoader()
	return m.notify("Context compacted automatically.")
}

// autoCompactionEnded goes on after a compaction that changed nothing. Where
// the turn cannot go on, its own error says more than a notification.
func (m *Model) autoCompactionEnded(e *llm.AutoCompactionEvent, text string) tea.Cmd {
	m.resumeLoader()
	if e.Forced || m.stream.interrupted {
		return nil
	}
	return m.notify(text)
}

// resumeLoader brings back the ordinary words beside the spinner.
func (m *Model) resumeLoader() {
	m.compaction = compactionState{}
	m.stream.turn.Handler().SetLoading("")
	if !m.stream.interrupted {
		m.loading.text = workingText
	}
}

// The messages of a manual compaction.
type (
	compactEventsMsg struct {
		generation int
		events     []llm.StreamEvent
		run        *compactRun
	}
	compactedMsg struct {
		generation int
		result     llm.AutoCompactResult
		err        error
	}
	compactStoredMsg struct {
		generation  int
		replacement []llm.Message
		storeErr    error
	}
)

// compactRun is a manual compaction at work: its goroutine sends the events and
// closes the channel, after which the result stands.
type compactRun struct {
	events chan llm.StreamEvent
	result llm.AutoCompactResult
	err    error
}

// startCompact compacts on the user's command.
func (m *Model) startCompact(hint string) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	m.stream.generation++
	m.compaction = compactionState{mode: compactionManual, cancel: cancel, text: new(strings.Builder)}
	generation, state, client, journal, companion := m.stream.generation, m.state, m.client, m.journal, m.options.Companion
	run := &compactRun{events: make(chan llm.StreamEvent)}
	m.compaction.begin(m.markdown)
	start := func() tea.Msg {
		go func() {
			defer close(run.events)
			o := appstate.CompactOptions{Hint: hint, SessionID: journal.id(), Companion: companion}
			run.result, run.err = state.StreamCompact(ctx, client, o, func(e llm.StreamEvent) {
				select {
				case run.events <- e:
				case <-ctx.Done():
				}
			})
		}()
		return run.read(generation)
	}
	return tea.Batch(start, m.work(compactingText))
}

// read waits for the next events of a manual compaction, or its end.
func (r *compactRun) read(generation int) tea.Msg {
	if events := readEvents(r.events); len(events) > 0 {
		return compactEventsMsg{generation: generation, events: events, run: r}
	}
	return compactedMsg{generation: generation, result: r.result, err: r.err}
}

func (m *Model) handleCompactEvents(msg compactEventsMsg) tea.Cmd {
	for _, e := range msg.events {
		switch {
		case msg.generation != m.stream.generation || m.compaction.mode != compactionManual:
		case e.Type == llm.StreamEventTypeChunk:
			m.compaction.text.WriteString(e.Text)
			m.compaction.summary.Write(e.Text)
		case e.Type == llm.StreamEventTypeStepStarted: // A first or a second attempt.
			m.compaction.begin(m.markdown)
			m.loading.text = compactingText
		case e.Type == llm.StreamEventTypeRetry:
			m.compaction.begin(m.markdown)
			m.loading.text = retryText(e.Retry)
		}
	}
	generation, run := msg.generation, msg.run
	return func() tea.Msg { return run.read(generation) }
}

// handleCompacted stores the result of a manual compaction.
func (m *Model) handleCompacted(msg compactedMsg) tea.Cmd {
	if msg.generation != m.stream.generation || m.compaction.mode != compactionManual {
		return nil
	}
	if msg.result.Usage != nil {
		m.count(m.choice.Name, *msg.result.Usage)
	}
	if msg.err != nil {
		return m.compactFailed(msg.err)
	}
	journal, event := m.journal, session.Event{
		Kind: session.KindCompactionApplied, Messages: msg.result.Replacement, Usage: msg.result.Usage,
		Status: session.StatusContextCompacted, Transcript: m.compaction.text.String(),
	}
	return func() tea.Msg {
		err := journal.append(event)
		return compactStoredMsg{generation: msg.generation, replacement: event.Messages, storeErr: err}
	}
}

func (m *Model) compactFailed(err error) tea.Cmd {
	cancelled := m.compaction.cancelled
	m.reset()
	if errors.Is(err, context.Canceled) && cancelled {
		return tea.Batch(m.notify("Compaction cancelled."), m.next())
	}
	m.fail(err)
	return m.next()
}

// handleCompactStored goes on from the replacement.
func (m *Model) handleCompactStored(msg compactStoredMsg) tea.Cmd {
	if msg.generation != m.stream.generation || m.compaction.mode != compactionManual {
		return nil
	}
	m.warnOnce(msg.storeErr)
	m.state.Replace(msg.replacement)
	m.say(blockText, m.markdown.Render(m.compaction.text.String()))
	m.note(session.StatusContextCompacted)
	m.meter.compacted()
	m.reset()
	return m.next()
}
