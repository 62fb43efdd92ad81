package render

import (
	"fmt"
	"strconv"
	"strings"
)

// Diff renders a unified diff with the line numbers of both sides. Long lines
// are wrapped below their text. After maxLines lines of the diff the rest is
// folded; zero or less shows all.
func Diff(t *Theme, unified string, maxLines, width int) []string {
	width = max(width, 1)
	rows := parseDiff(unified)
	shown, hidden := rows, 0
	if maxLines > 0 && len(rows) > maxLines {
		shown, hidden = rows[:maxLines], len(rows)-maxLines
	}
	largest := 1
	for _, r := range shown {
		largest = max(largest, r.before, r.after)
	}
	digits := len(strconv.Itoa(largest))
	gutter := indentWidth(2*digits+4, width)
	var lines []string
	for _, r := range shown {
		lines = append(lines, r.render(t, digits, gutter, width)...)
	}
	if hidden > 0 {
		lines = append(lines, moreLines(t, hidden, "more", width))
	}
	return lines
}

// DiffCounts returns how many lines a unified diff adds and removes.
func DiffCounts(unified string) (added, removed int) {
	for _, r := range parseDiff(unified) {
		switch r.sign {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// diffRow is one line of a diff. before and after are its line numbers, zero
// on the side where it does not exist. The sign of a heading is '@'.
type diffRow struct {
	sign          byte
	before, after int
	text          string
}

func (r diffRow) render(t *Theme, digits, gutter, width int) []string {
	if r.sign == '@' {
		return []string{t.Hunk.Styled(Truncate(OneLine(r.text), width))}
	}
	style := Style{}
	switch r.sign {
	case '+':
		style = t.Added
	case '-':
		style = t.Removed
	case '\\':
		style = t.Dim
	}
	numbers := ""
	if gutter > 0 {
		numbers = t.Dim.Styled(padLeft(lineNumber(r.before), digits)+" "+padLeft(lineNumber(r.after), digits)) + " "
	}
	sign := ""
	if width > 1 {
		sign = string(r.sign) + " "
		if gutter == 0 {
			sign = string(r.sign)
		}
	}
	blank := strings.Repeat(" ", Width(numbers)+len(sign))
	text := styleLines(style, CodeWrap(Reveal(strings.TrimSuffix(r.text, "\r")), width-len(blank)))
	return hang(numbers+style.Styled(sign), blank, text)
}

func lineNumber(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// parseDiff reads the hunks of a unified diff. The names of the files are
// shown only where there is more than one.
func parseDiff(unified string) []diffRow {
	var rows []diffRow
	before, after, left, right := 0, 0, 0, 0 // the next numbers; lines that the hunk still has
	files := strings.Count("\n"+unified, "\n+++ ")
	hunks := 0
	for line := range strings.SplitSeq(strings.TrimRight(unified, "\n"), "\n") {
		if b, bn, a, an, ok := hunkHeader(line); ok {
			before, left, after, right = b, bn, a, an
			if hunks++; hunks > 1 {
				rows = append(rows, diffRow{sign: '@', text: "@@"})
			}
			continue
		}
		switch {
		case left <= 0 && right <= 0:
			name, ok := strings.CutPrefix(line, "+++ ")
			if ok {
				hunks = 0
			}
			if ok && files > 1 {
				rows = append(rows, diffRow{sign: '@', text: name})
			}
			if strings.HasPrefix(line, `\`) {
				rows = append(rows, diffRow{sign: '\\', text: strings.TrimPrefix(line, `\ `)})
			}
		case strings.HasPrefix(line, "+"):
			rows = append(rows, diffRow{sign: '+', after: after, text: line[1:]})
			after, right = after+1, right-1
		case strings.HasPrefix(line, "-"):
			rows = append(rows, diffRow{sign: '-', before: before, text: line[1:]})
			before, left = before+1, left-1
		case strings.HasPrefix(line, `\`):
			rows = append(rows, diffRow{sign: '\\', text: strings.TrimPrefix(line, `\ `)})
		default:
			rows = append(rows, diffRow{sign: ' ', before: before, after: after, text: strings.TrimPrefix(line, " ")})
			before, after, left, right = before+1, after+1, left-1, right-1
		}
	}
	return rows
}

// hunkHeader reads "@@ -1,5 +1,6 @@": the first line and the number of lines on
// each side.
func hunkHeader(line string) (before, beforeLines, after, afterLines int, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "@@" {
		return 0, 0, 0, 0, false
	}
	before, beforeLines, err := hunkRange(fields[1], "-")
	if err != nil {
		return 0, 0, 0, 0, false
	}
	after, afterLines, err = hunkRange(fields[2], "+")
	return before, beforeLines, after, afterLines, err == nil
}

func hunkRange(field, sign string) (first, lines int, err error) {
	field, ok := strings.CutPrefix(field, sign)
	if !ok {
		return 0, 0, fmt.Errorf("hunk range %q does not begin with %q", field, sign)
	}
	number, count, ok := strings.Cut(field, ",")
	if first, err = strconv.Atoi(number); err != nil {
		return 0, 0, fmt.Errorf("read hunk range: %w", err)
	}
	if !ok {
		return first, 1, nil
	}
	if lines, err = strconv.Atoi(count); err != nil {
		return 0, 0, fmt.Errorf("read hunk range: %w", err)
	}
	return first, lines, nil
}
