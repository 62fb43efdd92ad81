package render

import (
	"slices"
	"strconv"
	"strings"
)

// blockKind says how a block of Markdown goes on and is rendered.
type blockKind int

const (
	blockNone blockKind = iota
	blockText           // paragraphs, tables, rules and whatever else
	blockHeading
	blockList
	blockQuote
	blockCode
)

// block is a part of a text that is rendered by itself.
type block struct {
	kind  blockKind
	lines []string
	// gap says that a blank line stands before it.
	gap bool
	// margin is how far a block inside a list item is indented, in cells.
	margin int
	// language is what stands behind the fence of a code block.
	language string
}

const (
	// maxBlock is the size from which on an unfinished block is settled in
	// parts, in bytes.
	maxBlock = 6 << 10
	// codePart is how many lines of a code block are settled at once. The
	// highlighter sees no others: it is the dearest part of all, and most
	// blocks are shorter.
	codePart = 40
)

// scanner cuts Markdown into blocks, line by line.
type scanner struct {
	done []block
	open block
	// size counts the bytes in open.
	size int
	// last is the kind of the block before open.
	last blockKind
	// blank says that a blank line came last.
	blank bool
	// fence is the closing fence of an open code block, at least; empty when
	// it was made by indentation. indent is what is cut off its lines.
	fence  string
	indent int
	// list is the list that open belongs to or goes on with.
	list list
}

// list is what has to be known of a list to go on with it after a code block
// or after a part of it was settled.
type list struct {
	// margin is where the content of the item begins that a code block stood
	// in, zero when there was none.
	margin       int
	start, items int
}

// take returns the blocks that were finished since the last call.
func (s *scanner) take() []block {
	done := s.done
	s.done = nil
	return done
}

// preview returns the blocks there would be if the text ended with partial,
// which belongs to an unfinished line.
func (s *scanner) preview(partial string) []block {
	p := *s
	p.done = nil
	p.open.lines = slices.Clip(p.open.lines)
	if strings.Trim(partial, " `~") != "" { // Half a fence is not shown.
		for part := range strings.SplitSeq(partial, "\n") {
			p.line(part)
		}
	}
	if p.open.kind != blockCode && len(p.open.lines) > 0 {
		p.open.lines = closeSpans(p.open.lines)
	}
	p.finish()
	return p.done
}

// finish ends the open block.
func (s *scanner) finish() {
	if len(s.open.lines) > 0 {
		s.done = append(s.done, s.open)
	}
	if s.open.kind != blockNone {
		s.last = s.open.kind
	}
	s.open, s.size, s.fence, s.indent = block{}, 0, "", 0
}

// line takes in one line without its end.
func (s *scanner) line(line string) {
	if s.open.kind == blockCode {
		if s.codeLine(line) {
			return
		}
	}
	line = expandTabs(line)
	if strings.TrimSpace(line) == "" {
		if s.open.kind != blockList {
			s.finish()
		}
		s.blank = true
		return
	}
	if s.open.kind == blockList && !s.goesOnWithList(line) {
		s.finish()
		s.list = list{}
	}
	if s.open.kind == blockNone && s.list.margin > 0 && indentOf(line) < 2 && kindOf(line) != blockList {
		s.list = list{}
	}
	kind := kindOf(strings.TrimPrefix(line, strings.Repeat(" ", min(s.list.margin, indentOf(line)))))
	switch {
	case s.beginsCode(line):
		s.openCode(line)
	case s.open.kind == blockList:
		s.listLine(line)
	case s.open.kind == blockNone, kind == blockHeading, kind == blockList && s.interrupts(line), (kind == blockQuote) != (s.open.kind == blockQuote):
		s.openBlock(kind, line)
	default:
		s.add(strings.TrimPrefix(line, strings.Repeat(" ", min(s.open.margin, indentOf(line)))))
	}
	s.blank = false
}

