package repl

import (
	"encoding/json"
	"strings"
	"time"

	"keen/internal/cli/repl/render"
	"keen/internal/tools"
)

// liveView draws the segments of a running turn: what is finished goes to the
// transcript, once, and what is not is drawn anew for each picture. The cost of
// a picture depends on the unfinished part alone.
type liveView struct {
	// next is the first segment that is not in the transcript as a whole.
	next int
	// text draws that segment when it is text: fed of its bytes were given to
	// it, shown of its finished lines are in the transcript.
	text       *render.Stream
	fed, shown int
}

// look is what drawing depends on besides the segments.
type look struct {
	theme     *render.Theme
	markdown  *render.Markdown
	reasoning render.ReasoningView
	// frame is the picture of the spinner, now the moment.
	frame string
	now   time.Time
}

// reset begins a new turn, or the part of one after a checkpoint.
func (v *liveView) reset() { *v = liveView{} }

// advance moves what is finished to the transcript. When ended is set, all of
// it is.
func (v *liveView) advance(t *transcript, h *StreamHandler, l look, ended bool) {
	segments := h.Segments()
	if ended {
		l.frame = "" // Nothing turns any more.
	}
	for v.next < len(segments) {
		s := segments[v.next]
		last := !ended && v.next == len(segments)-1 && v.next >= h.stepStart
		switch s.Kind {
		case SegmentText:
			v.feed(s, l)
			if !last {
				v.text.Close()
			}
			v.settle(t)
			if last {
				return
			}
		case SegmentReasoning:
			if last {
				return
			}
			t.add(blockReasoning, render.Reasoning(l.theme, s.Text(), l.reasoning, l.markdown.Width()))
		case SegmentTool:
			if s.Tool.Result == nil && !ended {
				return
			}
			t.add(blockTool, toolLines(s.Tool, l))
			h.Release(v.next)
		case SegmentNotice:
			t.add(blockNote, render.Notice(l.theme, s.Text(), l.markdown.Width()))
		}
		v.next++
		v.text, v.fed, v.shown = nil, 0, 0
	}
}

func (v *liveView) feed(s Segment, l look) {
	if v.text == nil {
		v.text = l.markdown.Stream()
	}
	v.text.Write(s.Text()[v.fed:])
	v.fed = len(s.Text())
}

// settle moves the finished lines of the text to the transcript.
func (v *liveView) settle(t *transcript) {
	settled, _ := v.text.Lines()
	fresh := settled[v.shown:]
	if len(fresh) == 0 {
		return
	}
	if v.shown == 0 {
		t.add(blockText, fresh)
	} else {
		t.more(fresh)
	}
	v.shown = len(settled)
}

// restyle begins to draw anew after the width or the colours changed. What is
// in the transcript stays there.
func (v *liveView) restyle(h *StreamHandler, l look) {
	if v.text == nil || v.next >= len(h.Segments()) {
		return
	}
	v.text, v.fed = nil, 0
	v.feed(h.Segments()[v.next], l)
	if settled, _ := v.text.Lines(); v.shown > 0 {
		v.shown = len(settled)
	}
}

// lines draws what is not finished, as it stands after the transcript.
func (v *liveView) lines(t *transcript, h *StreamHandler, l look) []string {
	var lines []string
	last := t.last
	block := func(kind blockKind, drawn []string) {
		if len(drawn) == 0 {
			return
		}
		lines = append(lines, (&transcript{last: last}).gap(kind, len(drawn))...)
		lines = append(lines, drawn...)
		last = kind
	}
	for i, s := range h.Segments()[min(v.next, len(h.Segments())):] {
		switch {
		case s.Kind == SegmentText && i == 0 && v.text != nil:
			_, tail := v.text.Lines()
			if v.shown > 0 {
				lines = append(lines, tail...)
			} else {
				block(blockText, tail)
			}
		case s.Kind == SegmentText:
			block(blockText, l.markdown.Render(s.Text()))
		case s.Kind == SegmentReasoning:
			block(blockReasoning, liveReasoning(s.Text(), l))
		case s.Kind == SegmentTool:
			block(blockTool, toolLines(s.Tool, l))
		case s.Kind == SegmentNotice:
			block(blockNote, render.Notice(l.theme, s.Text(), l.markdown.Width()))
		}
	}
	return lines
}

// Of reasoning that goes on, the last lines are shown, and only the last bytes
// are looked at.
const (
	liveReasoningLines = 6
	liveReasoningBytes = 2 << 10
)

func liveReasoning(text string, l look) []string {
	if l.reasoning == render.ReasoningCollapsed {
		return nil // The loader says enough.
	}
	if cut := len(text) - liveReasoningBytes; cut > 0 {
		text = text[cut:]
	}
	lines := render.Reasoning(l.theme, text, l.reasoning, l.markdown.Width())
	return lines[max(len(lines)-liveReasoningLines, 0):]
}

// liveToolLines bounds the output of a running call in the picture.
const liveToolLines = 10

// toolLines draws a call.
func toolLines(s *ToolSegment, l look) []string {
	activity := tools.Describe(s.Call.Name, s.Call.Input)
	t := render.Tool{Label: activity.Label, Output: string(s.Output)}
	if s.Result == nil {
		t.Frame, t.MaxLines = l.frame, liveToolLines
		if !s.Started.IsZero() {
			t.Duration = l.now.Sub(s.Started)
		}
	} else {
		r := s.Result
		t.Status, t.Summary, t.Duration, t.ExitCode, t.Diff = r.Status, r.Display.Summary, r.Duration, r.ExitCode, r.Display.Diff
		if t.Output == "" && r.Status != tools.StatusDenied {
			t.Output = r.Output
		}
	}
	if activity.Kind == tools.ActivityCommand && strings.TrimSpace(t.Output) != "" {
		t.Label, t.Command = "Run", commandOf(s.Call)
	}
	return render.ToolBlock(l.theme, t, l.markdown.Width())
}

// commandOf returns the shell command of a call as it will run.
func commandOf(call tools.Call) string {
	var input struct{ Command string }
	if json.Unmarshal(call.Input, &input) != nil {
		return ""
	}
	return input.Command
}
