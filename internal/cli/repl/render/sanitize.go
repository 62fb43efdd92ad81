package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sanitize makes text from outside harmless to a terminal. Escape sequences
// (CSI, OSC, DCS and the other control strings, in their 7-bit and their 8-bit
// form) are taken out whole, the text of a hyperlink stays; a control string
// that does not end on its line loses its introducer only, so that it cannot
// swallow what follows. Other control characters but \n and \t are dropped, a
// lone \r and the Unicode line separators become \n, bytes that are not UTF-8
// become U+FFFD, and bidirectional overrides, embeddings and isolates, which
// make text look like other text, are shown as <U+202E>.
//
// Text that is harmless already is returned as it is, without allocating.
func Sanitize(s string) string {
	i := firstUnsafe(s)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	unended := 0 // no control string ends before this offset
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case r == '\r':
			if !strings.HasPrefix(s[i+n:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte('\n')
		case isBidiControl(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		case r == escape || isC1(r):
			n = sequenceLength(s, i, n, &unended)
		case isControl(r):
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Reveal shows what [Sanitize] would hide: control characters in caret
// notation, such as ^[ for an escape, and other characters that cannot be seen
// as <U+200B>. It is for text that will be executed or written, where the user
// has to see all of it. \n and \t stay as they are.
func Reveal(s string) string {
	if firstUnsafe(s) < 0 && strings.IndexFunc(s, isInvisible) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x20:
			b.WriteByte('^')
			b.WriteRune(r + '@')
		case r == 0x7f:
			b.WriteString("^?")
		case isC1(r) || isBidiControl(r) || isInvisible(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

const escape = '\x1b'

// firstUnsafe returns the offset of the first thing that must not reach a
// terminal, -1 when there is none.
func firstUnsafe(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 && c != '\n' && c != '\t' || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || isC1(r) || isBidiControl(r) || r == '\u2028' || r == '\u2029' {
			return i
		}
		i += n
	}
	return -1
}

func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f
}

func isC1(r rune) bool { return r >= 0x80 && r <= 0x9f }

// isBidiControl leaves out the plain marks U+200E, U+200F and U+061C, which
// ordinary right-to-left text needs.
func isBidiControl(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// isInvisible reports whether r takes no room and is not one of those that
// join other characters to an emoji.
func isInvisible(r rune) bool {
	switch r {
	case 0xad, 0x200b, 0x2060, 0xfeff, 0x200e, 0x200f, 0x61c, 0x2028, 0x2029:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// sequenceLength returns the length in bytes of the escape sequence at s[i:],
// whose first character has n bytes.
func sequenceLength(s string, i, n int, unended *int) int {
	var introducer rune
	rest := i + n
	if s[i] == escape {
		if rest == len(s) {
			return n
		}
		introducer = rune(s[rest])
	} else {
		// An 8-bit control is the 7-bit one with 0x40 added.
		introducer, _ = utf8.DecodeRuneInString(s[i:])
		introducer -= 0x40
		rest--
	}
	rest++
	switch introducer {
	case '[':
		return rest - i + csiLength(s[rest:])
	case ']', 'P', 'X', '^', '_':
		if rest < *unended {
			return rest - i
		}
		length, ended := controlStringLength(s[rest:])
		if !ended {
			*unended = rest + length
			return rest - i
		}
		return rest - i + length
	}
	if s[i] != escape {
		return n
	}
	return shortEscapeLength(s[i:])
}

// csiLength returns how long the parameters and the final byte of a CSI
// sequence are.
func csiLength(s string) int {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		i++
	}
	return i
}

// controlStringLength returns how long the content of a control string is with
// its terminator, and whether it has one on its line.
func controlStringLength(s string) (int, bool) {
	for i := range len(s) {
		switch {
		case s[i] == '\n' || s[i] == '\r':
			return i, false
		case s[i] == '\a':
			return i + 1, true
		case s[i] == escape && strings.HasPrefix(s[i+1:], `\`), strings.HasPrefix(s[i:], "\u009c"):
			return i + 2, true
		}
	}
	return len(s), false
}

// shortEscapeLength returns the length of an escape sequence that is neither a
// CSI sequence nor a control string: intermediate bytes and a final one.
func shortEscapeLength(s string) int {
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		return i + 1
	}
	return i
}
