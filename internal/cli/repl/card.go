package repl

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
)

// card is a question, a picker or a list above the input that waits for the
// user: a permission, a choice of models. The program shows one at a time, in
// the order in which they came up, and [focus] says when it has the keys. A
// card is drawn and asked for nothing but this; whatever comes of an answer it
// does itself, and then takes itself away with [Model.closeCard].
type card interface {
	// take takes in a key or a paste that came while the card has the keys, and
	// reports whether the card had a use for it: text that it had none for goes
	// to the input. It never sees Esc and Tab, and Enter only when it counts.
	take(msg tea.Msg) (tea.Cmd, bool)
	// dismiss does what Esc means: a denial, or no choice.
	dismiss() tea.Cmd
	// unsent returns text that was typed into the card and that nothing has
	// come of. When the card goes away, the input gets it.
	unsent() string
	// draw draws the card.
	draw(s cardScene) []string
}

// cardScene is how a card is drawn: in at most height lines of width cells.
type cardScene struct {
	width, height int
	keys          render.CardKeys
	// more is how many cards wait behind it.
	more int
}

// openCard puts a card on the screen. One that the user asked for has the keys
// at once, unless the user went on to something else meanwhile: then it is as
// if it came up by itself.
func (m *Model) openCard(c card, why cause) {
	if !m.focus.awaited(why) {
		m.cards = append(m.cards, c)
		return
	}
	m.cards = slices.Insert(m.cards, 0, c)
	m.focus.toCard(m.now(), asAsked)
}

// closeCard takes a card away. What was typed into it and not used goes to the
// input.
func (m *Model) closeCard(c card) {
	i := slices.Index(m.cards, c)
	if i < 0 {
		return
	}
	m.cards = slices.Delete(m.cards, i, i+1)
	m.keepTyped(c.unsent())
	switch {
	case i > 0 || !m.focus.onCard:
	case len(m.cards) == 0 || m.holdsText():
		m.focus.toInput()
	default:
		m.focus.toCard(m.now(), fromCard)
	}
}

// keepTyped puts text into the input that was typed somewhere else.
func (m *Model) keepTyped(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if !m.editor.Empty() {
		text = m.editor.Value() + "\n" + text
	}
	m.editor.SetValue(text)
}

// holdsText reports whether the input holds text that was not sent.
func (m *Model) holdsText() bool {
	return strings.TrimSpace(m.editor.Value()) != "" || m.editor.Searching()
}

func (m *Model) scene() scene { return scene{card: len(m.cards) > 0, unsent: m.holdsText()} }

// focusMsg says that the keys may change hands because time went by.
type focusMsg struct{ due time.Time }

// settleFocus lets the keys change hands where the rules say so, and wakes up
// when they will say something else.
func (m *Model) settleFocus(msg tea.Msg) tea.Cmd {
	now := m.now()
	if woken, ok := msg.(focusMsg); ok && woken.due.Equal(m.focusDue) {
		m.focusDue = time.Time{}
	}
	m.focus.settle(now, m.scene())
	due, ok := m.focus.next(now, m.scene())
	if !ok || !m.focusDue.IsZero() && !m.focusDue.After(due) {
		return nil
	}
	m.focusDue = due
	return tea.Tick(due.Sub(now), func(time.Time) tea.Msg { return focusMsg{due: due} })
}

// handleCardKey takes in a key while the card in front has the keys.
func (m *Model) handleCardKey(key tea.KeyPressMsg) tea.Cmd {
	now, front := m.now(), m.cards[0]
	switch stroke := key.Keystroke(); {
	case stroke == "esc":
		return front.dismiss()
	case stroke == "tab", stroke == "shift+tab":
		m.focus.toInput()
		return nil
	case stroke == "enter" && (key.IsRepeat || !m.focus.takesEnter(now)):
		return nil // An Enter says nothing that could get lost.
	case m.focus.early(now):
		m.focus.toInput()
		return m.handleInputKey(key)
	}
	cmd, taken := front.take(key)
	if taken || key.Text == "" {
		return cmd
	}
	m.focus.toInput()
	return m.handleInputKey(key)
}

// handlePaste takes in a paste. Nobody answers a question with one.
func (m *Model) handlePaste(msg tea.PasteMsg) tea.Cmd {
	m.focus.press(m.now())
	if m.focus.onCard && !m.focus.early(m.now()) {
		if cmd, taken := m.cards[0].take(msg); taken {
			return cmd
		}
	}
	m.focus.toInput()
	return m.handleEditor(msg)
}

// cardKeys says what the card in front shows about the keys.
func (m *Model) cardKeys() render.CardKeys {
	switch {
	case m.focus.takesEnter(m.now()):
		return render.CardHasKeys
	case m.focus.onCard:
		return render.CardGotKeys
	case m.editor.Searching(), m.completer.Visible():
		return render.CardWaitsForList
	}
	return render.CardWaits
}
