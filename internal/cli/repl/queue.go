package repl

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// queueRows is how many waiting prompts are shown.
const queueRows = 5

// enqueue keeps a prompt until what runs has ended.
func (m *Model) enqueue(prompt string) { m.queue = append(m.queue, prompt) }

// takeBack puts the last waiting prompt into the editor.
func (m *Model) takeBack() bool {
	if len(m.queue) == 0 || !m.editor.Empty() {
		return false
	}
	last := len(m.queue) - 1
	m.editor.SetValue(m.queue[last])
	m.queue = m.queue[:last]
	return true
}

// clearQueue forgets the waiting prompts. They stay in the history.
func (m *Model) clearQueue() tea.Cmd {
	if len(m.queue) == 0 {
		return m.notify("Queue is empty")
	}
	m.queue = nil
	return m.notify("Queue cleared")
}

// queueBand draws the waiting prompts.
func (m *Model) queueBand() []string {
	if len(m.queue) == 0 {
		return nil
	}
	shown := m.queue[:min(len(m.queue), queueRows)]
	lines := render.QueueBand(m.theme, shown, -1, m.width)
	if more := len(m.queue) - len(shown); more > 0 {
		lines = append(lines, render.Truncate(m.theme.Dim.Styled(fmt.Sprintf("  %s %d more", m.theme.Glyphs.Arrow, more)), m.width))
	}
	return lines
}
