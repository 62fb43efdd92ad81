package render

import (
	"strings"
)

// tableStart returns the index of the line with the headings of the first
// table in lines, -1 when there is none.
func tableStart(lines []string) int {
	for i := range len(lines) - 1 {
		if strings.Contains(lines[i], "|") && isTableRule(lines[i+1]) && len(tableCells(lines[i])) == len(tableCells(lines[i+1])) {
			return i
		}
	}
	return -1
}

// tableCells splits a row of a table.
func tableCells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var cells []string
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case line[i] == '|':
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}

// table renders a table: headings, the line below them, rows.
func (m *Markdown) table(lines []string) []string {
	headers, rule := tableCells(lines[0]), tableCells(lines[1])
	rows := [][]string{headers}
	for _, line := range lines[2:] {
		cells := tableCells(line)
		rows = append(rows, append(cells, make([]string, max(len(headers)-len(cells), 0))...)[:len(headers)])
	}
	for i, row := range rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			if cells[j] = m.inline(cell); i == 0 && cells[j] == cell {
				cells[j] = m.theme.Strong.Styled(cell)
			}
		}
		rows[i] = cells
	}
	const gap = 3 // " │ "
	widths := columnWidths(rows, len(headers), m.width, gap)
	if widths == nil {
		return m.stackedTable(rows)
	}
	out := m.tableRow(rows[0], rule, widths)
	out = append(out, m.theme.Border.Styled(m.tableRule(widths)))
	for _, row := range rows[1:] {
		out = append(out, m.tableRow(row, rule, widths)...)
	}
	return out
}

func (m *Markdown) tableRule(widths []int) string {
	line, cross := m.theme.Glyphs.Rule, m.theme.Glyphs.Cross
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat(line, w)
	}
	return strings.Join(parts, line+cross+line)
}

func (m *Markdown) tableRow(row, rule []string, widths []int) []string {
	cells := make([][]string, len(row))
	height := 1
	for j, cell := range row {
		cells[j] = fitStyled(cell, max(widths[j], 1))
		height = max(height, len(cells[j]))
	}
	separator := " " + m.theme.Border.Styled(m.theme.Glyphs.Column) + " "
	lines := make([]string, height)
	for i := range lines {
		parts := make([]string, len(row))
		for j := range row {
			text := ""
			if i < len(cells[j]) {
				text = cells[j][i]
			}
			if strings.HasSuffix(rule[j], ":") && !strings.HasPrefix(rule[j], ":") {
				parts[j] = padLeft(text, widths[j])
			} else {
				parts[j] = Pad(text, widths[j])
			}
		}
		lines[i] = strings.TrimRight(strings.Join(parts, separator), " ")
	}
	return lines
}

// stackedTable shows one cell a line, for screens that are too narrow.
func (m *Markdown) stackedTable(rows [][]string) []string {
	var lines []string
	for i, row := range rows[1:] {
		if i > 0 {
			lines = append(lines, "")
		}
		for j, cell := range row {
			lines = append(lines, fitStyled(rows[0][j]+": "+cell, m.width)...)
		}
	}
	if len(rows) == 1 {
		for _, header := range rows[0] {
			lines = append(lines, fitStyled(header, m.width)...)
		}
	}
	return lines
}

// inlineWidth is a width that no cell reaches.
const inlineWidth = 4 * maxLine

// inline renders the text of a cell on one line.
func (m *Markdown) inline(text string) string {
	if !strings.ContainsAny(text, "*_`[]<&~\\!:") && !strings.Contains(text, "www.") {
		return text
	}
	if kindOf(text) != blockText { // A cell is never a list or a heading.
		return text
	}
	return strings.Join(m.inner(inlineWidth).prose(text), " ")
}
