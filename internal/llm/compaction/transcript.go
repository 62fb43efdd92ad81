package compaction

import (
	"fmt"
	"strings"

	"keen/internal/llm/token"
)

// A compaction request shows the conversation as plain text: one transcript made of
// pieces, each a heading line with the text under it. No provider can reject
// it for its tool blocks, and no call in it needs an answer.

// pieceKind says what a [piece] holds.
type pieceKind int

const (
	pieceOutput pieceKind = iota
	pieceInput
	pieceAssistant
	pieceUser
	pieceSummary
)

// piece is one entry of a transcript.
type piece struct {
	kind    pieceKind
	heading string
	// text is the content, tags neutralised, and tokens its size.
	text   string
	tokens int
	// fixed is the size of the heading and the line breaks, in tokens.
	fixed int
	// newest marks the last step, which shrinks last.
	newest bool
	// protected says that the text is never cut: the user's latest words, as
	// long as they are few.
	protected bool
}

// transcript is a conversation as pieces, in the order things happened.
type transcript struct {
	pieces   []piece
	activity activityIndex
	// latestUser is the index of the piece with the user's latest message,
	// -1 when there is none.
	latestUser int
	// worthwhile says that there is more than the message that is retained
	// anyway and what earlier compactions left.
	worthwhile bool
}

// transcribe makes the transcript of a conversation. Each text is estimated
// once.
func transcribe(conversation []Entry) transcript {
	t := transcriber{lastText: -1}
	t.latestUser = -1
	last := lastOfUser(conversation)
	for i, e := range conversation {
		switch e.Speaker {
		case SpeakerUser:
			t.user(e, i == last)
		case SpeakerKeen:
			t.add(pieceAssistant, "<keen_nudge>", e.Text)
		case SpeakerAssistant:
			t.assistant(e)
		}
	}
	t.markNewest()
	return t.transcript
}

type transcriber struct {
	transcript
	calls int
	// batchFrom and batchTo bound the pieces of the last step with calls.
	batchFrom, batchTo int
	// lastText is the index of the last piece the assistant said, or -1.
	lastText int
}

func (t *transcriber) add(kind pieceKind, heading, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	text = neutraliseTags(text, transcriptTags)
	t.pieces = append(t.pieces, piece{
		kind: kind, heading: heading, text: text,
		tokens: token.Estimate(text), fixed: token.Estimate(heading) + 2,
	})
}

// user adds a user message. Of the wrapper of an earlier compaction only the
// parts are shown: the summary as such, the task as the user's words.
func (t *transcriber) user(e Entry, latest bool) {
	before := len(t.pieces)
	t.add(pieceSummary, "<keen_earlier_summary> Summary of the conversation before", e.Summary)
	words := len(t.pieces)
	t.add(pieceUser, "<keen_user>", e.Text)
	switch {
	case latest && len(t.pieces) > words:
		t.latestUser = words
	case !latest && len(t.pieces) > before:
		t.worthwhile = true
	}
}

// assistant adds what was said and then done: the text, the calls, their
// results.
func (t *transcriber) assistant(e Entry) {
	if len(e.Calls) == 0 {
		t.say(e.Text)
		return
	}
	t.batchFrom = len(t.pieces)
	t.say(e.Text)
	t.batch(e.Calls)
	t.batchTo = len(t.pieces)
}

func (t *transcriber) say(text string) {
	before := len(t.pieces)
	t.add(pieceAssistant, "<keen_assistant>", text)
	if len(t.pieces) > before {
		t.lastText = before
		t.worthwhile = true
	}
}

func (t *transcriber) batch(calls []Call) {
	t.worthwhile = true
	for i, c := range calls {
		input := string(c.Input)
		if input == "" {
			input = "{}"
		}
		t.add(pieceInput, fmt.Sprintf("<keen_call n=%d tool=%s>", t.calls+i+1, toolName(c.Tool)), input)
		t.activity.note(c)
	}
	for _, c := range calls {
		t.calls++
		heading := fmt.Sprintf("<keen_result n=%d tool=%s status=%s>", t.calls, toolName(c.Tool), c.statusText())
		output := c.Output
		if strings.TrimSpace(output) == "" {
			output = "(no output)"
		}
		t.add(pieceOutput, heading, output)
	}
}

// maxToolName bounds the name of a tool in a heading, in bytes: the name of an
// unknown tool is whatever the model wrote.
const maxToolName = 64

func toolName(name string) string {
	return neutraliseTags(fmt.Sprintf("%q", strings.ToValidUTF8(name[:min(len(name), maxToolName)], "")), transcriptTags)
}

func (t *transcriber) markNewest() {
	for i := t.batchFrom; i < t.batchTo; i++ {
		t.pieces[i].newest = true
	}
	if t.lastText >= 0 {
		t.pieces[t.lastText].newest = true
	}
}

// write adds a piece with its text clipped to allowance tokens.
func (p *piece) write(b *strings.Builder, allowance int) {
	b.WriteString(p.heading)
	b.WriteByte('\n')
	b.WriteString(clip(p.text, p.tokens, allowance))
	b.WriteByte('\n')
}

// clipNote is the size that the note of a clipped text may have, in tokens.
const clipNote = 14

// clip returns a text of the given tokens in at most allowance tokens: head and
// tail around a note of what is missing.
func clip(text string, tokens, allowance int) string {
	if tokens <= allowance {
		return text
	}
	keep := max(0, allowance-clipNote)
	head, tail := token.HeadTail(text, keep, tokens)
	return fmt.Sprintf("%s\n[... about %d tokens left out ...]\n%s", head, tokens-keep, tail)
}
