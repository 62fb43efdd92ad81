package widgets

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// EditorEventKind says what a message did to an editor.
type EditorEventKind int

// What a message did.
const (
	// EditorIgnored means that the message is not for the editor; the program
	// may do something else with it.
	EditorIgnored EditorEventKind = iota
	// EditorMoved means that only the cursor or the search changed.
	EditorMoved
	// EditorChanged means that the text is another one.
	EditorChanged
	// EditorSubmitted means that the user sends Text; the editor is empty
	// again.
	EditorSubmitted
	// EditorRefused means that something could not be pasted; Text says why.
	EditorRefused
)

// EditorEvent is what a message did to an editor.
type EditorEvent struct {
	Kind EditorEventKind
	// Text is the whole prompt, pastes unfolded, or the reason of a refusal.
	Text string
}

// MaxEditorLines is how many lines an editor grows to.
const MaxEditorLines = 15

// Editor is an input of several lines that grows with its text.
//
// Enter submits; Shift+Enter, Alt+Enter, Ctrl+J and a backslash before Enter
// begin a new line. Long pastes are shown as a short token and sent whole.
// Up on the first line and Down on the last one go through the history, Ctrl+R
// searches it.
type Editor struct {
	theme       *render.Theme
	width       int
	placeholder string
	prompt      string
	buffer      buffer
	history     history
	pastes      int
	// goal is the column that Up and Down keep to, -1 when they did not come
	// last. top is the first row on the screen.
	goal, top int
}

// NewEditor returns an empty editor that is 80 cells wide.
func NewEditor(t *render.Theme) *Editor {
	e := &Editor{theme: t, width: 80, prompt: t.Accent.Styled(t.Glyphs.Prompt) + " ", goal: -1}
	e.history.reset()
	return e
}

// SetWidth sets the width of the whole editor, in cells.
func (e *Editor) SetWidth(width int) { e.width = max(width, 1) }

// SetPlaceholder sets what an empty editor shows.
func (e *Editor) SetPlaceholder(text string) { e.placeholder = text }

// SetPrompt sets the sign before the first line, with its style.
func (e *Editor) SetPrompt(sign string) { e.prompt = sign + " " }

// SetHistory sets the prompts of before, the oldest first.
func (e *Editor) SetHistory(entries []string) {
	e.history.entries = append([]string(nil), entries...)
	e.history.reset()
}

// AddHistory appends a prompt to the history; blank ones and repetitions of
// the last one are left out.
func (e *Editor) AddHistory(text string) { e.history.add(text) }

// Value returns the text, pastes unfolded byte for byte.
func (e *Editor) Value() string { return e.buffer.value() }

// Empty reports whether there is no text at all.
func (e *Editor) Empty() bool { return len(e.buffer.elements) == 0 }

// SetValue replaces the text and puts the cursor at its end. Nothing in it is
// folded.
func (e *Editor) SetValue(text string) {
	e.buffer = buffer{elements: split(text)}
	e.buffer.cursor = len(e.buffer.elements)
	e.history.reset()
	e.goal, e.top, e.pastes = -1, 0, 0
}

// Reset empties the editor.
func (e *Editor) Reset() { e.SetValue("") }

// Insert puts text at the cursor, as if it was typed.
func (e *Editor) Insert(text string) {
	e.buffer.insert(text)
	e.goal = -1
}

// Searching reports whether the history is being searched: Esc then ends the
// search and is for the editor.
func (e *Editor) Searching() bool { return e.history.searching }

// Update takes in a key or a paste.
func (e *Editor) Update(msg tea.Msg) EditorEvent {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		return e.paste(msg.Content)
	case tea.KeyPressMsg:
		if e.history.searching {
			return e.searchKey(msg)
		}
		return e.key(msg)
	}
	return EditorEvent{}
}

func (e *Editor) paste(content string) EditorEvent {
	if isImage(content) {
		return EditorEvent{Kind: EditorRefused, Text: imageRefusal}
	}
	if content == "" {
		return EditorEvent{Kind: EditorMoved}
	}
	if e.history.searching {
		e.history.query += render.OneLine(content)
		e.history.search(len(e.history.entries))
		return EditorEvent{Kind: EditorMoved}
	}
	text := pastedText(content)
	if label := pasteLabel(text, e.pastes+1); label != "" {
		e.pastes++
		e.buffer.insertFolded(text, label)
	} else {
		e.buffer.insert(text)
	}
	e.goal = -1
	return EditorEvent{Kind: EditorChanged}
}

