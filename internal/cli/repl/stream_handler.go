package repl

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"keen/internal/llm"
	"keen/internal/llm/apierror"
	"keen/internal/tools"
)

// SegmentKind says what a [Segment] shows.
type SegmentKind int

// The kinds of segments.
const (
	SegmentText SegmentKind = iota
	SegmentReasoning
	SegmentTool
	SegmentNotice
)

// Segment is one visible piece of a turn, in the order in which it came.
type Segment struct {
	Kind SegmentKind
	// Tool is set on tool segments.
	Tool *ToolSegment
	// Version grows with each change, so that a renderer can cache.
	Version int

	text *strings.Builder
}

// Text returns what the model said or thought, or what the notice says. It
// costs nothing, however long the text is.
func (s Segment) Text() string {
	if s.text == nil {
		return ""
	}
	return s.text.String()
}

func textSegment(kind SegmentKind, text string) Segment {
	s := Segment{Kind: kind, text: new(strings.Builder)}
	s.text.WriteString(text)
	return s
}

// ToolSegment is a call with what is known of it.
type ToolSegment struct {
	Call    tools.Call
	Started time.Time
	// Output is what a running tool printed so far, its last part when it is
	// long. It may begin and end inside a character.
	Output []byte
	// Result is nil while the tool runs.
	Result *tools.Result
}

// maxLiveOutput is how much is kept at least of the output of a running tool, in
// bytes; at most twice of it is.
const maxLiveOutput = 64 << 10

// StreamHandler folds the events of a turn into what a front end shows (the
// segments) and what the next turn has to know (the turn memory: canonical
// messages). REPL and headless runs use the same one. It belongs to one
// goroutine.
type StreamHandler struct {
	segments []Segment
	// stepStart is the number of segments before the running step: a rewind
	// goes back to it.
	stepStart int

	memory []llm.Message
	// said and did are the running step.
	said *strings.Builder
	did  []llm.HistoricalToolActivity

	usage   llm.Usage
	known   bool // usage was reported
	context *llm.StepInfo
	loading string
	now     func() time.Time
}

// NewStreamHandler returns a handler for a new turn.
func NewStreamHandler() *StreamHandler {
	return &StreamHandler{said: new(strings.Builder), now: time.Now}
}

// retryText says what a turn waits for, and for how long where that is long
// enough to be read.
func retryText(r *llm.RetryInfo) string {
	if r.Delay < time.Second {
		return fmt.Sprintf("Retrying (attempt %d)...", r.Attempt)
	}
	wait := (r.Delay + time.Second - 1).Truncate(time.Second)
	var e *apierror.Error
	if errors.As(r.Err, &e) && (e.Kind == apierror.KindRateLimit || e.Kind == apierror.KindRateLimitTokens) {
		return fmt.Sprintf("Rate limit: waiting %v (attempt %d)...", wait, r.Attempt)
	}
	return fmt.Sprintf("Retrying in %v (attempt %d)...", wait, r.Attempt)
}

// Handle takes in one event. Compaction events are the business of the front
// end; the handler only shows them in its loading text.
func (h *StreamHandler) Handle(e llm.StreamEvent) {
	switch e.Type {
	case llm.StreamEventTypeStepStarted:
		h.closeStep()
		h.context, h.loading = e.Step, ""
	case llm.StreamEventTypeChunk:
		h.said.WriteString(e.Text)
		h.appendText(SegmentText, e.Text)
		h.loading = ""
	case llm.StreamEventTypeReasoningChunk:
		h.appendText(SegmentReasoning, e.Text)
	case llm.StreamEventTypeRetry:
		h.rewind()
		h.loading = retryText(e.Retry)
	case llm.StreamEventTypeToolStarted:
		h.segments = append(h.segments, Segment{Kind: SegmentTool, Tool: &ToolSegment{Call: e.Tool.Call, Started: h.now()}})
	case llm.StreamEventTypeToolOutput:
		h.toolOutput(e.Tool)
	case llm.StreamEventTypeToolEnded:
		h.toolEnded(e.Tool)
	case llm.StreamEventTypeNudge:
		h.closeStep()
		h.memory = append(h.memory, llm.Message{Role: llm.RoleUser, Content: e.Text, Nudge: true})
	case llm.StreamEventTypeNotice:
		h.segments = append(h.segments, textSegment(SegmentNotice, e.Text))
		h.stepStart = len(h.segments)
	case llm.StreamEventTypeUsage:
		h.usage, h.known = h.usage.Plus(*e.Usage), true
	case llm.StreamEventTypeDone, llm.StreamEventTypeIncomplete, llm.StreamEventTypeError:
		h.closeStep()
	}
}

