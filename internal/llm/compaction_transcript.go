package llm

import (
	"fmt"
	"strings"

	"keen/internal/llm/token"
)

// A compaction request shows the history as plain text: one transcript made of
// pieces, each a heading line with the text under it. No provider can reject
// it for its tool blocks, and no call in it needs an answer.

// transcriptTags are the beginnings of the tag names that a transcript gives a
// meaning to. They are neutralised in everything that it quotes, those of the
// wrapper too, lest a summary copies them.
var transcriptTags = append([]string{"keen_"}, wrapperTags...)

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

// transcript is a history as pieces, in the order things happened.
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

// transcribe makes the transcript of a history. Each text is estimated once.
func transcribe(history []Message) transcript {
	t := transcriber{lastText: -1}
	t.latestUser = -1
	last := lastUserIndex(history)
	for i, m := range history {
		switch m.Role {
		case RoleUser:
			t.user(m, i == last)
		case RoleAssistant:
			t.assistant(m)
		case RoleSystem: // The agent's system prompt is kept apart.
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
func (t *transcriber) user(m Message, latest bool) {
	text := m.Content
	switch {
	case m.Nudge:
		t.add(pieceAssistant, "<keen_nudge>", text)
		return
	case m.Compaction != nil:
		t.add(pieceSummary, "<keen_earlier_summary> Summary of the conversation before", m.Compaction.Summary)
		text = m.Compaction.Task
	}
	before := len(t.pieces)
	t.add(pieceUser, "<keen_user>", text)
	switch {
	case latest && len(t.pieces) > before:
		t.latestUser = before
	case !latest && (len(t.pieces) > before || m.Compaction != nil):
		t.worthwhile = true
	}
}

// assistant adds what one message said and did: the text before each group of
// calls, the calls, their results.
func (t *transcriber) assistant(m Message) {
	m.inOrder(func(text string, calls []HistoricalToolActivity) {
		if len(calls) == 0 {
			t.say(text)
			return
		}
		t.batchFrom = len(t.pieces)
		t.say(text)
		t.batch(calls)
		t.batchTo = len(t.pieces)
	})
}

func (t *transcriber) say(text string) {
	before := len(t.pieces)
	t.add(pieceAssistant, "<keen_assistant>", text)
	if len(t.pieces) > before {
		t.lastText = before
		t.worthwhile = true
	}
}

func (t *transcriber) batch(activities []HistoricalToolActivity) {
	t.worthwhile = true
	for i, a := range activities {
		input := string(a.Input)
		if input == "" {
			input = "{}"
		}
		t.add(pieceInput, fmt.Sprintf("<keen_call n=%d tool=%s>", t.calls+i+1, toolName(a.Tool)), input)
		t.activity.note(a)
	}
	for _, a := range activities {
		t.calls++
		heading := fmt.Sprintf("<keen_result n=%d tool=%s status=%s>", t.calls, toolName(a.Tool), statusOf(a))
		t.add(pieceOutput, heading, outputOf(a))
	}
}

// maxToolName bounds the name of a tool in a heading, in bytes: the name of an
// unknown tool is whatever the model wrote.
const maxToolName = 64

func toolName(name string) string {
	return neutraliseTags(fmt.Sprintf("%q", strings.ToValidUTF8(name[:min(len(name), maxToolName)], "")), transcriptTags)
}

// statusOf says how a call ended; one that never did has no status.
func statusOf(a HistoricalToolActivity) string {
	status := a.Status
	if status == "" {
		status = "unanswered"
	}
	if a.ExitCode == nil {
		return string(status)
	}
	return fmt.Sprintf("%s exit_code=%d", status, *a.ExitCode)
}

// outputOf returns the raw output of a call where it is in memory, and what
// else is known where it is not.
func outputOf(a HistoricalToolActivity) string {
	switch {
	case a.HasRawOutput && strings.TrimSpace(a.RawOutput) != "":
		return a.RawOutput
	case a.HasRawOutput:
		return "(no output)"
	case a.Summary != "":
		return a.Summary + " (output not kept)"
	}
	return "(output not kept)"
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
