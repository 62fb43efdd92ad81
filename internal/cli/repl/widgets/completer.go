package widgets

import (
	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// CompleterEventKind says what a message did to a completer.
type CompleterEventKind int

// What a message did.
const (
	// CompleterIgnored means that the message is not for the completer.
	CompleterIgnored CompleterEventKind = iota
	// CompleterMoved means that another entry is selected.
	CompleterMoved
	// CompleterAccepted means that the user chose Item; the list is closed.
	CompleterAccepted
	// CompleterClosed means that the user wants no completion.
	CompleterClosed
)

// CompleterEvent is what a message did to a completer.
type CompleterEvent struct {
	Kind CompleterEventKind
	Item Item
}

// Completer is the list that pops up while a command or a file name is typed.
// The query comes from the editor, see [Editor.Trigger].
type Completer struct {
	theme *render.Theme
	rows  int
	list  list
	open  bool
}

// NewCompleter returns a closed completer that shows at most rows entries.
func NewCompleter(t *render.Theme, rows int) *Completer {
	return &Completer{theme: t, rows: max(rows, 1)}
}

// Open shows the entries that the query finds.
func (c *Completer) Open(items []Item, query string) {
	c.list.query = query
	c.list.setItems(items)
	c.open = true
}

// SetQuery searches the entries anew.
func (c *Completer) SetQuery(query string) { c.list.setQuery(query) }

// Close hides the list.
func (c *Completer) Close() { c.open = false }

// Visible reports whether the list is open and has something to offer.
func (c *Completer) Visible() bool { return c.open && len(c.list.matches) > 0 }

// Selected returns the selected entry and whether there is one.
func (c *Completer) Selected() (Item, bool) {
	if !c.Visible() {
		return Item{}, false
	}
	return c.list.chosen()
}

// Update takes in a key. Only a visible list takes any: up and down, Tab and
// Enter to accept, Esc to close.
func (c *Completer) Update(msg tea.Msg) CompleterEvent {
	key, ok := msg.(tea.KeyPressMsg)
	if !ok || !c.Visible() {
		return CompleterEvent{}
	}
	switch key.Keystroke() {
	case "up", "ctrl+p":
		c.list.move(-1)
	case "down", "ctrl+n":
		c.list.move(1)
	case "esc":
		c.Close()
		return CompleterEvent{Kind: CompleterClosed}
	case "tab", "enter":
		item, _ := c.list.chosen()
		c.Close()
		return CompleterEvent{Kind: CompleterAccepted, Item: item}
	default:
		return CompleterEvent{}
	}
	return CompleterEvent{Kind: CompleterMoved}
}

// View draws the list; a list that is not visible has no lines.
func (c *Completer) View(width int) []string {
	if !c.Visible() {
		return nil
	}
	return c.list.rows(c.theme, c.rows, max(width, 1))
}