func (e *Editor) key(key tea.KeyPressMsg) EditorEvent {
	stroke := key.Keystroke()
	if kind := e.vertical(stroke); kind != EditorIgnored {
		return EditorEvent{Kind: kind}
	}
	if stroke == "enter" {
		return e.enter()
	}
	if e.moveKey(stroke) {
		e.goal = -1
		return EditorEvent{Kind: EditorMoved}
	}
	if e.editKey(stroke) {
		e.goal = -1
		return EditorEvent{Kind: EditorChanged}
	}
	if key.Text != "" {
		e.Insert(key.Text)
		return EditorEvent{Kind: EditorChanged}
	}
	return EditorEvent{}
}

// enter submits, or begins a new line when a backslash stands before the
// cursor.
func (e *Editor) enter() EditorEvent {
	if i := e.buffer.cursor; i > 0 && e.buffer.elements[i-1] == (element{text: `\`}) {
		e.buffer.remove(i-1, i)
		e.Insert("\n")
		return EditorEvent{Kind: EditorChanged}
	}
	text := e.Value()
	if strings.TrimSpace(text) == "" {
		return EditorEvent{Kind: EditorMoved}
	}
	e.Reset()
	return EditorEvent{Kind: EditorSubmitted, Text: text}
}

// moveKey moves the cursor within its line or word.
func (e *Editor) moveKey(stroke string) bool {
	b := &e.buffer
	switch stroke {
	case "left", "ctrl+b":
		b.move(-1)
	case "right", "ctrl+f":
		b.move(1)
	case "ctrl+left", "alt+left", "alt+b":
		b.cursor = b.wordLeft()
	case "ctrl+right", "alt+right", "alt+f":
		b.cursor = b.wordRight()
	case "home", "ctrl+a":
		b.cursor = b.lineStart()
	case "end", "ctrl+e":
		b.cursor = b.lineEnd()
	case "ctrl+home", "alt+<":
		b.cursor = 0
	case "ctrl+end", "alt+>":
		b.cursor = len(b.elements)
	case "ctrl+r":
		e.history.searching, e.history.query = true, ""
		e.history.search(len(e.history.entries))
	default:
		return false
	}
	return true
}

// editKey deletes, or begins a new line.
func (e *Editor) editKey(stroke string) bool {
	b := &e.buffer
	switch stroke {
	case "shift+enter", "alt+enter", "ctrl+enter", "ctrl+j":
		b.insert("\n")
	case "backspace", "shift+backspace", "ctrl+h":
		b.remove(max(b.cursor-1, 0), b.cursor)
	case "delete":
		b.remove(b.cursor, min(b.cursor+1, len(b.elements)))
	case "ctrl+d":
		if len(b.elements) == 0 {
			return false // The program may quit.
		}
		b.remove(b.cursor, min(b.cursor+1, len(b.elements)))
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		b.remove(b.wordLeft(), b.cursor)
	case "alt+d", "ctrl+delete", "alt+delete":
		b.remove(b.cursor, b.wordRight())
	case "ctrl+u":
		b.remove(b.lineStart(), b.cursor)
	case "ctrl+k":
		b.remove(b.cursor, b.lineEnd())
	default:
		return false
	}
	return true
}

// vertical goes up and down: through the rows, and from the first and the last
// one through the history.
func (e *Editor) vertical(stroke string) EditorEventKind {
	var step int
	switch stroke {
	case "up", "ctrl+p":
		step = -1
	case "down", "ctrl+n":
		step = 1
	default:
		return EditorIgnored
	}
	width := e.textWidth()
	rows := layout(e.buffer.elements, width)
	from := rowOf(rows, e.buffer.cursor)
	to := from + step
	if to < 0 || to >= len(rows) {
		return e.recall(step)
	}
	if e.goal < 0 {
		e.goal = column(e.buffer.elements, rows[from], e.buffer.cursor, width)
	}
	e.buffer.cursor = at(e.buffer.elements, rows[to], to == len(rows)-1, e.goal, width)
	return EditorMoved
}

// recall shows an older or a newer prompt. Where there is none the cursor goes
// to the end of the text instead.
func (e *Editor) recall(step int) EditorEventKind {
	var b buffer
	var ok bool
	if step < 0 {
		b, ok = e.history.older(e.buffer)
	} else {
		b, ok = e.history.newer()
	}
	e.goal = -1
	if ok {
		e.buffer, e.top = b, 0
		return EditorChanged
	}
	if step < 0 {
		e.buffer.cursor = 0
	} else {
		e.buffer.cursor = len(e.buffer.elements)
	}
	return EditorMoved
}
