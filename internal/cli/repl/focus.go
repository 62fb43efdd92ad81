package repl

import "time"

// The times of [focus].
const (
	// typingPause is how long after a key the user still counts as somebody
	// who types: nothing takes the keys away from the input before.
	typingPause = 1500 * time.Millisecond
	// answerDelay is how long a card has had the keys before Enter answers it:
	// sooner, nobody can have read it.
	answerDelay = 600 * time.Millisecond
)

// focus is the one place that knows who has the keys: the input, or the card in
// front. It holds the rules by which they change hands, and nothing else; the
// moments come from its callers, so that a test needs no clock.
//
// A card that comes up by itself waits until the user has stopped typing. From
// then on it has the keys, but a key that comes sooner than [answerDelay] is no
// answer to what was only just shown, and brings the input back. Tab changes
// hands at any time.
type focus struct {
	// onCard says that the card has the keys, since the moment got, and how it
	// came by them.
	onCard bool
	got    time.Time
	how    handover
	// pressed is when the last key came, whoever it was for, and keys how many
	// there were.
	pressed time.Time
	keys    int
}

// cause is why a card comes up: the number of keys there had been when the user
// asked for it, or [byItself].
type cause int

const byItself cause = 0

// asked returns the cause of a card that the user asks for now.
func (f *focus) asked() cause { return cause(f.keys) }

// awaited reports whether the user did nothing since asking for a card but wait
// for it.
func (f *focus) awaited(c cause) bool { return c != byItself && int(c) == f.keys && !f.onCard }

// handover is how a card came by the keys.
type handover int

const (
	// afterPause: the user had stopped typing.
	afterPause handover = iota
	// byTab: the user moved to it.
	byTab
	// fromCard: the card before it had them.
	fromCard
	// asAsked: the user asked for it and pressed nothing since.
	asAsked
)

// press takes in that a key came, or a paste.
func (f *focus) press(now time.Time) {
	f.pressed = now
	f.keys++
}

// toCard gives the keys to the card in front.
func (f *focus) toCard(now time.Time, how handover) { f.onCard, f.got, f.how = true, now, how }

// toInput gives the keys to the input.
func (f *focus) toInput() { f.onCard = false }

// settle applies the rules that need no key: without a card the input has the
// keys; a card gets them when the input is idle, which means that it holds no
// text, and no key came for a while.
func (f *focus) settle(now time.Time, s scene) {
	switch {
	case !s.card:
		f.onCard = false
	case !f.onCard && !s.unsent && now.Sub(f.pressed) >= typingPause:
		f.toCard(now, afterPause)
	}
}

// scene is what focus has to know of the screen: whether there is a card, and
// whether the input holds text that was not sent.
type scene struct{ card, unsent bool }

// early reports whether a key is no reaction to the card that has the keys: the
// card came up by itself, a moment ago.
func (f *focus) early(now time.Time) bool {
	return f.onCard && f.how == afterPause && now.Sub(f.got) < answerDelay
}

// takesEnter reports whether Enter answers the card.
func (f *focus) takesEnter(now time.Time) bool {
	return f.onCard && (f.how == asAsked || now.Sub(f.got) >= answerDelay)
}

// next returns when the rules will say something else although no key comes,
// and false when only a key can change it.
func (f *focus) next(now time.Time, s scene) (time.Time, bool) {
	switch {
	case !s.card:
		return time.Time{}, false
	case f.onCard:
		return f.got.Add(answerDelay), !f.takesEnter(now)
	}
	return f.pressed.Add(typingPause), !s.unsent
}
