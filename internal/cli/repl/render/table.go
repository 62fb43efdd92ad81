package render

import (
	"slices"
	"strings"
)

// TableData is a table of short texts.
type TableData struct {
	// Headers name the columns; nil for none.
	Headers []string
	// Rows have as many cells as there are columns; missing ones are empty.
	Rows [][]string
	// Right are the columns, counted from 0, that stand at the right, as
	// numbers do.
	Right []int
}

// tableGap is the space between two columns, in cells.
const tableGap = 2

// Table renders a table. Columns are as wide as their content where that fits;
// else the widest ones are wrapped.
func Table(t *Theme, d TableData, width int) []string {
	width = max(width, 1)
	rows := make([][]string, 0, len(d.Rows)+1)
	if d.Headers != nil {
		rows = append(rows, d.Headers)
	}
	rows = append(rows, d.Rows...)
	clean := make([][]string, len(rows))
	columns := 0
	for i, row := range rows {
		clean[i] = make([]string, len(row))
		for j, cell := range row {
			clean[i][j] = OneLine(cell)
		}
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return nil
	}
	widths := columnWidths(clean, columns, width, tableGap)
	if widths == nil {
		return stacked(t, d, clean, width)
	}
	var lines []string
	for i, row := range clean {
		header := i == 0 && d.Headers != nil
		lines = append(lines, tableRow(t, d, row, widths, header)...)
	}
	return lines
}

// columnWidths shares the width among columns with a gap between them, nil when
// there is too little of it for all of them.
func columnWidths(rows [][]string, columns, width, gap int) []int {
	widths := make([]int, columns)
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], Width(cell))
		}
	}
	total := gap * (columns - 1)
	for _, w := range widths {
		total += w
	}
	for total > width {
		widest := slices.Index(widths, slices.Max(widths))
		second := 0
		for j, w := range widths {
			if j != widest {
				second = max(second, w)
			}
		}
		cut := min(max(widths[widest]-second, 1), total-width)
		if widths[widest]-cut < minTextWidth {
			cut = widths[widest] - minTextWidth
		}
		if cut <= 0 {
			return nil
		}
		widths[widest] -= cut
		total -= cut
	}
	return widths
}

func tableRow(t *Theme, d TableData, row []string, widths []int, header bool) []string {
	cells := make([][]string, len(widths))
	height := 1
	for j := range widths {
		if j < len(row) {
			cells[j] = Wrap(row[j], max(widths[j], 1))
		}
		height = max(height, len(cells[j]))
	}
	lines := make([]string, height)
	for i := range lines {
		var b strings.Builder
		for j, w := range widths {
			text := ""
			if i < len(cells[j]) {
				text = cells[j][i]
			}
			if j > 0 {
				b.WriteString(strings.Repeat(" ", tableGap))
			}
			if slices.Contains(d.Right, j) {
				b.WriteString(padLeft(text, w))
			} else {
				b.WriteString(Pad(text, w))
			}
		}
		lines[i] = strings.TrimRight(b.String(), " ")
		if header {
			lines[i] = t.Strong.Styled(lines[i])
		}
	}
	return lines
}

// stacked shows one cell a line, for screens that are too narrow for columns.
func stacked(t *Theme, d TableData, rows [][]string, width int) []string {
	var lines []string
	if d.Headers != nil {
		rows = rows[1:]
	}
	for i, row := range rows {
		if i > 0 {
			lines = append(lines, "")
		}
		for j, cell := range row {
			if j < len(d.Headers) && d.Headers[j] != "" {
				cell = OneLine(d.Headers[j]) + ": " + cell
			}
			style := Style{}
			if j == 0 {
				style = t.Strong
			}
			lines = append(lines, styleLines(style, Wrap(cell, width))...)
		}
	}
	return lines
}

// HelpEntry is a command or a key with what it does.
type HelpEntry struct {
	// Name is how it is typed, such as "/compact [hint]".
	Name string
	// Text says what it does.
	Text string
}

// HelpSection is a group of entries under a title.
type HelpSection struct {
	Title   string
	Entries []HelpEntry
}

// HelpTable renders commands and keys in two columns.
func HelpTable(t *Theme, sections []HelpSection, width int) []string {
	width = max(width, 1)
	name := 0
	for _, s := range sections {
		for _, e := range s.Entries {
			name = max(name, Width(OneLine(e.Name)))
		}
	}
	var lines []string
	for i, s := range sections {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, styleLines(t.Strong, Wrap(OneLine(s.Title), width))...)
		for _, e := range s.Entries {
			lines = append(lines, helpEntry(t, e, name, width)...)
		}
	}
	return lines
}

func helpEntry(t *Theme, e HelpEntry, name, width int) []string {
	const indent, gap = 2, 2
	column := indent + name + gap
	if width < column+2*minTextWidth {
		pad := strings.Repeat(" ", indentWidth(indent, width))
		lines := styleLines(t.Code, Wrap(OneLine(e.Name), width))
		return append(lines, hang(pad, pad, styleLines(t.Dim, Wrap(OneLine(e.Text), width-len(pad))))...)
	}
	first := "  " + t.Code.Styled(Pad(OneLine(e.Name), name)) + "  "
	return hang(first, strings.Repeat(" ", column), Wrap(OneLine(e.Text), width-column))
}
