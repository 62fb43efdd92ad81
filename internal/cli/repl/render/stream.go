package render

import (
	"strings"
	"unicode/utf8"
)

// Stream renders Markdown that arrives in pieces. What is finished is rendered
// once: the cost of a piece does not grow with the text before it.
//
// Write only takes notice of text, so that many pieces may come between two
// pictures; Lines renders. A block that does not end (a long list, a long code
// block, a line without an end) is rendered in parts of bounded size.
type Stream struct {
	md      *Markdown
	partial []byte // the last line, as long as it has no end
	scanner scanner
	settled []string
	any     bool // a block was settled
	tail    []string
	dirty   bool // tail does not show what was written
	// code is the picture of the first codeLines lines of an open code block.
	code      []string
	codeLines int
}

// maxLine is where a line without an end is broken, in bytes.
const maxLine = 4 << 10

// Stream returns an empty stream.
func (m *Markdown) Stream() *Stream { return &Stream{md: m} }

// Write appends a piece of text. It may begin and end anywhere, even inside a
// character or an escape sequence.
func (s *Stream) Write(piece string) {
	s.dirty = s.dirty || piece != ""
	for piece != "" {
		line, rest, ended := strings.Cut(piece, "\n")
		if room := maxLine - len(s.partial); len(line) > room {
			line, rest, ended = piece[:room], piece[room:], false
		}
		s.partial = append(s.partial, line...)
		piece = rest
		switch {
		case ended:
			s.takeLine(string(s.partial))
			s.partial = s.partial[:0]
		case len(s.partial) >= maxLine:
			s.breakPartial()
		}
	}
}

// breakPartial ends a line that is too long, at its last space if it has one.
func (s *Stream) breakPartial() {
	text := string(s.partial)
	end := strings.LastIndexByte(text, ' ') + 1
	if end == 0 {
		end = len(text) - incompleteTail(text)
	}
	s.takeLine(text[:end])
	s.partial = append(s.partial[:0], text[end:]...)
}

func (s *Stream) takeLine(line string) {
	for part := range strings.SplitSeq(Sanitize(strings.TrimSuffix(line, "\r")), "\n") {
		s.scanner.line(part)
	}
}

// Close says that no more text comes: all of it is settled.
func (s *Stream) Close() {
	if len(s.partial) > 0 {
		s.takeLine(string(s.partial))
		s.partial = nil
	}
	s.scanner.finish()
	s.dirty = true
}

// Lines returns the lines of the text so far: those that will not change any
// more, which only grow in number, and those of the block that is not finished.
// The caller must not change them; tail is valid until the next call.
func (s *Stream) Lines() (settled, tail []string) {
	if !s.dirty {
		return s.settled, s.tail
	}
	s.dirty = false
	for _, b := range s.scanner.take() {
		s.settled = append(s.settled, s.md.block(b, s.any)...)
		s.any = true
		s.code, s.codeLines = nil, 0
	}
	partial := string(s.partial)
	partial = Sanitize(strings.TrimSuffix(partial[:len(partial)-incompleteTail(partial)], "\r"))
	s.tail = nil
	switch {
	case s.scanner.open.kind == blockCode && s.scanner.fence != "":
		s.tail = s.openCode(partial)
	case partial != "" || s.scanner.open.kind != blockNone:
		for i, b := range s.scanner.preview(partial) {
			s.tail = append(s.tail, s.md.block(b, s.any || i > 0)...)
		}
	}
	return s.settled, s.tail
}

// openCode renders an unfinished code block. Its lines get their colours when
// they are complete: colouring is dear, and the colours of half a line are wrong
// more often than not.
func (s *Stream) openCode(partial string) []string {
	b := s.scanner.open
	if s.codeLines != len(b.lines) {
		s.code, s.codeLines = s.md.block(b, s.any), len(b.lines)
	}
	if strings.Trim(partial, " `~") == "" {
		return s.code
	}
	last := block{kind: blockCode, margin: b.margin, gap: b.gap && len(b.lines) == 0}
	for part := range strings.SplitSeq(partial, "\n") {
		last.lines = append(last.lines, s.scanner.codeText(part))
	}
	return append(s.code[:len(s.code):len(s.code)], s.md.block(last, s.any)...)
}

// block renders one block, with the blank line that sets it off from what
// stands before it.
func (m *Markdown) block(b block, after bool) []string {
	margin := indentWidth(b.margin, m.width)
	inner := m
	if margin > 0 {
		inner = m.inner(m.width - margin)
	}
	var lines []string
	switch b.kind {
	case blockCode:
		lines = m.code(b, m.width-margin)
	case blockList:
		lines = inner.list(b.lines)
	case blockQuote:
		lines = inner.quote(b.lines)
	case blockText:
		lines = inner.text(b.lines)
	default:
		lines = inner.prose(strings.Join(b.lines, "\n"))
	}
	if margin > 0 {
		indent := strings.Repeat(" ", margin)
		lines = hang(indent, indent, lines)
	}
	if b.gap && after && len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

// code renders the lines of a code block.
func (m *Markdown) code(b block, width int) []string {
	indent := strings.Repeat(" ", indentWidth(2, width))
	var lines []string
	for _, line := range newHighlighter(m.theme, b.language).lines(b.lines) {
		for _, part := range hardWrapStyled(line, width-len(indent)) {
			lines = append(lines, indent+part)
		}
	}
	return lines
}

// incompleteTail returns how many bytes at the end of text begin a character
// that is not there as a whole.
func incompleteTail(text string) int {
	for n := 1; n <= min(utf8.UTFMax, len(text)); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
