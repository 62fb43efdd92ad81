package repl

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// notificationTime is how long a notification is shown.
const notificationTime = 2 * time.Second

// notification is a note that is shown for a moment. It is never stored.
type notification struct {
	text       string
	generation int
}

// notificationExpiredMsg takes a notification away, unless another one has
// taken its place.
type notificationExpiredMsg struct{ generation int }

// notify shows a notification beside the loader.
func (m *Model) notify(text string) tea.Cmd {
	m.notice.text = text
	m.notice.generation++
	generation := m.notice.generation
	return tea.Tick(notificationTime, func(time.Time) tea.Msg { return notificationExpiredMsg{generation} })
}

func (n *notification) expire(msg notificationExpiredMsg) {
	if msg.generation == n.generation {
		n.text = ""
	}
}

// leaving is the way out of the program.
type leaving struct {
	// wanted says that the program ends as soon as the turn did; final, that
	// the last picture is drawn.
	wanted, final bool
	// armed says that Ctrl+C was pressed a moment ago.
	armed      bool
	generation int
}

// leaveExpiredMsg says that a second Ctrl+C comes too late.
type leaveExpiredMsg struct{ generation int }

func (l *leaving) expire(msg leaveExpiredMsg) {
	if msg.generation == l.generation {
		l.armed = false
	}
}

// arm makes the next Ctrl+C leave the program, for as long as the notification
// that says so is shown.
func (m *Model) arm(text string) tea.Cmd {
	m.leaving.armed = true
	m.leaving.generation++
	generation := m.leaving.generation
	expire := tea.Tick(notificationTime, func(time.Time) tea.Msg { return leaveExpiredMsg{generation} })
	if text == "" {
		return expire
	}
	return tea.Batch(m.notify(text), expire)
}

// terminateMsg asks the program to end because the process is ending.
type terminateMsg struct{}

func (m *Model) terminate() tea.Cmd { return m.quit() }

// quit ends the program. What runs is interrupted first, so that what it did
// is stored.
func (m *Model) quit() tea.Cmd {
	m.leaving.wanted = true
	m.queue = nil
	switch {
	case m.stream.active():
		m.interrupt()
	case m.compaction.mode == compactionManual:
		m.compaction.stop()
	default:
		return m.leave()
	}
	return nil
}

// leave draws the last picture and ends as soon as all is printed.
func (m *Model) leave() tea.Cmd {
	if m.job != nil {
		m.job.cancel()
	}
	m.leaving.wanted, m.leaving.final = true, true
	if !m.sized {
		return tea.Quit
	}
	return nil // The last picture does the rest.
}
