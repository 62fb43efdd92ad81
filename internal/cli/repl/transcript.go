package repl

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"keen/internal/cli/repl/render"
)

// blockKind says what a block of the transcript is, as far as the space around
// it depends on that.
type blockKind int

const (
	blockNone blockKind = iota
	blockUser
	blockText
	blockReasoning
	blockTool
	blockNote
)

// transcript is what was said and done, as finished lines.
//
// The program draws inline: the newest lines are part of the picture that
// Bubble Tea redraws, and when they are more than there is room for, the oldest
// are printed above the picture for good. From then on they belong to the
// terminal, which scrolls, selects and copies them by its own means, and Keen
// forgets them. So the picture keeps its height while text streams into it, and
// neither time nor memory grows with what was printed.
type transcript struct {
	// lines are finished and still in the picture.
	lines []string
	last  blockKind
	// gone counts the lines that left the picture.
	gone int
	// step is where the running step begins; see mark.
	step position

	// unprinted left the picture and are not printed yet; printing says that
	// some are on their way.
	unprinted []string
	printing  bool
	profile   colorprofile.Profile
}

// position is a place in the transcript.
type position struct {
	line int
	last blockKind
}

// add appends a block, with a blank line before it where that is due.
func (t *transcript) add(kind blockKind, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.lines = append(t.lines, t.gap(kind, len(lines))...)
	t.lines = append(t.lines, lines...)
	t.last = kind
}

// more appends lines to the block that was added last.
func (t *transcript) more(lines []string) { t.lines = append(t.lines, lines...) }

// gap returns the space before a block of some lines: calls of one line stand
// close together, everything else is set off.
func (t *transcript) gap(kind blockKind, lines int) []string {
	if t.last == blockNone || kind == blockTool && t.last == blockTool && lines == 1 {
		return nil
	}
	return []string{""}
}

// mark notes that a step begins here.
func (t *transcript) mark() { t.step = position{line: t.gone + len(t.lines), last: t.last} }

// rewind takes back what was added since the mark, as far as it is still in the
// picture. It reports whether nothing of it is left.
func (t *transcript) rewind() bool {
	t.lines = t.lines[:min(max(t.step.line-t.gone, 0), len(t.lines))]
	if t.step.line < t.gone {
		t.step.line = t.gone
		return false
	}
	t.last = t.step.last
	return true
}

// evict takes the oldest n lines out of the picture.
func (t *transcript) evict(n int) {
	n = min(n, len(t.lines))
	if n <= 0 {
		return
	}
	t.unprinted = append(t.unprinted, t.lines[:n]...)
	t.lines = append([]string(nil), t.lines[n:]...)
	t.gone += n
}

// printedMsg says that lines were printed.
type printedMsg struct{}

// print prints what left the picture, at most n lines at a time: Bubble Tea
// makes room for them above the picture, and no more than that is there. Lines
// keep their order because only one batch is on its way.
func (t *transcript) print(n int) tea.Cmd {
	if t.printing || len(t.unprinted) == 0 {
		return nil
	}
	n = min(max(n, 1), len(t.unprinted))
	batch := make([]string, n)
	for i, line := range t.unprinted[:n] {
		batch[i] = t.degrade(line)
		if batch[i] == "" {
			batch[i] = " " // An empty print is none.
		}
	}
	if t.unprinted = t.unprinted[n:]; len(t.unprinted) == 0 {
		t.unprinted = nil
	}
	t.printing = true
	return tea.Sequence(tea.Println(strings.Join(batch, "\n")), func() tea.Msg { return printedMsg{} })
}

// degrade gives a line the colours that the terminal has. Bubble Tea does it
// for the picture, but not for what is printed above it.
func (t *transcript) degrade(line string) string {
	if t.profile == colorprofile.Unknown || t.profile == colorprofile.TrueColor {
		return line
	}
	var b strings.Builder
	w := colorprofile.Writer{Forward: &b, Profile: t.profile}
	_, _ = w.WriteString(line) // A builder takes everything.
	return b.String()
}

// rewrap breaks the lines in the picture for another width.
func (t *transcript) rewrap(width int) {
	var lines []string
	step := t.step.line - t.gone
	for i, line := range t.lines {
		if i == step {
			t.step.line = t.gone + len(lines)
		}
		if render.Width(line) <= width {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, strings.Split(ansi.Hardwrap(line, max(width, 1), true), "\n")...)
	}
	if step >= len(t.lines) {
		t.step.line = t.gone + len(lines)
	}
	t.lines = lines
}

// clear empties the picture; what was printed stays in the terminal.
func (t *transcript) clear() {
	t.gone += len(t.lines)
	t.lines, t.last = nil, blockNone
	t.mark()
}
