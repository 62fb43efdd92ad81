package widgets

import (
	"fmt"
	"slices"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// PickerEventKind says what a message did to a picker.
type PickerEventKind int

// What a message did.
const (
	// PickerIgnored means that the message is not for the picker.
	PickerIgnored PickerEventKind = iota
	// PickerChanged means that it has to be drawn again.
	PickerChanged
	// PickerChosen means that the user chose Item.
	PickerChosen
	// PickerCancelled means that the user chose nothing.
	PickerCancelled
)

// PickerEvent is what a message did to a picker.
type PickerEvent struct {
	Kind PickerEventKind
	Item Item
}

// Picker lets the user choose one of many items by typing a part of it.
type Picker struct {
	theme *render.Theme
	title string
	list  list
	page  int // rows of the last picture
}

// NewPicker returns a picker for items, with the first one selected.
func NewPicker(t *render.Theme, title string, items []Item) *Picker {
	p := &Picker{theme: t, title: title, page: 10}
	p.list.setItems(items)
	return p
}

// Select moves to the first item with the value, if there is one.
func (p *Picker) Select(value string) {
	for i, m := range p.list.matches {
		if p.list.items[m.item].Value == value {
			p.list.selected = i
			return
		}
	}
}

// Query returns what the user searches for.
func (p *Picker) Query() string { return p.list.query }

// Selected returns the selected item and whether there is one.
func (p *Picker) Selected() (Item, bool) { return p.list.chosen() }

// Update takes in a key or a paste.
func (p *Picker) Update(msg tea.Msg) PickerEvent {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		p.list.setQuery(p.list.query + render.OneLine(msg.Content))
		return PickerEvent{Kind: PickerChanged}
	case tea.KeyPressMsg:
		return p.key(msg)
	}
	return PickerEvent{}
}

func (p *Picker) key(key tea.KeyPressMsg) PickerEvent {
	switch key.Keystroke() {
	case "enter":
		if item, ok := p.list.chosen(); ok {
			return PickerEvent{Kind: PickerChosen, Item: item}
		}
	case "esc", "ctrl+c":
		return PickerEvent{Kind: PickerCancelled}
	case "up", "ctrl+p":
		p.list.move(-1)
	case "down", "ctrl+n":
		p.list.move(1)
	case "pgup":
		p.list.move(-p.page)
	case "pgdown":
		p.list.move(p.page)
	case "home":
		p.list.move(-len(p.list.matches))
	case "end":
		p.list.move(len(p.list.matches))
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(p.list.query)
		p.list.setQuery(p.list.query[:len(p.list.query)-n])
	case "ctrl+u", "ctrl+w":
		p.list.setQuery("")
	default:
		if key.Text == "" {
			return PickerEvent{}
		}
		p.list.setQuery(p.list.query + key.Text)
	}
	return PickerEvent{Kind: PickerChanged}
}

// View draws the picker in at most height lines: title, search, items, and the
// keys that hint says it takes now.
func (p *Picker) View(width, height int, hint render.CardHint) []string {
	t := p.theme
	width, height = max(width, 1), max(height, 1)
	count := fmt.Sprintf("  %d of %d", len(p.list.matches), len(p.list.items))
	query := t.Accent.Styled(t.Glyphs.Prompt) + " " + render.OneLine(p.list.query)
	if hint.Keys.Focused() {
		query += t.Selected.Styled(" ")
	}
	head := []string{
		render.Truncate(t.Strong.Styled(render.OneLine(p.title))+t.Dim.Styled(count), width),
		render.Truncate(query, width),
	}
	head = head[:min(max(height-2, 0), len(head))] // An item and the keys come first.
	p.page = max(height-len(head)-1, 1)
	lines := slices.Concat(head, p.list.rows(t, p.page, width))
	if len(p.list.matches) == 0 {
		lines = append(lines, render.Truncate(t.Dim.Styled("  nothing found; backspace widens the search"), width))
	}
	hint.Move, hint.Enter, hint.Esc = "type to search", "enter choose", "esc cancel"
	lines = append(lines, hint.Line(t, width))
	return lines[max(len(lines)-height, 0):]
}
