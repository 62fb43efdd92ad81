package repl

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/widgets"
	"keen/internal/session"
)

// handleKey gives a key to what it is for: to whoever has the keys, but for the
// two that mean the same everywhere.
func (m *Model) handleKey(key tea.KeyPressMsg) tea.Cmd {
	stroke := key.Keystroke()
	if stroke != "ctrl+c" {
		m.leaving.armed = false
	}
	m.focus.press(m.now())
	switch {
	case stroke == "ctrl+c":
		return m.handleCtrlC()
	case stroke == "ctrl+z":
		return tea.Suspend
	case m.focus.onCard:
		return m.handleCardKey(key)
	}
	return m.handleInputKey(key)
}

// handleInputKey takes in a key while the input has the keys.
func (m *Model) handleInputKey(key tea.KeyPressMsg) tea.Cmd {
	stroke := key.Keystroke()
	if stroke == "esc" && !m.editor.Searching() {
		return m.handleEsc()
	}
	if m.completer.Visible() && !m.editor.Searching() {
		if cmd, taken := m.handleCompleterKey(key); taken {
			return cmd
		}
	}
	switch {
	case m.editor.Searching():
	case stroke == "tab" && len(m.cards) > 0:
		m.focus.toCard(m.now(), byTab)
		return nil
	case stroke == "ctrl+d" && m.editor.Empty():
		return m.handleCtrlC()
	case stroke == "ctrl+g":
		return m.openEditor()
	case stroke == "up" && m.takeBack():
		return nil
	}
	return m.handleEditor(key)
}

// handleEsc stops the innermost thing that goes on. During an automatic
// compaction that is the compaction and never the turn. A card that waits is
// such a thing too: no answer is the one that can do no harm.
func (m *Model) handleEsc() tea.Cmd {
	switch {
	case m.compaction.mode == compactionAutomatic && !m.compaction.cancelled:
		m.compaction.stop()
	case m.completer.Visible():
		m.completer.Close()
	case len(m.cards) > 0:
		return m.cards[0].dismiss()
	case m.compaction.mode == compactionAutomatic:
		// It is being cancelled already.
	case m.job != nil:
		m.job.cancel()
	case m.compaction.mode == compactionManual:
		m.compaction.stop()
	case m.stream.active():
		if !m.stream.interrupted {
			m.interrupt()
		}
	case len(m.queue) > 0:
		return m.clearQueue()
	case !m.editor.Empty():
		m.clearInput()
	}
	return nil
}

// clearInput empties the editor. The text stays in the history.
func (m *Model) clearInput() {
	m.editor.AddHistory(m.editor.Value())
	m.editor.Reset()
	m.completer.Close()
}

// handleCtrlC interrupts the whole turn, a compaction in it included; with
// nothing to interrupt it clears the input, and pressed again it leaves.
func (m *Model) handleCtrlC() tea.Cmd {
	if m.leaving.armed {
		m.stream.release()
		m.compaction.release()
		return m.leave()
	}
	switch {
	case m.focus.onCard && !m.stream.active():
		return m.cards[0].dismiss()
	case m.editor.Searching():
		m.editor.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
		return nil
	case m.stream.active():
		m.interrupt()
		return m.arm("")
	case m.compaction.mode == compactionManual:
		m.compaction.stop()
		return m.arm("")
	case m.job != nil:
		m.job.cancel()
		return nil
	case len(m.queue) > 0:
		return m.clearQueue()
	case !m.editor.Empty():
		m.clearInput()
		return nil
	case len(m.cards) > 0:
		return m.cards[0].dismiss()
	}
	return m.arm("Press Ctrl+C again to leave")
}

// handleEditor gives a message to the editor and does what came of it.
func (m *Model) handleEditor(msg tea.Msg) tea.Cmd {
	event := m.editor.Update(msg)
	switch event.Kind {
	case widgets.EditorSubmitted:
		m.completer.Close()
		return m.submit(event.Text)
	case widgets.EditorChanged:
		return m.complete()
	case widgets.EditorMoved:
		m.completer.Close()
	case widgets.EditorRefused:
		return m.notify(event.Text)
	}
	return nil
}

// submit does what the user typed: a command, a shell command, or a prompt.
func (m *Model) submit(text string) tea.Cmd {
	remember := m.remember(text)
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "!") && len(trimmed) > 1:
		return tea.Batch(remember, m.runShell(strings.TrimSpace(trimmed[1:])))
	case isCommand(trimmed) && !m.isPromptCommand(firstWord(trimmed)):
		return tea.Batch(remember, m.runCommand(trimmed))
	case m.busy():
		m.enqueue(text)
		return remember
	case m.client == nil:
		m.editor.SetValue(text)
		return m.startSetup(m.focus.asked())
	}
	return tea.Batch(remember, m.send(text))
}

// remember adds a prompt to the history.
func (m *Model) remember(text string) tea.Cmd {
	m.history = append(m.history, text)
	m.editor.AddHistory(text)
	if m.options.History == nil {
		return nil
	}
	history := m.options.History
	return func() tea.Msg {
		if err := history.Add(text); err != nil {
			return outcomeMsg{quiet: true, warning: "The history of prompts cannot be written: " + err.Error()}
		}
		return nil
	}
}

type historyMsg []string

func (m *Model) loadHistory() tea.Cmd {
	if m.options.History == nil {
		return nil
	}
	history := m.options.History
	return func() tea.Msg {
		prompts, err := history.Load()
		if err != nil {
			return outcomeMsg{warning: "The history of prompts cannot be read: " + err.Error()}
		}
		return historyMsg(prompts)
	}
}

type branchMsg string

func (m *Model) lookUpBranch() tea.Cmd {
	if m.options.Branch == nil {
		return nil
	}
	ctx, branch := m.ctx, m.options.Branch
	return func() tea.Msg { return branchMsg(branch(ctx)) }
}

// outcomeMsg says how a small job ended. Only one of its fields is set, and
// quiet.
type outcomeMsg struct {
	notification, note, warning string
	err                         error
	// quiet shows a warning for a moment only.
	quiet bool
}

func (m *Model) handleOutcome(msg outcomeMsg) tea.Cmd {
	switch {
	case msg.err != nil:
		m.fail(msg.err)
	case msg.quiet && msg.warning != "":
		return m.notify(msg.warning)
	case msg.warning != "":
		m.warn(msg.warning)
	case msg.note != "":
		m.note(msg.note)
	case msg.notification != "":
		return m.notify(msg.notification)
	}
	return nil
}

// store returns the command that stores events beside a turn.
func (m *Model) store(events ...session.Event) tea.Cmd {
	journal := m.journal
	return func() tea.Msg {
		if err := journal.append(events...); err != nil {
			return outcomeMsg{err: err}
		}
		return nil
	}
}
