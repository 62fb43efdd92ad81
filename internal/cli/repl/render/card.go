package render

import "fmt"

// CardKeys says what a card shows about the keys: whether they go to it.
type CardKeys int

// What a card shows about the keys.
const (
	// CardHasKeys means that the card has them and can be answered.
	CardHasKeys CardKeys = iota
	// CardGotKeys means that it has had them for a moment only: it can be
	// looked through, but Enter does not answer it yet.
	CardGotKeys
	// CardWaits means that the input has them. Tab gives them to the card.
	CardWaits
	// CardWaitsForList means the same while Tab belongs to a list or a search
	// at the input, which Esc closes.
	CardWaitsForList
)

// Focused reports whether the keys go to the card.
func (k CardKeys) Focused() bool { return k == CardHasKeys || k == CardGotKeys }

// CardHint is the last line of a card: the keys that it takes now.
type CardHint struct {
	Keys CardKeys
	// Move, Enter and Esc say what these keys do, such as "enter confirm".
	Move, Enter, Esc string
	// Waiting is how many cards come after this one.
	Waiting int
}

// Line renders the hint. Where there is little room, the keys that can be
// guessed are left out first.
func (h CardHint) Line(t *Theme, width int) string {
	var parts []part
	add := func(style Style, text string, rank int) {
		if text != "" {
			parts = append(parts, part{text: style.Styled(text), rank: rank})
		}
	}
	if h.Waiting > 0 {
		add(t.Dim, fmt.Sprintf("%d more waiting", h.Waiting), 2)
	}
	switch h.Keys {
	case CardWaits:
		add(t.Accent, "tab to answer", 0)
	case CardWaitsForList:
		add(t.Accent, "esc, then tab to answer", 0)
	default:
		add(t.Dim, h.Move, 3)
	}
	if h.Keys == CardHasKeys {
		add(t.Dim, h.Enter, 0)
	}
	if h.Keys.Focused() {
		add(t.Dim, h.Esc, 1)
		add(t.Dim, "tab to the input", 4)
	} else {
		add(t.Dim, "it waits while you type", 1)
		add(t.Dim, h.Esc, 3)
	}
	return joinParts(t, parts, max(width, 1))
}
