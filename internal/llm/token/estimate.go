// Package token says how large a text is in tokens and cuts texts to a size in
// tokens. It needs no vocabulary and knows nothing of providers, requests and
// conversations.
//
// [Estimate] is the local estimate, [Calibration] corrects it by what a provider
// counted, [HeadTail] cuts. Everything here is pure; test it against a real
// vocabulary.
package token

import "unicode/utf8"

// This file estimates tokens without a vocabulary. It goes over a text once and
// splits it the way the pre-tokenizers of current models do: words at changes
// of case, digits in groups of three, runs of punctuation, runs of blanks; then
// each piece has a price. The prices were fitted to o200k on source code, JSON,
// prose, logs and encoded data; other vocabularies differ by a factor, which
// calibration takes care of.

// Estimate returns about how many tokens a text has: 0 for the empty
// text, at least 1 for any other. It allocates nothing. The estimates of two
// texts add up to that of both together, give or take a few tokens.
func Estimate(s string) int {
	if s == "" {
		return 0
	}
	e := estimator{s: s}
	for e.i < len(s) {
		switch class := byteClasses[s[e.i]]; {
		case class <= classDigit:
			e.word()
		case class == classBlank:
			e.blanks()
		case class == classNewline:
			e.newlines()
		case class == classMark:
			e.marks()
		default:
			e.rune()
		}
	}
	return max(1, (e.price+tokenPrice-1)/tokenPrice)
}

// tokenPrice is the price of one token; prices are fractions of it.
const tokenPrice = 64

// byteClass sorts bytes. The classes of words come first.
type byteClass uint8

const (
	classLower byteClass = iota
	classUpper
	classDigit
	classBlank
	classNewline
	classMark
	classHigh
)

var byteClasses = func() (t [256]byteClass) {
	for i := range t {
		switch b := byte(i); {
		case 'a' <= b && b <= 'z':
			t[i] = classLower
		case 'A' <= b && b <= 'Z':
			t[i] = classUpper
		case '0' <= b && b <= '9':
			t[i] = classDigit
		case b == ' ' || b == '\t':
			t[i] = classBlank
		case b == '\n' || b == '\r':
			t[i] = classNewline
		case b >= utf8.RuneSelf:
			t[i] = classHigh
		default:
			t[i] = classMark
		}
	}
	return t
}()

// A wordStep is what a byte does to a run of letters and digits: the next state
// in bits 0 to 7, the price it adds from bit 8, and from bit 40 a 1 where the
// class of bytes changes. A state is a class and a place in a piece.
type wordStep = uint64

const (
	stepPrice  = 8
	stepChange = 40
	// lastPlace is the place of every byte from here on.
	lastPlace = 31
	// wordStart is the state before the first byte.
	wordStart = 3 * (lastPlace + 1)
)

// wordSteps is the table of the automaton that prices words. A lower-case
// letter after upper-case ones goes on with their piece, as in "Go".
var wordSteps = func() (t [wordStart + 1][3]wordStep) {
	for state := range t {
		class, place := byteClass(state/(lastPlace+1)), state%(lastPlace+1)
		for next := classLower; next <= classDigit; next++ {
			at, change := 1, wordStep(1)
			switch {
			case state == wordStart:
				change = 0
			case class == next:
				at, change = min(place+1, lastPlace), 0
			case class == classUpper && next == classLower:
				at = min(place+1, lastPlace)
			}
			if next == classDigit && at > 3 {
				at = 1
			}
			target := wordStep(next)*(lastPlace+1) + wordStep(at)
			t[state][next] = target | placePrice(next, at)<<stepPrice | change<<stepChange
		}
	}
	return t
}()

// placePrice is what the byte at a place of a piece adds to its price: short
// words are one token, longer ones are more and more often several; three
// digits are one.
func placePrice(class byteClass, place int) wordStep {
	switch {
	case place == 1:
		return tokenPrice
	case class == classDigit || place <= 5:
		return 0
	case place <= 7:
		return 3
	case place <= 9:
		return 6
	case place <= 12:
		return 8
	}
	return 9
}