// inList reports whether what comes may belong to an item of a list.
func (s *scanner) inList() bool { return s.open.kind == blockList || s.list.margin > 0 }

// beginsCode reports whether a line opens a code block, by a fence or by its
// indent.
func (s *scanner) beginsCode(line string) bool {
	if indentOf(line) < 4 || s.inList() {
		return fenceOf(line) != ""
	}
	return s.open.kind == blockNone
}

// interrupts reports whether a list may begin with this line in the middle of a
// paragraph: only with the number one, so that a line that begins with a year
// is no list.
func (s *scanner) interrupts(line string) bool {
	_, number, ordered := marker(line)
	return s.open.kind != blockQuote && (!ordered || number == 1 || s.list.margin > 0)
}

// openBlock begins a block of text.
func (s *scanner) openBlock(kind blockKind, line string) {
	s.finish()
	if kind == blockCode {
		kind = blockText
	}
	margin := 0
	if s.list.margin > 0 {
		margin = min(s.list.margin, indentOf(line))
	}
	gap := s.blank || kind == blockHeading || s.last == blockHeading || s.last == blockCode && s.list.margin == 0
	s.open = block{kind: kind, gap: gap, margin: margin}
	line = line[margin:]
	if kind == blockList {
		if s.list.margin == 0 {
			s.list = list{}
		}
		line = s.number(line)
	}
	s.add(line)
	if kind == blockHeading {
		s.finish()
	}
}

// openCode begins a code block, fenced or indented.
func (s *scanner) openCode(line string) {
	inList := s.inList()
	s.finish()
	fence, indent := fenceOf(line), indentOf(line)
	if !inList && indent >= 4 {
		fence = ""
	}
	if !inList || indent == 0 {
		s.list = list{}
	} else {
		s.list.margin = indent
	}
	s.open = block{kind: blockCode, gap: s.blank || !inList, margin: s.list.margin}
	if fence == "" {
		s.indent = 4
		s.add(line[4:])
		return
	}
	s.fence, s.indent = fence, indent
	s.open.language = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), fence[:1]))
}

// codeLine takes in a line of a code block and reports whether that was all.
func (s *scanner) codeLine(line string) bool {
	if s.fence == "" {
		if line = expandTabs(line); indentOf(line) < 4 {
			s.finish()
			return false
		}
	} else if end := strings.TrimRight(line, " \t"); indentOf(end) < 4+s.indent && strings.HasPrefix(strings.TrimLeft(end, " "), s.fence) && strings.Trim(end, " "+s.fence[:1]) == "" {
		s.finish()
		s.blank = false
		return true
	}
	s.open.lines = append(s.open.lines, s.codeText(line))
	if len(s.open.lines) >= codePart {
		s.done = append(s.done, s.open)
		s.open = block{kind: blockCode, margin: s.open.margin, language: s.open.language}
	}
	return true
}

// codeText cuts the indent of its fence off a line of code.
func (s *scanner) codeText(line string) string {
	return expandTabs(line[min(s.indent, indentOf(line)):])
}

// goesOnWithList reports whether a line that is not blank belongs to the open
// list.
func (s *scanner) goesOnWithList(line string) bool {
	kind := kindOf(line)
	if kind == blockList || indentOf(line) >= 2 {
		return true
	}
	// A paragraph of an item goes on without an indent.
	return !s.blank && kind == blockText && strings.Trim(line, "-*_ ") != ""
}

// listLine takes in a line of the open list. An item that the next one follows
// is finished.
func (s *scanner) listLine(line string) {
	item := indentOf(line) < 2 && kindOf(line) == blockList
	if item {
		line = s.number(line)
	}
	if item || s.size > maxBlock {
		s.done = append(s.done, s.open)
		s.open, s.size = block{kind: blockList, gap: s.blank, margin: s.open.margin}, 0
	} else if s.blank {
		s.add("")
	}
	s.add(line)
}

