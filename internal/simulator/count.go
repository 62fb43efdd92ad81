package simulator

import (
	"hash/maphash"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// CountTokens counts tokens about as the byte-pair encodings of current models
// do, without their vocabularies: words, pieces of long or mixed-case words,
// groups of three digits, punctuation, ideographs. On prose, code, JSON, base64
// and text in other scripts it is within a third of a real one.
func CountTokens(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c := s[i]
		var width, tokens int
		switch {
		case c >= utf8.RuneSelf:
			width, tokens = countForeign(s[i:])
		case isLetter(c):
			width = span(s[i:], isLetter)
			tokens = countWord(s[i : i+width])
		case isDigit(c):
			width = span(s[i:], isDigit)
			tokens = (width + 2) / 3
		case isSpace(c):
			width = span(s[i:], isSpace)
			tokens = countSpace(s[i:i+width], i > 0 && isPunctuation(s[i-1]), i+width < len(s))
		default:
			width = span(s[i:], isPunctuation)
			tokens = countPunctuation(s[i : i+width])
			if width == 1 && startsShortWord(s[i+1:]) {
				tokens = 0 // As in ".len" or "(e": one token with the word.
			}
		}
		i += width
		n += tokens
	}
	return n
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isSpace(c byte) bool  { return c == ' ' || '\t' <= c && c <= '\r' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }

func isPunctuation(c byte) bool {
	return c < utf8.RuneSelf && !isLetter(c) && !isDigit(c) && !isSpace(c)
}

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// startsShortWord reports whether s begins with a word of a few letters.
func startsShortWord(s string) bool {
	const short = 5
	n := span(s[:min(len(s), short+1)], isLetter)
	return 0 < n && n <= short
}

// countWord counts the pieces that mixed case makes of a word, and more for
// long ones: a vocabulary holds most words of up to twelve letters whole.
func countWord(word string) int {
	n, start, consonants := 0, 0, 0
	for i := 1; i <= len(word); i++ {
		if i == len(word) || isUpper(word[i]) && !isUpper(word[i-1]) {
			n += 1 + (i-start-1)/12
			start = i
		}
		if isVowel(word[i-1]) {
			consonants = 0
		} else if consonants++; consonants%4 == 0 {
			n++ // Hardly a word has so many in a row: it is noise.
		}
	}
	return n
}

func isVowel(c byte) bool {
	switch c | 0x20 {
	case 'a', 'e', 'i', 'o', 'u', 'y':
		return true
	}
	return false
}

// countSpace counts white space. One space belongs to the word behind it, line
// breaks to the punctuation before them.
func countSpace(space string, afterPunctuation, more bool) int {
	n := 0
	if at := strings.LastIndexByte(space, '\n'); at >= 0 {
		if !afterPunctuation || space[0] != '\n' {
			n = 1
		}
		space = space[at+1:]
	}
	if more && strings.HasSuffix(space, " ") {
		space = space[:len(space)-1]
	}
	if space != "" {
		n++
	}
	return n
}

// countPunctuation counts a run: pairs such as `":` are one token, and long
// rulers are few.
func countPunctuation(run string) int {
	n := 0
	for i := 0; i < len(run); {
		same := 1
		for i+same < len(run) && run[i+same] == run[i] {
			same++
		}
		if same >= 4 {
			n += (same + 15) / 16
			i += same
			continue
		}
		n++
		i += 2
	}
	return n
}

// countForeign counts characters outside ASCII: a word, a run of ideographs,
// or one of anything else.
func countForeign(s string) (width, tokens int) {
	r, size := utf8.DecodeRuneInString(s)
	if !unicode.IsLetter(r) {
		if size == utf8.UTFMax {
			return size, 2 // An emoji, mostly.
		}
		return size, 1
	}
	same, letters := isIdeograph(r), 0
	for width < len(s) && s[width] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[width:])
		if !unicode.IsLetter(r) || isIdeograph(r) != same {
			break
		}
		width += size
		letters++
	}
	if same {
		return width, (4*letters + 4) / 5
	}
	return width, (letters + 5) / 6
}

func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// counter remembers the counts of texts, so that a long history costs only
// what is new in each request.
type counter struct {
	count func(string) int
	seed  maphash.Seed

	mu    sync.Mutex
	known map[textKey]int
}

// textKey stands for a text, so that the text itself is not kept.
type textKey struct {
	hash   uint64
	length int
}

// rememberBytes is the length from which a count is worth remembering.
const rememberBytes = 64

func newCounter(count func(string) int) *counter {
	if count == nil {
		count = CountTokens
	}
	return &counter{count: count, seed: maphash.MakeSeed(), known: make(map[textKey]int)}
}

// tokens counts a text, from memory if it can.
func (c *counter) tokens(s string) int {
	if len(s) < rememberBytes {
		return c.count(s)
	}
	key := textKey{hash: maphash.String(c.seed, s), length: len(s)}
	c.mu.Lock()
	n, ok := c.known[key]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.count(s)
	c.mu.Lock()
	c.known[key] = n
	c.mu.Unlock()
	return n
}

// What a request takes beside its texts, in tokens.
const (
	requestOverhead = 3
	messageOverhead = 4
	callOverhead    = 6
)

// input counts the input of a request.
func (c *counter) input(r *Request) int {
	n := requestOverhead
	if r.System != "" {
		n += messageOverhead + c.tokens(r.System)
	}
	for _, t := range r.Tools {
		n += messageOverhead + c.tokens(string(t.Definition))
	}
	for _, m := range r.Messages {
		n += messageOverhead + c.tokens(m.Text) + c.tokens(m.Reasoning)
		for _, k := range m.Calls {
			n += callOverhead + c.tokens(k.Name) + c.tokens(k.Input)
		}
		for _, v := range m.Results {
			n += callOverhead + c.tokens(v.Output)
		}
	}
	return n
}
