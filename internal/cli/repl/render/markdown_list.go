package render

import "strings"

// maxDepth is how deep lists and quotations are drawn as such; deeper ones are
// plain text.
const maxDepth = 8

// list renders the lines of one list. What follows a marker is Markdown of its
// own, indented behind it.
func (m *Markdown) list(lines []string) []string {
	if m.depth >= maxDepth || m.width < 2*minTextWidth {
		return Wrap(strings.Join(lines, "\n"), m.width)
	}
	var out []string
	for len(lines) > 0 {
		item := listItem(lines)
		lines = lines[item.length:]
		sign := item.sign
		switch sign {
		case "":
			sign = m.theme.Dim.Styled(m.theme.Glyphs.Bullet)
		case "[x]":
			sign = m.theme.Success.Styled(sign)
		default:
			sign = m.theme.Dim.Styled(sign)
		}
		indent := Width(sign) + 1
		body := m.inner(m.width - indent).Render(item.body)
		if len(body) == 0 {
			body = []string{""}
		}
		out = append(out, hang(sign+" ", strings.Repeat(" ", indent), body)...)
		if item.loose && len(lines) > 0 {
			out = append(out, "")
		}
	}
	return out
}

// item is one item of a list.
type item struct {
	// sign is its number with a dot, its check box, or empty for a bullet.
	sign string
	body string
	// length is how many lines it has, loose whether the last one is blank.
	length int
	loose  bool
}

// listItem reads the first item of a list.
func listItem(lines []string) item {
	base := indentOf(lines[0])
	var it item
	rest, _, ordered := marker(lines[0])
	text := lines[0][base:]
	it.length = 1
	for it.length < len(lines) && (indentOf(lines[it.length]) >= base+2 || kindOf(lines[it.length]) != blockList) {
		it.length++
	}
	if rest == "" { // It cannot be a list; the text is kept.
		it.body = strings.Join(lines[:it.length], "\n")
		return it
	}
	if ordered {
		it.sign = text[:len(text)-len(rest)] + "."
	}
	offset := base + len(text) - len(rest) + 1
	first := strings.TrimLeft(rest[1:], " ")
	offset += min(max(len(rest)-1-len(first), 1), 4)
	if !ordered && len(first) > 3 && first[0] == '[' && first[2] == ']' && first[3] == ' ' && strings.ContainsAny(first[1:2], " xX") {
		it.sign = strings.ToLower(first[:3])
		first = first[4:]
	}
	body := []string{first}
	for _, line := range lines[1:it.length] {
		body = append(body, line[min(offset, indentOf(line)):])
	}
	it.loose = strings.TrimSpace(body[len(body)-1]) == "" && len(body) > 1
	it.body = strings.TrimRight(strings.Join(body, "\n"), "\n ")
	return it
}

// quote renders the lines of a quotation behind a bar.
func (m *Markdown) quote(lines []string) []string {
	if m.depth >= maxDepth || m.width < 2*minTextWidth {
		return Wrap(strings.Join(lines, "\n"), m.width)
	}
	inside := make([]string, len(lines))
	for i, line := range lines {
		inside[i] = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(line, " "), ">"), " ")
	}
	bar := m.theme.Border.Styled(m.theme.Glyphs.Quote) + " "
	return hang(bar, bar, m.inner(m.width-2).Render(strings.Join(inside, "\n")))
}