// number counts an item and gives it the number that it has in the whole list,
// in case it becomes the first of a part.
func (s *scanner) number(line string) string {
	rest, n, ordered := marker(line)
	if !ordered {
		return line
	}
	if s.list.items == 0 {
		s.list.start = n
	}
	if s.list.items > 0 && n == s.list.start {
		n += s.list.items
		line = line[:indentOf(line)] + strconv.Itoa(n) + rest
	}
	s.list.items++
	return line
}

// add appends a line to the open block. A block that became too large is
// settled; a table goes on with its headings.
func (s *scanner) add(line string) {
	s.open.lines = append(s.open.lines, line)
	s.size += len(line) + 1
	if s.open.kind == blockList || s.size <= maxBlock {
		return
	}
	part := s.open
	s.done = append(s.done, part)
	s.open, s.size = block{kind: part.kind, margin: part.margin}, 0
	if tableStart(part.lines) == 0 && len(part.lines) > 2 && len(part.lines[0]) < maxBlock/4 {
		s.open.lines = slices.Clone(part.lines[:2])
		s.size = len(part.lines[0]) + len(part.lines[1]) + 2
	}
}

// kindOf says what a line begins where nothing is open.
func kindOf(line string) blockKind {
	if indentOf(line) >= 4 || fenceOf(line) != "" {
		return blockCode
	}
	text := strings.TrimLeft(line, " ")
	if hashes := len(text) - len(strings.TrimLeft(text, "#")); hashes > 0 && hashes <= 6 && (len(text) == hashes || text[hashes] == ' ') {
		return blockHeading
	}
	if strings.HasPrefix(text, ">") {
		return blockQuote
	}
	if rest, _, _ := marker(line); rest != "" && !isRule(text) {
		return blockList
	}
	return blockText
}

// marker splits a line that begins an item of a list: rest is what follows the
// number, or the bullet and all that follows; it is empty when the line begins
// no item.
func marker(line string) (rest string, number int, ordered bool) {
	text := strings.TrimLeft(line, " ")
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	body := text[digits:]
	if body == "" || digits > 9 {
		return "", 0, false
	}
	if len(body) > 1 && body[1] != ' ' && body[1] != '\t' {
		return "", 0, false
	}
	switch {
	case digits == 0 && strings.ContainsRune("-*+", rune(body[0])):
		return body, 0, false
	case digits > 0 && (body[0] == '.' || body[0] == ')'):
		number, err := strconv.Atoi(text[:digits])
		return body, number, err == nil
	}
	return "", 0, false
}

// isRule reports whether a line is a thematic break such as "* * *".
func isRule(text string) bool {
	bare := strings.ReplaceAll(text, " ", "")
	return len(bare) >= 3 && strings.Trim(bare, bare[:1]) == "" && strings.ContainsAny(bare[:1], "-*_")
}

// isTableRule reports whether a line is the one below the headings of a table.
func isTableRule(line string) bool {
	return strings.Contains(line, "-") && strings.Trim(line, "|:- ") == ""
}

// fenceOf returns the fence that a line opens, or nothing.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, c)
		if n := len(text) - len(rest); n >= 3 && (c != "`" || !strings.Contains(rest, "`")) {
			return text[:n]
		}
	}
	return ""
}

// indentOf returns the number of spaces at the start of a line.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// closeSpans closes what the last paragraph of an unfinished block has opened,
// so that half of a bold phrase is bold already.
func closeSpans(lines []string) []string {
	last := lines[len(lines)-1]
	if strings.HasSuffix(last, " ") || last == "" {
		return lines
	}
	closers := ""
	if strings.Count(last, "`")%2 == 1 && !strings.HasSuffix(last, "`") {
		closers = "`"
	} else if strings.Count(last, "**")%2 == 1 && !strings.HasSuffix(last, "*") {
		closers = "**"
	}
	if closers == "" {
		return lines
	}
	closed := slices.Clone(lines)
	closed[len(closed)-1] = last + closers
	return closed
}
