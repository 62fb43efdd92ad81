package repl

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
)

// frameTime is how long a picture stands at least while text streams in. Keys
// and everything else that is rare are drawn at once.
const frameTime = 33 * time.Millisecond

// frame is the present picture.
type frame struct {
	view tea.View
	// drawn is when it was drawn; due says that a tick will draw the next.
	drawn time.Time
	due   bool
	// painted says that Bubble Tea has put a picture on the screen: nothing
	// can be printed above it before.
	painted bool
}

// paintTime is how long the first picture needs at most.
const paintTime = 50 * time.Millisecond

// paintedMsg says that the first picture is on the screen.
type paintedMsg struct{}

// frameMsg says that it is time for a picture.
type frameMsg struct{}

// View returns the picture, which is drawn by Update.
func (m *Model) View() tea.View { return m.frame.view }

// draw draws the picture after a message, or later when the message is one of
// many, and prints what has no room in it.
func (m *Model) draw(msg tea.Msg) tea.Cmd {
	switch msg.(type) {
	case frameMsg:
		m.frame.due = false
	case streamEventsMsg, compactEventsMsg, jobOutputMsg:
		if since := m.now().Sub(m.frame.drawn); since < frameTime {
			return m.drawLater(frameTime - since)
		}
	}
	if !m.sized {
		return nil
	}
	first := m.frame.drawn.IsZero()
	m.frame.drawn = m.now()
	if m.leaving.final {
		return m.drawLast()
	}
	if m.stream.active() {
		m.live.advance(m.transcript, m.stream.turn.Handler(), m.look(), false)
	}
	chrome, cursor := m.chrome()
	limit := m.limit()
	chrome = chrome[max(len(chrome)-limit, 0):]
	live := m.liveLines()
	room := limit - len(chrome)
	m.transcript.evict(len(m.transcript.lines) + len(live) - room)
	live = live[max(len(live)-room, 0):]
	lines := make([]string, 0, limit)
	lines = append(append(append(lines, m.transcript.lines...), live...), chrome...)
	m.frame.view = m.picture(lines, cursor)
	if first {
		return tea.Tick(paintTime, func(time.Time) tea.Msg { return paintedMsg{} })
	}
	return m.print()
}

// print prints what left the picture, as much as there is room for above it.
func (m *Model) print() tea.Cmd {
	if !m.frame.painted {
		return nil
	}
	return m.transcript.print(m.height - m.limit())
}

func (m *Model) drawLater(wait time.Duration) tea.Cmd {
	if m.frame.due {
		return nil
	}
	m.frame.due = true
	return tea.Tick(wait, func(time.Time) tea.Msg { return frameMsg{} })
}

// drawLast leaves the transcript in the terminal, says how to come back, and
// ends the program when all is printed.
func (m *Model) drawLast() tea.Cmd {
	farewell := []string{""} // Bubble Tea erases the last line.
	if id := m.journal.id(); id != "" {
		farewell = []string{"", render.Truncate(m.theme.Dim.Styled("Go on with: keen --resume "+id), m.width), ""}
	}
	limit := m.limit()
	m.transcript.evict(len(m.transcript.lines) + len(farewell) - limit)
	m.frame.view = m.picture(append(slices.Clone(m.transcript.lines), farewell...), nil)
	if print := m.print(); print != nil || len(m.transcript.unprinted) > 0 || m.transcript.printing {
		return print
	}
	return tea.Quit
}

func (m *Model) picture(lines []string, cursor *tea.Cursor) tea.View {
	view := tea.NewView(strings.Join(lines, "\n"))
	view.WindowTitle = "keen " + render.Path(render.OneLine(m.options.Dir), m.options.Home)
	if cursor != nil {
		// It is counted from the end, because what stands above it varies.
		cursor.Y = len(lines) + cursor.Y
		if cursor.Y >= 0 {
			view.Cursor = cursor
		}
	}
	return view
}

// limit is how high the picture may be. The rest of the screen shows what was
// printed last, and is where more can be printed.
func (m *Model) limit() int {
	return max(m.height-max(min(m.height/4, 6), 1), 1)
}

// liveLines draws what is not finished.
func (m *Model) liveLines() []string {
	var lines []string
	if m.stream.active() {
		lines = m.live.lines(m.transcript, m.stream.turn.Handler(), m.look())
	}
	if m.compaction.summary != nil {
		settled, tail := m.compaction.summary.Lines()
		settled = settled[max(len(settled)-m.height, 0):]
		lines = append(append(append(lines, ""), settled...), tail...)
	}
	if job := m.jobLines(); job != nil {
		lines = append(append(lines, ""), job...)
	}
	return lines
}

