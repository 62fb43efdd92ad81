package compaction

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wrapperTags are the names of the wrapper's tags.
var wrapperTags = []string{"compacted_context", "last_user_message"}

// transcriptTags are the beginnings of the tag names that a transcript gives a
// meaning to. They are neutralised in everything that it quotes, those of the
// wrapper too, lest a summary copies them.
var transcriptTags = append([]string{"keen_"}, wrapperTags...)

// Quote returns a text with all tags that Keen gives a meaning to made plain
// text, so that it can stand beside them.
func Quote(s string) string { return neutraliseTags(s, transcriptTags) }

// neutraliseTags returns s with every tag of one of the names made plain text:
// its "<" becomes "&lt;". Opening and closing tags are found in any case, with
// attributes, with spaces or invisible characters in them, and with other
// separators for the underscore. Names are in lower case.
func neutraliseTags(s string, names []string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		next := strings.IndexByte(s[i:], '<')
		if next < 0 {
			break
		}
		i += next + 1
		if !startsTag(s[i:], names) {
			continue
		}
		b.WriteString(s[done : i-1])
		b.WriteString("&lt;")
		done = i
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// startsTag reports whether s, which follows a "<", continues with a slash or
// not and one of the names.
func startsTag(s string, names []string) bool {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r == '/' || r == '\\' || isBlank(r) })
	for _, name := range names {
		if hasTagName(s, name) {
			return true
		}
	}
	return false
}

func hasTagName(s, name string) bool {
	for len(name) > 0 {
		if name[0] == '_' {
			rest := strings.TrimLeftFunc(s, func(r rune) bool { return r == '_' || r == '-' || isBlank(r) })
			if len(rest) == len(s) {
				return false
			}
			s, name = rest, name[1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case size == 0:
			return false
		case unicode.Is(unicode.Cf, r): // Invisible, so it does not count.
		case unicode.ToLower(r) == rune(name[0]):
			name = name[1:]
		default:
			return false
		}
		s = s[size:]
	}
	return true
}

func isBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
