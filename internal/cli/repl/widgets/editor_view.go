package widgets

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// promptWidth is what the sign before the text takes, in cells, and minEditor
// the width from which on there is room for it.
const (
	promptWidth = 2
	minEditor   = 10
)

// textWidth returns how many cells of a row the text may take. One cell is kept
// free for the cursor behind it.
func (e *Editor) textWidth() int { return max(e.width-e.leadWidth()-1, 1) }

func (e *Editor) leadWidth() int {
	if e.width < minEditor {
		return 0
	}
	return promptWidth
}

// searchKey takes in a key while the history is searched.
func (e *Editor) searchKey(key tea.KeyPressMsg) EditorEvent {
	h := &e.history
	switch key.Keystroke() {
	case "ctrl+r", "up":
		h.search(h.found)
	case "esc", "ctrl+g", "ctrl+c":
		h.searching = false
	case "enter", "tab", "right":
		h.searching = false
		if h.found >= 0 {
			found := h.found
			e.buffer, e.top = h.entry(found), 0
			return EditorEvent{Kind: EditorChanged}
		}
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(h.query)
		h.query = h.query[:len(h.query)-n]
		h.search(len(h.entries))
	default:
		if key.Text == "" {
			return EditorEvent{}
		}
		h.query += key.Text
		h.search(len(h.entries))
	}
	return EditorEvent{Kind: EditorMoved}
}

// Height returns how many lines View has: 1 to [MaxEditorLines], and one more
// during a search.
func (e *Editor) Height() int {
	n := min(len(layout(e.buffer.elements, e.textWidth())), MaxEditorLines)
	if e.history.searching {
		n++
	}
	return n
}

// View draws the editor. The cursor is not in it, see [Editor.Cursor].
func (e *Editor) View() []string {
	width := e.textWidth()
	rows := layout(e.buffer.elements, width)
	e.scroll(rows)
	lines := make([]string, 0, MaxEditorLines+1)
	for i := e.top; i < min(e.top+MaxEditorLines, len(rows)); i++ {
		lines = append(lines, e.lead(i)+e.row(rows[i], width))
	}
	if e.Empty() && e.placeholder != "" {
		lines[0] += e.theme.Dim.Styled(render.Truncate(render.OneLine(e.placeholder), width))
	}
	if e.history.searching {
		lines = append(lines, e.searchLine())
	}
	return lines
}

// lead is what stands before the text of a row.
func (e *Editor) lead(i int) string {
	switch {
	case e.leadWidth() == 0:
		return ""
	case i == 0:
		return e.prompt
	}
	return strings.Repeat(" ", promptWidth)
}

func (e *Editor) row(r row, width int) string {
	var b strings.Builder
	for _, el := range e.buffer.elements[r.from:r.to] {
		text, _ := drawn(el, width)
		if el.label != "" {
			text = e.theme.Accent.Styled(text)
		}
		b.WriteString(text)
	}
	return strings.TrimRight(b.String(), " ")
}

func (e *Editor) searchLine() string {
	text := "search: " + render.OneLine(e.history.query)
	if e.history.found < 0 {
		return render.Truncate(e.theme.Warning.Styled(text+"  nothing found"), e.width)
	}
	found := render.Reveal(render.OneLine(e.history.entries[e.history.found]))
	return render.Truncate(e.theme.Dim.Styled(text+" "+e.theme.Glyphs.Arrow+" ")+found, e.width)
}

// scroll moves the window so that the row with the cursor is in it.
func (e *Editor) scroll(rows []row) {
	at := rowOf(rows, e.buffer.cursor)
	switch {
	case at < e.top:
		e.top = at
	case at >= e.top+MaxEditorLines:
		e.top = at - MaxEditorLines + 1
	}
	e.top = max(min(e.top, len(rows)-MaxEditorLines), 0)
}

// Cursor returns where the cursor stands in the last picture, in cells from
// its upper left corner.
func (e *Editor) Cursor() (x, y int) {
	width := e.textWidth()
	rows := layout(e.buffer.elements, width)
	e.scroll(rows)
	i := rowOf(rows, e.buffer.cursor)
	x = e.leadWidth() + column(e.buffer.elements, rows[i], e.buffer.cursor, width)
	return min(x, e.width-1), i - e.top
}

// Trigger says what a completer could complete at the cursor.
type Trigger struct {
	// Sign is '/' for a command, which begins the text, or '@' for a file.
	Sign rune
	// Query is what follows the sign, up to the cursor.
	Query string

	from int
}

// Trigger returns what could be completed, and whether there is anything: the
// word before the cursor begins with @, or is the first one and begins with /.
func (e *Editor) Trigger() (Trigger, bool) {
	from := e.buffer.cursor
	for from > 0 && !e.buffer.elements[from-1].isSpace() && e.buffer.elements[from-1].label == "" {
		from--
	}
	if from == e.buffer.cursor {
		return Trigger{}, false
	}
	query := join(e.buffer.elements[from+1 : e.buffer.cursor])
	switch sign := e.buffer.elements[from].text; {
	case sign == "@", sign == "/" && from == 0:
		return Trigger{Sign: rune(sign[0]), Query: query, from: from}, true
	}
	return Trigger{}, false
}

// Complete replaces what a trigger stands for, its sign included, by text and a
// space.
func (e *Editor) Complete(t Trigger, text string) {
	if t.from > e.buffer.cursor {
		return
	}
	e.buffer.remove(t.from, e.buffer.cursor)
	if i := e.buffer.cursor; i == len(e.buffer.elements) || !e.buffer.elements[i].isSpace() {
		text += " "
	}
	e.Insert(text)
}
