package widgets

import (
	"strings"

	"github.com/sahilm/fuzzy"

	"keen/internal/cli/repl/render"
)

// Item is an entry of a [Completer] or a [Picker].
type Item struct {
	// Text is what the entry is called and found by.
	Text string
	// Detail is shown behind it.
	Detail string
	// Value is what the program makes of it, such as an id; the widgets do
	// not look at it.
	Value string
}

// list is a fuzzy-searched list with a selected entry and a window on it.
type list struct {
	items   []Item
	shown   texts // what is matched and drawn: the text of each item, harmless
	query   string
	matches []match
	// selected is an index in matches, top the first one in the window.
	selected, top int
}

// match is an item that the query finds, with the bytes of its shown text that
// it found.
type match struct {
	item  int
	found []int
}

// texts is a fuzzy.Source.
type texts []string

func (t texts) String(i int) string { return t[i] }
func (t texts) Len() int            { return len(t) }

// setItems replaces the items and keeps the query. The selection goes to the
// first match.
func (l *list) setItems(items []Item) {
	l.items = items
	l.shown = make(texts, len(items))
	for i, item := range items {
		l.shown[i] = render.Reveal(render.OneLine(item.Text))
	}
	l.filter()
}

func (l *list) setQuery(query string) {
	if query != l.query {
		l.query = query
		l.filter()
	}
}

func (l *list) filter() {
	l.selected, l.top = 0, 0
	l.matches = l.matches[:0]
	if l.query == "" {
		for i := range l.items {
			l.matches = append(l.matches, match{item: i})
		}
		return
	}
	for _, m := range fuzzy.FindFrom(l.query, l.shown) {
		l.matches = append(l.matches, match{item: m.Index, found: m.MatchedIndexes})
	}
}

// move selects the entry n places further, staying within the list.
func (l *list) move(n int) {
	l.selected = max(min(l.selected+n, len(l.matches)-1), 0)
}

// chosen returns the selected item and whether there is one.
func (l *list) chosen() (Item, bool) {
	if len(l.matches) == 0 {
		return Item{}, false
	}
	return l.items[l.matches[l.selected].item], true
}

// window returns the matches that are drawn in the given number of rows and
// the index of the first.
func (l *list) window(rows int) (int, []match) {
	rows = max(rows, 1)
	switch {
	case l.selected < l.top:
		l.top = l.selected
	case l.selected >= l.top+rows:
		l.top = l.selected - rows + 1
	}
	l.top = max(min(l.top, len(l.matches)-rows), 0)
	return l.top, l.matches[l.top:min(l.top+rows, len(l.matches))]
}

// rows draws the window. column is the width of the texts, so that the details
// stand below each other.
func (l *list) rows(t *render.Theme, rows, width int) []string {
	top, window := l.window(rows)
	column := 0
	for _, m := range window {
		column = max(column, render.Width(l.shown[m.item]))
	}
	column = min(column, max(width-2, 1)*2/3)
	lines := make([]string, 0, len(window))
	for i, m := range window {
		pointer := "  "
		style := render.Style{}
		if top+i == l.selected {
			pointer, style = t.Accent.Styled(t.Glyphs.Pointer)+" ", t.Strong
		}
		text := render.Pad(render.Truncate(highlight(l.shown[m.item], m.found, style, t.Match), column), column)
		if detail := render.OneLine(l.items[m.item].Detail); detail != "" {
			text += "  " + t.Dim.Styled(detail)
		}
		lines = append(lines, render.Truncate(pointer+strings.TrimRight(text, " "), width))
	}
	return lines
}

// highlight draws text with the characters at the given bytes standing out.
func highlight(text string, found []int, plain, match render.Style) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		hit := len(found) > 0 && found[0] == i
		run := i
		for run < len(text) {
			at := len(found) > 0 && found[0] == run
			if at != hit {
				break
			}
			if at {
				found = found[1:]
			}
			run += runeLength(text[run:])
		}
		if hit {
			b.WriteString(match.Styled(text[i:run]))
		} else {
			b.WriteString(plain.Styled(text[i:run]))
		}
		i = run
	}
	return b.String()
}

func runeLength(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
