package widgets

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// element is what the cursor cannot stand inside: one character as the user
// sees it (a grapheme cluster), or a folded paste.
type element struct {
	// text is what is sent, byte for byte.
	text string
	// label is what is shown of a folded paste, empty for characters.
	label string
}

// isSpace reports whether words end at the element.
func (e element) isSpace() bool {
	r, _ := utf8.DecodeRuneInString(e.text)
	return e.label == "" && unicode.IsSpace(r)
}

func (e element) isNewline() bool {
	return e.label == "" && (e.text == "\n" || e.text == "\r\n")
}

// buffer is text with a cursor. The cursor stands before the element with its
// index, or at the end.
type buffer struct {
	elements []element
	cursor   int
}

// split cuts text into its characters.
func split(text string) []element {
	elements := make([]element, 0, len(text))
	for text != "" {
		cluster, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		if cluster == "" { // It always makes progress.
			cluster = text[:1]
		}
		elements = append(elements, element{text: cluster})
		text = text[len(cluster):]
	}
	return elements
}

// value returns the text with all pastes unfolded.
func (b *buffer) value() string { return join(b.elements) }

func join(elements []element) string {
	var s strings.Builder
	for _, e := range elements {
		s.WriteString(e.text)
	}
	return s.String()
}

// insert puts text before the cursor. It may join with the characters beside
// it, as accents do.
func (b *buffer) insert(text string) {
	from, to := b.cursor, b.cursor
	if from > 0 && b.elements[from-1].label == "" {
		from--
	}
	if to < len(b.elements) && b.elements[to].label == "" {
		to++
	}
	before := join(b.elements[from:b.cursor]) + text
	joined := split(before + join(b.elements[b.cursor:to]))
	b.elements = slices.Replace(b.elements, from, to, joined...)
	b.cursor = from
	for size := 0; size < len(before); b.cursor++ {
		size += len(b.elements[b.cursor].text)
	}
}

// insertFolded puts a paste before the cursor that is shown as its label.
func (b *buffer) insertFolded(text, label string) {
	b.elements = slices.Insert(b.elements, b.cursor, element{text: text, label: label})
	b.cursor++
}

// remove deletes the elements from one index to another and leaves the cursor
// there.
func (b *buffer) remove(from, to int) {
	b.elements = slices.Delete(b.elements, from, to)
	b.cursor = from
}

// move moves the cursor by n elements.
func (b *buffer) move(n int) { b.cursor = min(max(b.cursor+n, 0), len(b.elements)) }

// wordLeft returns where the word before the cursor begins.
func (b *buffer) wordLeft() int {
	i := b.cursor
	for i > 0 && b.elements[i-1].isSpace() {
		i--
	}
	for i > 0 && !b.elements[i-1].isSpace() {
		i--
		if b.elements[i].label != "" {
			break // A folded paste is a word by itself.
		}
	}
	return i
}

// wordRight returns where the word after the cursor ends.
func (b *buffer) wordRight() int {
	i := b.cursor
	for i < len(b.elements) && b.elements[i].isSpace() {
		i++
	}
	for i < len(b.elements) && !b.elements[i].isSpace() {
		i++
		if b.elements[i-1].label != "" {
			break
		}
	}
	return i
}

// lineStart and lineEnd return where the line with the cursor begins and ends.
func (b *buffer) lineStart() int {
	i := b.cursor
	for i > 0 && !b.elements[i-1].isNewline() {
		i--
	}
	return i
}

func (b *buffer) lineEnd() int {
	i := b.cursor
	for i < len(b.elements) && !b.elements[i].isNewline() {
		i++
	}
	return i
}
