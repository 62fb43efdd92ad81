package render

import (
	"strings"
	"time"
)

// UserMessage renders what the user said, set off by a sign at its first line.
func UserMessage(t *Theme, text string, width int) []string {
	width = max(width, 1)
	indent := indentWidth(2, width)
	first, rest := "", ""
	if indent > 0 {
		first, rest = t.Accent.Styled(t.Glyphs.Prompt)+" ", "  "
	}
	lines := Wrap(strings.TrimRight(Sanitize(text), "\n "), width-indent)
	return hang(first, rest, styleLines(t.User, lines))
}

// ReasoningView says how much of the model's reasoning is shown.
type ReasoningView int

// The views of reasoning.
const (
	// ReasoningShown shows all of it.
	ReasoningShown ReasoningView = iota
	// ReasoningCollapsed shows one line that says how much there is.
	ReasoningCollapsed
	// ReasoningHidden shows nothing.
	ReasoningHidden
)

// Reasoning renders what the model thought.
func Reasoning(t *Theme, text string, view ReasoningView, width int) []string {
	text = strings.TrimSpace(Sanitize(text))
	if view == ReasoningHidden || text == "" {
		return nil
	}
	width = max(width, 1)
	if view == ReasoningCollapsed {
		line := "Thought " + t.Glyphs.Separator + " " + plural(strings.Count(text, "\n")+1, "line")
		return []string{Truncate(t.Reasoning.Styled(line), width)}
	}
	indent := indentWidth(2, width)
	lines := styleLines(t.Reasoning, Wrap(text, width-indent))
	pad := strings.Repeat(" ", indent)
	return hang(pad, pad, lines)
}

// Notice renders a line that Keen itself says in the transcript.
func Notice(t *Theme, text string, width int) []string {
	return bulleted(t.Dim, t.Glyphs.Bullet, text, width)
}

// Warning renders something that the user should know.
func Warning(t *Theme, text string, width int) []string {
	return bulleted(t.Warning, "!", text, width)
}

// Interrupted renders the line that stands where the user stopped a turn.
func Interrupted(t *Theme, width int) []string {
	return bulleted(t.Warning, t.Glyphs.Refused, "Interrupted. What should Keen do instead?", width)
}

// TurnTime renders the line that ends a turn: how long it took.
func TurnTime(t *Theme, d time.Duration, width int) string {
	return Truncate(t.Dim.Styled("Worked for "+Elapsed(d)), width)
}

func bulleted(style Style, sign, text string, width int) []string {
	width = max(width, 1)
	indent := indentWidth(2, width)
	first, rest := "", ""
	if indent > 0 {
		first, rest = style.Styled(sign)+" ", "  "
	}
	return hang(first, rest, styleLines(style, Wrap(strings.TrimSpace(Sanitize(text)), width-indent)))
}

// Failure is something that went wrong, as the user should read it.
type Failure struct {
	// What says what went wrong.
	What string
	// Detail is what a provider or the system said about it, or empty.
	Detail string
	// Do are the ways on, the most promising first.
	Do []string
}

// ErrorBlock renders a failure and what can be done about it.
func ErrorBlock(t *Theme, f Failure, width int) []string {
	lines := bulleted(t.Error, t.Glyphs.Error, f.What, width)
	if strings.TrimSpace(f.Detail) != "" {
		lines = append(lines, indented(t.Dim, f.Detail, width)...)
	}
	for _, way := range f.Do {
		lines = append(lines, bulleted(Style{}, t.Glyphs.Arrow, way, width)...)
	}
	return lines
}

func indented(style Style, text string, width int) []string {
	width = max(width, 1)
	pad := strings.Repeat(" ", indentWidth(2, width))
	return hang(pad, pad, styleLines(style, Wrap(strings.TrimSpace(Sanitize(text)), width-len(pad))))
}
