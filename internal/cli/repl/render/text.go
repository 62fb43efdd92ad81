package render

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// tabWidth is the distance of tab stops, in cells.
const tabWidth = 4

// Width returns how many cells s takes on a terminal. Escape sequences and
// line breaks take none.
func Width(s string) int { return ansi.StringWidth(s) }

// Wrap breaks plain text into lines of at most width cells, between words
// where it can. Tabs become spaces. The result has at least one line.
func Wrap(s string, width int) []string {
	return breakLines(s, max(width, 1), func(line string, width int) string { return ansi.Wrap(line, width, "") })
}

// HardWrap is like [Wrap] but breaks wherever a line is full, so that all
// spaces stay: for code and for the output of commands.
func HardWrap(s string, width int) []string {
	return breakLines(s, max(width, 1), func(line string, width int) string { return ansi.Hardwrap(line, width, true) })
}

// CodeWrap is like [HardWrap], but where it can it breaks behind a space, or
// else behind a slash: for commands and changes, where every space counts and
// words are read.
func CodeWrap(s string, width int) []string {
	return breakLines(s, max(width, 1), func(line string, width int) string {
		var b strings.Builder
		for {
			n := breakPoint(line, width)
			b.WriteString(line[:n])
			if line = line[n:]; line == "" {
				return b.String()
			}
			b.WriteByte('\n')
		}
	})
}

// breakPoint returns how many bytes of a line go into its first row: all, when
// it is no wider than width.
func breakPoint(line string, width int) int {
	cells, n, space, slash := 0, 0, 0, 0
	for {
		if n == len(line) {
			return n
		}
		cluster, w := ansi.FirstGraphemeCluster(line[n:], ansi.GraphemeWidth)
		if cells += w; cells > width {
			break
		}
		n += len(cluster)
		switch cluster {
		case " ":
			space = n
		case "/":
			slash = n
		}
	}
	switch {
	case strings.TrimSpace(line[:space]) != "":
		return space
	case strings.TrimSpace(line[:slash]) != "":
		return slash
	case n == 0: // A character that is wider than the row.
		cluster, _ := ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
		return max(len(cluster), 1)
	}
	return n
}

func breakLines(s string, width int, wrap func(string, int) string) []string {
	lines := make([]string, 0, strings.Count(s, "\n")+1)
	for line := range strings.SplitSeq(s, "\n") {
		line = expandTabs(line)
		if Width(line) <= width {
			lines = append(lines, line)
			continue
		}
		for part := range strings.SplitSeq(wrap(line, width), "\n") {
			lines = append(lines, fit(part, width)...)
		}
	}
	return lines
}

// fit makes sure of the width of a line that was wrapped already. A character
// that is wider than the width cannot be shown and becomes a dot.
func fit(line string, width int) []string {
	if Width(line) <= width {
		return []string{line}
	}
	var lines []string
	for part := range strings.SplitSeq(ansi.Hardwrap(line, width, true), "\n") {
		if Width(part) > width {
			part = strings.Repeat("·", width)
		}
		lines = append(lines, part)
	}
	return lines
}

// fitStyled breaks a line with styles that is wider than width; each part gets
// the styles of the whole.
func fitStyled(line string, width int) []string {
	if Width(line) <= width {
		return []string{line}
	}
	var lines []string
	for part := range strings.SplitSeq(lipgloss.Wrap(line, width, ""), "\n") {
		if Width(part) > width {
			part = Truncate(part, width)
		}
		lines = append(lines, part)
	}
	return lines
}

// Truncate shortens a line to at most width cells and ends it with an ellipsis
// where something is missing. Styles in it are kept.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// Pad fills a line with spaces to width cells. Longer lines stay as they are.
func Pad(s string, width int) string {
	if n := width - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// padLeft is like [Pad] with the spaces in front.
func padLeft(s string, width int) string {
	if n := width - Width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// expandTabs replaces the tabs of a line by spaces up to the next tab stop.
func expandTabs(line string) string {
	if strings.IndexByte(line, '\t') < 0 {
		return line
	}
	var b strings.Builder
	column := 0
	for part := range strings.SplitAfterSeq(line, "\t") {
		text, tab := strings.CutSuffix(part, "\t")
		b.WriteString(text)
		column += Width(text)
		if tab {
			n := tabWidth - column%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
	}
	return b.String()
}

// OneLine makes one harmless line of text: it is sanitised, and line breaks and
// runs of spaces become single spaces.
func OneLine(s string) string {
	return strings.Join(strings.Fields(Sanitize(s)), " ")
}

// firstLine returns the first line of text that is not blank, made harmless.
func firstLine(s string) string {
	for line := range strings.SplitSeq(Sanitize(s), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			return expandTabs(line)
		}
	}
	return ""
}

// styleLines styles each line on its own.
func styleLines(style Style, lines []string) []string {
	styled := make([]string, len(lines))
	for i, line := range lines {
		styled[i] = style.Styled(line)
	}
	return styled
}

// hang puts first before the first line and rest before all others. Where the
// prefix leaves no room for text it is left out.
func hang(first, rest string, lines []string) []string {
	hung := make([]string, len(lines))
	for i, line := range lines {
		if i == 0 {
			hung[i] = first + line
		} else {
			hung[i] = rest + line
		}
	}
	return hung
}

// indentWidth returns how many of want cells of indent leave room for text at
// the given width: all or none.
func indentWidth(want, width int) int {
	if width < want+minTextWidth {
		return 0
	}
	return want
}

// minTextWidth is the narrowest column in which text is still worth an indent.
const minTextWidth = 8

// hardWrapStyled is like [HardWrap] for one line with styles; each part closes
// its styles and the next one opens them again.
func hardWrapStyled(line string, width int) []string {
	width = max(width, 1)
	if Width(line) <= width {
		return []string{line}
	}
	var parts []string
	var part strings.Builder
	active, column := "", 0
	state := byte(0)
	for line != "" {
		sequence, cells, n, next := ansi.DecodeSequence(line, state, nil)
		state, line = next, line[n:]
		switch {
		case sequence == ansi.ResetStyle:
			active = ""
		case cells == 0 && strings.HasPrefix(sequence, "\x1b["):
			active += sequence
		case cells > width:
			sequence, cells = strings.Repeat("·", width), width
		}
		if column+cells > width {
			if active != "" {
				part.WriteString(ansi.ResetStyle)
			}
			parts = append(parts, part.String())
			part.Reset()
			part.WriteString(active)
			column = 0
		}
		part.WriteString(sequence)
		column += cells
	}
	return append(parts, part.String())
}
