package render_test

import (
	"strings"
	"testing"

	"keen/internal/cli/repl/render"
)

func TestSanitizeTakesControlSequencesOut(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain text", "a b\n\tc é 日本 👩‍👩‍👧 שלום", "a b\n\tc é 日本 👩‍👩‍👧 שלום"},
		{"colour", "\x1b[31mred\x1b[0m", "red"},
		{"cursor and erase", "a\x1b[2J\x1b[1;1Hb", "ab"},
		{"private mode", "\x1b[?1049hx", "x"},
		{"CSI cut by a line break", "\x1b[31\nm", "\nm"},
		{"CSI at the end", "x\x1b[3", "x"},
		{"OSC title with BEL", "\x1b]0;title\ax", "x"},
		{"OSC 52 with ST", "\x1b]52;c;ZXZpbA==\x1b\\x", "x"},
		{"OSC 8 keeps the text", "\x1b]8;;https://e.example\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"OSC without end stays visible", "\x1b]0;rm -rf\nnext", "0;rm -rf\nnext"},
		{"many OSC without end", strings.Repeat("\x1b]", 3) + "x", "x"},
		{"OSC ended by 8-bit ST", "\x1b]0;t\u009cx", "x"},
		{"DCS", "\x1bPq#0;2;0;0;0\x1b\\x", "x"},
		{"APC", "\x1b_Gdata\x1b\\x", "x"},
		{"PM and SOS", "\x1b^a\x1b\\\x1bXb\x1b\\x", "x"},
		{"8-bit CSI", "\u009b31mx", "x"},
		{"8-bit OSC", "\u009d0;t\ax", "x"},
		{"other C1", "a\u0084\u008eb", "ab"},
		{"charset and reset", "\x1b(0x\x1bcy", "xy"},
		{"escape at the end", "x\x1b", "x"},
		{"escape before a character", "\x1b日", "日"},
		{"C0 and DEL", "a\x00b\x07c\x08d\x7fe", "abcde"},
		{"CRLF and CR", "a\r\nb\rc", "a\nb\nc"},
		{"line separators", "a\u2028b\u2029c\u0085d", "a\nb\nc\nd"},
		{"raw 8-bit bytes", "a\x9b31mb", "a\ufffd31mb"},
		{"bidi override", "a\u202eb\u202c", "a<U+202E>b<U+202C>"},
		{"bidi isolate", "\u2066a\u2069", "<U+2066>a<U+2069>"},
		{"marks of right-to-left text", "א\u200fב", "א\u200fב"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := render.Sanitize(tt.in); got != tt.want {
				t.Errorf("Sanitize(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestRevealShowsWhatCannotBeSeen(t *testing.T) {
	tests := []struct{ in, want string }{
		{"ls -l\n\tx", "ls -l\n\tx"},
		{"echo \x1b[8mhidden", "echo ^[[8mhidden"},
		{"a\rb\x7f\x00", "a^Mb^?^@"},
		{"a\u200bb\u202ec\u009b", "a<U+200B>b<U+202E>c<U+009B>"},
		{"tag \U000e0041", "tag <U+E0041>"},
		{"👩‍👩‍👧", "👩‍👩‍👧"},
	}
	for _, tt := range tests {
		if got := render.Reveal(tt.in); got != tt.want {
			t.Errorf("Reveal(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSanitizeOfManyUnendedSequencesIsLinear(t *testing.T) {
	in := strings.Repeat("\x1b]", 1<<20)
	if got := render.Sanitize(in); got != "" {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestHarmlessTextIsNotCopied(t *testing.T) {
	text := strings.Repeat("harmless text é 日本\n", 100)
	if n := testing.AllocsPerRun(10, func() { render.Sanitize(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// dangerous are texts that would do something to a terminal, in the ways in
// which they could get there.
var dangerous = []string{
	"\x1b]52;c;ZXZpbA==\a", "\x1b[2J", "\u009b2J", "\x1bP+q\x1b\\", "\x1b[8m", "\u202e", "\r", "\b",
	"&#27;]52;c;eA==&#7;", "&#x1b;[2J", "&amp;#27;[2J", "`&#27;[2J`", "[x](https://e.example/&#27;[2J)", "<https://e.example/\x1b[2J>",
	"![&#x1b;c](\x1b[2J)", "| &#27;[2J | \x1b[2J |\n|--|--|\n| &#27;c | `\x1b` |", "```\x1b[2J\n\x1b[2J\n```", "- \x1b[2J\n  - &#155;2J", "> &#27;[2J",
}

func TestNothingDangerousReachesTheScreen(t *testing.T) {
	for name, draw := range views(render.Dark()) {
		t.Run(name, func(t *testing.T) {
			for _, text := range dangerous {
				for _, line := range draw(text, 60) {
					if bad := badSequence(line); bad != "" {
						t.Errorf("%q draws %q in %q", text, bad, line)
					}
				}
			}
		})
	}
}

// badSequence returns the first thing in a line that Keen never draws itself:
// it draws colours (SGR) and links (OSC 8).
func badSequence(line string) string {
	for i, r := range line {
		switch {
		case r == '\x1b':
			rest := line[i:]
			if strings.HasPrefix(rest, "\x1b]8;") || strings.HasPrefix(rest, "\x1b\\") || strings.HasPrefix(rest, "\x1b[m") {
				continue
			}
			end := strings.IndexFunc(rest[1:], func(r rune) bool { return !strings.ContainsRune("[0123456789;", r) })
			if rest[1] != '[' || end < 0 || rest[1+end] != 'm' || strings.HasPrefix(rest, "\x1b[8m") {
				return rest[:min(len(rest), 12)]
			}
		case r == '\a' && strings.Contains(line[:i], "\x1b]8;"):
		case r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e:
			return string(r)
		}
	}
	return ""
}