// appendText adds to the last segment or, when that is of another kind or of
// an earlier step, begins one.
func (h *StreamHandler) appendText(kind SegmentKind, text string) {
	if n := len(h.segments); n > h.stepStart && h.segments[n-1].Kind == kind {
		h.segments[n-1].text.WriteString(text)
		h.segments[n-1].Version++
		return
	}
	h.segments = append(h.segments, textSegment(kind, text))
}

// rewind forgets what the failed sample said.
func (h *StreamHandler) rewind() {
	h.segments = h.segments[:min(h.stepStart, len(h.segments))]
	h.said, h.did = new(strings.Builder), nil
}

// closeStep moves the running step into the turn memory.
func (h *StreamHandler) closeStep() {
	if h.said.Len() > 0 || len(h.did) > 0 {
		h.memory = append(h.memory, llm.Message{Role: llm.RoleAssistant, Content: h.said.String(), ToolActivities: h.did})
	}
	h.said, h.did = new(strings.Builder), nil
	h.stepStart = len(h.segments)
}

func (h *StreamHandler) toolOutput(e *llm.ToolEvent) {
	i := h.findTool(e.Call.ID)
	if i < 0 {
		return
	}
	t := h.segments[i].Tool
	t.Output = append(t.Output, e.Output...)
	if len(t.Output) > 2*maxLiveOutput {
		t.Output = append([]byte(nil), t.Output[len(t.Output)-maxLiveOutput:]...)
	}
	h.segments[i].Version++
}

func (h *StreamHandler) toolEnded(e *llm.ToolEvent) {
	i := h.findTool(e.Call.ID)
	if i < 0 { // It never ran.
		h.segments = append(h.segments, Segment{Kind: SegmentTool, Tool: &ToolSegment{Call: e.Call}})
		i = len(h.segments) - 1
	}
	h.segments[i].Tool.Result = e.Result
	h.segments[i].Version++
	h.did = append(h.did, llm.Activity(e.Call, *e.Result, h.said.Len()))
}

func (h *StreamHandler) findTool(id string) int {
	for i := len(h.segments) - 1; i >= h.stepStart; i-- {
		if t := h.segments[i].Tool; t != nil && t.Call.ID == id {
			return i
		}
	}
	return -1
}

// Checkpoint ends what was folded so far and returns it: the canonical
// messages, raw output included, and the segments that show them. The handler
// goes on, empty, with the same stream.
func (h *StreamHandler) Checkpoint() ([]llm.Message, []Segment) {
	h.closeStep()
	messages, segments := h.memory, h.segments
	h.memory, h.segments, h.stepStart = nil, nil, 0
	h.context = nil
	return messages, segments
}

// Segments returns what is visible of the turn since the last checkpoint. The
// caller must not change it.
func (h *StreamHandler) Segments() []Segment { return h.segments }

// Release forgets the output of a running tool in the segment with the index,
// once nobody shows it any more: the turn memory has what the model read.
func (h *StreamHandler) Release(i int) {
	if t := h.segments[i].Tool; t != nil && t.Result != nil {
		t.Output = nil
	}
}

// Usage returns the usage reported since the handler was made, checkpoints
// included, and whether there was any.
func (h *StreamHandler) Usage() (llm.Usage, bool) { return h.usage, h.known }

// AddUsage counts usage that no event of the parent stream carries, such as
// that of a compaction request.
func (h *StreamHandler) AddUsage(u *llm.Usage) {
	if u != nil {
		h.usage, h.known = h.usage.Plus(*u), true
	}
}

// Context returns the size of the last request, nil when it is unknown: before
// the first step and right after a compaction.
func (h *StreamHandler) Context() *llm.StepInfo { return h.context }

// Loading returns the text beside the spinner; empty means the ordinary one.
func (h *StreamHandler) Loading() string { return h.loading }

// SetLoading sets the text beside the spinner.
func (h *StreamHandler) SetLoading(text string) { h.loading = text }

// AnswerText joins what the assistant said in messages: pieces are separated by
// a blank line unless one is there, and an answer that was cut by the output
// limit goes on where it stopped.
func AnswerText(messages []llm.Message) string {
	var text string
	cut := false
	for _, m := range messages {
		switch {
		case m.Nudge:
			cut = llm.ContinuesText(m)
		case m.Role == llm.RoleAssistant && m.Content != "":
			if cut {
				text += m.Content
			} else {
				text = JoinAnswers(text, m.Content)
			}
			cut = false
		}
	}
	return text
}

// JoinAnswers joins two pieces of an answer with a blank line, unless one of
// them is empty or there is a blank line already.
func JoinAnswers(a, b string) string {
	switch {
	case strings.TrimSpace(a) == "":
		return b
	case strings.TrimSpace(b) == "":
		return a
	case strings.HasSuffix(a, "\n\n") || strings.HasPrefix(b, "\n\n"):
		return a + b
	}
	return strings.TrimRight(a, "\n") + "\n\n" + strings.TrimLeft(b, "\n")
}