// Runs that are no words: encoded data, where the class of bytes changes so
// often that no vocabulary knows the pieces.
const (
	minEncoded     = 8  // bytes
	encodedChanges = 36 // changes in a hundred bytes
	encodedByte    = 16 // price of a byte
	encodedChange  = 44 // price of a change
)

// estimator goes over a text.
type estimator struct {
	s     string
	i     int
	price int
}

// word prices a run of letters and digits.
func (e *estimator) word() {
	state, sum := wordStep(wordStart), wordStep(0)
	i := e.i
	for ; i < len(e.s); i++ {
		class := byteClasses[e.s[i]]
		if class > classDigit {
			break
		}
		step := wordSteps[state][class]
		state = step & 0xff
		sum += step >> stepPrice
	}
	length := i - e.i
	price, changes := int(sum&(1<<(stepChange-stepPrice)-1)), int(sum>>(stepChange-stepPrice))
	if length >= minEncoded && changes*100 >= length*encodedChanges {
		price = length*encodedByte + changes*encodedChange
	}
	e.price += price
	e.i = i
}

// next is the class of the byte at the current place, classNewline at the end.
func (e *estimator) next() byteClass {
	if e.i == len(e.s) {
		return classNewline
	}
	return byteClasses[e.s[e.i]]
}

// skip goes to the end of a run of one class and returns its length.
func (e *estimator) skip(class byteClass) int {
	start := e.i
	for e.i < len(e.s) && byteClasses[e.s[e.i]] == class {
		e.i++
	}
	return e.i - start
}

// blanks prices spaces and tabs: a run is one token, and its last blank belongs
// to the word or the marks that follow.
func (e *estimator) blanks() {
	run := e.skip(classBlank)
	if c := e.next(); c != classNewline && c != classDigit {
		run--
	}
	if run > 0 {
		e.price += tokenPrice + run*tokenPrice/128
	}
}

// newlines prices line ends: a short run is one token, which marks before it
// often take in.
func (e *estimator) newlines() {
	afterMark := e.i > 0 && byteClasses[e.s[e.i-1]] == classMark
	if run := e.skip(classNewline); run > 2 {
		e.price += (run - 2) * tokenPrice / 16
	}
	if afterMark {
		e.price += tokenPrice / 3
	} else {
		e.price += tokenPrice
	}
}

// marks prices punctuation: the usual combinations are one token, and a single
// mark is often one with the word after it.
func (e *estimator) marks() {
	run := e.skip(classMark)
	letter := e.next() == classLower || e.next() == classUpper
	switch {
	case run == 1 && letter:
		e.price += tokenPrice * 45 / 100
	case run == 1:
		e.price += tokenPrice * 95 / 100
	case letter:
		e.price += tokenPrice*115/100 + (run-2)*tokenPrice*30/100
	default:
		e.price += tokenPrice + (run-2)*tokenPrice*30/100
	}
}

// rune prices a character beyond ASCII by its script: vocabularies hold words
// of alphabets, and single characters or pairs of the East Asian scripts.
func (e *estimator) rune() {
	r, size := utf8.DecodeRuneInString(e.s[e.i:])
	e.i += size
	switch {
	case r == utf8.RuneError && size == 1:
		e.price += tokenPrice * 85 / 100
	case r < 0x250: // Latin with accents
		e.price += tokenPrice * 40 / 100
	case r < 0x590: // Greek, Cyrillic, Armenian
		e.price += tokenPrice * 23 / 100
	case r < 0x1100: // Hebrew, Arabic, scripts of South Asia
		e.price += tokenPrice * 40 / 100
	case r >= 0x3000 && r <= 0x9fff, r >= 0xff00 && r <= 0xffef: // Kana, Han
		e.price += tokenPrice * 75 / 100
	case r >= 0xac00 && r <= 0xd7a3: // Hangul
		e.price += tokenPrice * 66 / 100
	case r >= 0x1f000: // emoji
		e.price += tokenPrice * 150 / 100
	default:
		e.price += tokenPrice
	}
}
