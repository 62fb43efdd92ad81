package widgets

import (
	"strings"

	"keen/internal/cli/repl/render"
)

// row is one line of the screen: the elements from one index to another.
type row struct{ from, to int }

// layout breaks the elements into rows of at most width cells, between words
// where it can. There is always one row, and one behind a final newline. The
// space behind a word may hang over the end of a row by one cell.
func layout(elements []element, width int) []row {
	var rows []row
	from, column, space := 0, 0, -1 // space is where the last word of the row begins
	for i, e := range elements {
		if e.isNewline() {
			rows = append(rows, row{from, i + 1})
			from, column, space = i+1, 0, -1
			continue
		}
		cells, room := cellsOf(e, width), width
		if e.text == " " {
			room++
		}
		for column+cells > room && column > 0 {
			end := i
			if space > from && !e.isSpace() {
				end = space
			}
			rows = append(rows, row{from, end})
			from, column, space = end, 0, -1
			for _, moved := range elements[from:i] {
				column += cellsOf(moved, width)
			}
		}
		column += cells
		if e.isSpace() {
			space = i + 1
		}
	}
	return append(rows, row{from, len(elements)})
}

// shown returns what is drawn for an element.
func shown(e element) string {
	switch {
	case e.label != "":
		return e.label
	case e.isNewline():
		return ""
	case e.text == "\t":
		return "    "
	}
	return render.Reveal(e.text)
}

// cellsOf returns how many cells an element takes, at most width.
func cellsOf(e element, width int) int { return min(render.Width(shown(e)), width) }

// drawn returns what is drawn for an element in a row of the given width, and
// how many cells it takes.
func drawn(e element, width int) (string, int) {
	text := shown(e)
	cells := render.Width(text)
	if cells <= width {
		return text, cells
	}
	if e.label == "" {
		return strings.Repeat("·", width), width // Too wide for the screen.
	}
	text = render.Truncate(text, width)
	return text, render.Width(text)
}

// rowOf returns the index of the row with the cursor.
func rowOf(rows []row, cursor int) int {
	for i, r := range rows {
		if cursor < r.to {
			return i
		}
	}
	return len(rows) - 1
}

// column returns how many cells stand before the cursor in its row.
func column(elements []element, r row, cursor, width int) int {
	cells := 0
	for _, e := range elements[r.from:cursor] {
		_, n := drawn(e, width)
		cells += n
	}
	return cells
}

// at returns the index of the element of a row that stands nearest to a
// column, without going behind the row.
func at(elements []element, r row, last bool, goal, width int) int {
	cells := 0
	for i := r.from; i < r.to; i++ {
		_, n := drawn(elements[i], width)
		if elements[i].isNewline() || cells+n > goal || i == r.to-1 && !last {
			return i
		}
		cells += n
	}
	return r.to
}
