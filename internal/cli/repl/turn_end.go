package repl

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/llm"
	"keen/internal/llm/apierror"
)

// workingText stands beside the spinner while the agent works.
const workingText = "Working"

// minTurnTime is how long a turn must take for its time to be worth a line.
const minTurnTime = 5 * time.Second

// endTurn shows how the turn ended and makes the program idle.
func (m *Model) endTurn() tea.Cmd {
	turn := m.stream.turn
	m.live.advance(m.transcript, turn.Handler(), m.look(), true)
	m.pristine = false
	m.showEnd(*turn.End())
	if usage, known := turn.Handler().Usage(); known {
		m.count(m.choice.Name, usage)
	}
	if answer := turn.Answer(); answer != "" {
		m.lastAnswer = answer
	}
	m.reset()
	return tea.Batch(m.lookUpBranch(), m.next())
}

// showEnd writes the last lines of a turn.
func (m *Model) showEnd(end llm.StreamEvent) {
	took := m.now().Sub(m.stream.started)
	switch {
	case end.Type == llm.StreamEventTypeDone:
		if took >= minTurnTime {
			m.say(blockNote, []string{render.TurnTime(m.theme, took, m.width)})
		}
	case errors.Is(end.Err, context.Canceled):
		m.say(blockNote, render.Interrupted(m.theme, m.width))
	case end.Type == llm.StreamEventTypeIncomplete:
		m.warn(end.Err.Error())
	default:
		m.fail(end.Err)
	}
}

// next does what waits: it leaves when the user wants to, or sends the first
// prompt of the queue.
func (m *Model) next() tea.Cmd {
	if m.leaving.wanted {
		return m.leave()
	}
	if m.busy() || len(m.queue) == 0 || m.client == nil {
		return nil
	}
	prompt := m.queue[0]
	m.queue = m.queue[1:]
	return m.send(prompt)
}

// send shows a prompt and starts its turn.
func (m *Model) send(prompt string) tea.Cmd {
	m.say(blockUser, render.UserMessage(m.theme, prompt, m.width))
	return m.startTurn(prompt)
}

// interrupt stops the turn. Its end comes as an event.
func (m *Model) interrupt() {
	m.stream.interrupted = true
	m.stream.cancel()
	m.dropAsks()
	m.loading.text = "Interrupting"
}

func asAPIError(err error) (*apierror.Error, bool) {
	var e *apierror.Error
	return e, errors.As(err, &e)
}

func firstLineOf(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
