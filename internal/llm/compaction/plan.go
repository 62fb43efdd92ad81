package compaction

import (
	"errors"
	"fmt"
	"strings"

	"keen/internal/llm/token"
)

// Mode says who asked for a compaction.
type Mode int

// The modes of compaction.
const (
	// ModeManual is asked for by the user, who reads the summary.
	ModeManual Mode = iota
	// ModeAutomatic is Keen's own checkpoint inside a turn; the latest user
	// message is retained beside its summary.
	ModeAutomatic
)

// Options say how a conversation is summarised.
type Options struct {
	// Mode says who asked.
	Mode Mode
	// Hint is what the user wants the summary to focus on; it may be empty.
	Hint string
	// Prompt makes the system prompt of the requests from a hint, which was
	// cut to its share of the budget.
	Prompt func(hint string) string
	// Budget is the most that one whole request may have, system prompt
	// included, in tokens of [token.Estimate].
	Budget int
}

// ErrNothing says that there is no conversation beside what its replacement
// would hold again.
var ErrNothing = errors.New("there is no conversation to compact yet")

// messageOverhead is what a wire adds to a message, in tokens.
const messageOverhead = 8

// Shares of the budget: the most that one of these may have of it.
const (
	soFarShare = 4 // summary of the earlier parts
	indexShare = 4 // activity index
	taskShare  = 8 // latest user message that is kept whole
	hintShare  = 8 // the user's hint
)

const (
	// maxComplaint bounds the complaint about an unusable summary, in
	// tokens; complaintRoom is kept free for it and its sentence.
	maxComplaint  = 96
	complaintRoom = maxComplaint + 64
	// maxOrientation bounds the latest user message where it is repeated
	// for orientation, in tokens.
	maxOrientation = 256
	// leastRoom is the least room for the transcript of a part, in tokens:
	// any text fits into it at its hard floor.
	leastRoom = 640
	// maxPart has as many digits as the number of a part can have.
	maxPart = 99999
	// joinSlack covers what the size of a request can differ from the sum of
	// the sizes of its parts, in tokens.
	joinSlack = 32
	// splitSlack is the share of a part's room that is left for the size of
	// a whole to differ from that of its pieces.
	splitSlack = 16
)

// Plan is a conversation as compaction requests that fit: one, or successive
// ones that each get the summary of those before.
type Plan struct {
	mode   Mode
	budget int
	system string
	// transcripts has the transcript of each part, clipped.
	transcripts []string
	index       string
	// orientation is the latest user message, clipped, for the parts that do
	// not have it; latestIn is the part that does, or -1.
	orientation string
	latestIn    int
}

// NewPlan sizes the requests for a summary of a conversation, which is not
// changed. It returns [ErrNothing] when there is nothing to summarise, and an
// error that says what to do when the budget has no room for it.
func NewPlan(conversation []Entry, o Options) (*Plan, error) {
	t := transcribe(conversation)
	if !t.worthwhile || len(t.pieces) == 0 {
		return nil, ErrNothing
	}
	if i := t.latestUser; i >= 0 && t.pieces[i].tokens <= o.Budget/taskShare {
		t.pieces[i].protected = true
	}
	hint := strings.TrimSpace(o.Hint)
	hint = clip(hint, token.Estimate(hint), max(0, o.Budget/hintShare))
	p := &Plan{
		mode: o.Mode, budget: o.Budget, latestIn: -1,
		system: o.Prompt(hint),
		index:  t.activity.render(max(0, o.Budget/indexShare)),
	}
	room := p.budget - p.fixed(content{part: 1, parts: 1})
	if text, ok := renderPieces(t.pieces, room); ok {
		p.transcripts = []string{text}
		return p, nil
	}
	if err := p.planParts(t); err != nil {
		return nil, err
	}
	return p, nil
}

// planParts plans the successive requests for a transcript too large for one.
func (p *Plan) planParts(t transcript) error {
	if t.latestUser >= 0 {
		latest := &t.pieces[t.latestUser]
		p.orientation = clip(latest.text, latest.tokens, maxOrientation)
	}
	room := p.budget - p.budget/soFarShare - p.fixed(content{
		part: maxPart, parts: maxPart, soFar: "-", orientation: p.orientation,
	})
	if room < leastRoom {
		return fmt.Errorf("compaction requests of at most %d tokens have no room for the conversation: use a model with a larger context window", p.budget)
	}
	from := 0
	for i, end := range splitPieces(t.pieces, room-room/splitSlack) {
		text, ok := renderPieces(t.pieces[from:end], room)
		if !ok {
			return fmt.Errorf("part %d of the conversation does not fit into a compaction request of %d tokens: use a model with a larger context window", i+1, p.budget)
		}
		p.transcripts = append(p.transcripts, text)
		if from <= t.latestUser && t.latestUser < end {
			p.latestIn = i
		}
		from = end
	}
	return nil
}

// fixed is the size of a request with the given content and the index, without
// its transcript, in tokens. Room for a complaint is included.
func (p *Plan) fixed(c content) int {
	c.mode, c.index, c.transcript = p.mode, p.index, "-"
	return token.Estimate(p.system) + token.Estimate(c.String()) + complaintRoom + joinSlack + 2*messageOverhead
}

// Parts is the number of successive requests, 1 unless the conversation is too
// large for one.
func (p *Plan) Parts() int { return len(p.transcripts) }

// Request returns the request of a part, counted from 0: a system prompt and the
// text of one user message. soFar is the summary of the parts before; the first has none.
// complaint says why the summary that this part got before was not usable, and
// is empty the first time.
func (p *Plan) Request(part int, soFar, complaint string) (system, user string) {
	c := content{
		mode: p.mode, part: part + 1, parts: p.Parts(), transcript: p.transcripts[part],
		complaint: clip(complaint, token.Estimate(complaint), maxComplaint),
	}
	if part > 0 {
		soFar = neutraliseTags(soFar, transcriptTags)
		c.soFar = clip(soFar, token.Estimate(soFar), p.budget/soFarShare-joinSlack)
	}
	if part != p.latestIn {
		c.orientation = p.orientation
	}
	if part == p.Parts()-1 {
		c.index = p.index
	}
	return p.system, c.String()
}

// renderPieces writes pieces in at most room tokens. It is not ok when they do
// not fit at their floors.
func renderPieces(pieces []piece, room int) (string, bool) {
	target := room
	for {
		allowances, ok := fitPieces(pieces, target)
		if !ok {
			return "", false
		}
		var b strings.Builder
		for i := range pieces {
			pieces[i].write(&b, allowances[i])
		}
		// The size of a whole is not quite the sum of its pieces'.
		over := token.Estimate(b.String()) - room
		if over <= 0 {
			return b.String(), true
		}
		target -= over
	}
}