// chrome draws everything below the transcript, and where the cursor stands:
// its row is counted from the end of the lines, so it is negative. A card gets
// the room that the rest leaves, so that the line that says what goes on stays
// in sight above it.
func (m *Model) chrome() ([]string, *tea.Cursor) {
	var lines []string
	if m.height >= 8 && !m.crowded() {
		lines = append(lines, "")
	}
	lines = append(lines, m.loaderLine())
	lines = append(lines, m.queueBand()...)
	input, cursor := m.inputArea()
	if len(m.cards) > 0 {
		room := max(m.limit()-len(lines)-len(input), minCardRows)
		lines = append(lines, m.cards[0].draw(cardScene{width: m.width, height: room, keys: m.cardKeys(), more: len(m.cards) - 1})...)
	}
	if m.focus.onCard {
		cursor = nil
	}
	return append(lines, input...), cursor
}

// minCardRows is how many lines a card gets at least.
const minCardRows = 4

// crowded reports whether a card is on a screen that has room for little else.
func (m *Model) crowded() bool { return len(m.cards) > 0 && m.height < 24 }

// inputArea draws the input and what is below it. The row of the cursor is
// counted from the end.
func (m *Model) inputArea() ([]string, *tea.Cursor) {
	var lines []string
	rules := m.height >= 10 && !m.crowded()
	if rules {
		lines = append(lines, render.Rule(m.theme, "", m.width))
	}
	input, x, y := m.inputLines()
	y += len(lines)
	lines = append(lines, input...)
	if rules {
		lines = append(lines, render.Rule(m.theme, "", m.width))
	}
	if completions := m.completer.View(m.width); len(completions) > 0 {
		lines = append(lines, completions...)
	} else if !m.crowded() {
		lines = append(lines, m.statusLines()...)
	}
	return lines, tea.NewCursor(x, y-len(lines))
}

// inputLines draws the editor, in a small terminal only the part with the
// cursor.
func (m *Model) inputLines() (lines []string, x, y int) {
	sign := m.theme.Accent.Styled(m.theme.Glyphs.Prompt)
	switch {
	case m.focus.onCard:
		sign = m.theme.Dim.Styled(m.theme.Glyphs.Prompt)
	case strings.HasPrefix(m.editor.Value(), "!"):
		sign = m.theme.Warning.Styled("!")
	}
	m.editor.SetPrompt(sign)
	lines = m.editor.View()
	x, y = m.editor.Cursor()
	room := max(min(widgets.MaxEditorLines+1, m.height/2), 1)
	if len(m.cards) > 0 {
		room = max(min(room, m.height/5), 1)
	}
	if len(lines) > room {
		from := min(max(y-room+1, 0), len(lines)-room)
		lines, y = lines[from:from+room], y-from
	}
	return lines, x, y
}

func (m *Model) statusLines() []string {
	switch {
	case m.height >= 10:
		return render.StatusLines(m.theme, m.status(), m.width)
	case m.height >= 6:
		return render.StatusLines(m.theme, m.status(), m.width)[1:]
	}
	return nil
}

// loaderLine says what goes on. It is there all the time, so that nothing moves
// when a turn begins or ends.
func (m *Model) loaderLine() string {
	if !m.spinner.Running() {
		if m.notice.text == "" {
			return ""
		}
		return render.Notification(m.theme, m.notice.text, m.width)
	}
	text := m.loading.text
	if m.stream.active() && !m.stream.interrupted {
		if own := m.stream.turn.Handler().Loading(); own != "" {
			text = own
		}
	}
	return render.LoaderLine(m.theme, render.Loader{
		Frame: m.spinner.Frame(), Text: text, Elapsed: m.spinner.Elapsed(), Hint: m.loaderHint(), Notification: m.notice.text,
	}, m.width)
}

func (m *Model) loaderHint() string {
	switch {
	case m.compaction.mode == compactionAutomatic:
		return "esc to skip the compaction"
	case m.compaction.mode == compactionManual:
		return "esc to cancel"
	case len(m.permissionCards()) > 0:
		return "waiting for you"
	}
	return "esc to interrupt"
}
