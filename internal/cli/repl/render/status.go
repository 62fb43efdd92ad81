package render

import (
	"fmt"
	"strings"
	"time"
)

// Status is what the lines at the bottom of the screen say. A nil figure is
// unknown and shown as such, never as zero.
type Status struct {
	// Model is provider and model, such as "anthropic/claude".
	Model string
	// Dir is the working directory, Home the user's.
	Dir, Home string
	// Branch is the git branch, or empty.
	Branch string
	// Mode is the mode of work, or empty.
	Mode string
	// Thinking is the effort of thinking, or empty.
	Thinking string
	// Context is the size of the last request.
	Context *ContextFigure
	// Tokens are those of the whole session.
	Tokens *TokenFigure
	// Cost is what the session cost, in US dollars.
	Cost *float64
}

// ContextFigure is how much of the context is in use, in tokens. Budget is zero
// when it is unknown.
type ContextFigure struct{ Used, Budget int }

// TokenFigure counts the tokens that went to and came from models.
type TokenFigure struct{ In, Out int }

// The parts of the budget from which on the context is shown as a warning and
// as nearly full, in percent.
const (
	contextWarning = 70
	contextFull    = 90
)

// StatusLines renders the two lines of status. What does not fit is left out,
// the least important first; there are always two lines, so that nothing moves.
func StatusLines(t *Theme, s Status, width int) []string {
	width = max(width, 1)
	place := []part{
		{text: t.Accent.Styled(orUnknown(s.Model)), rank: 0},
		{text: t.Dim.Styled(Path(OneLine(s.Dir), s.Home)), rank: 1},
	}
	if s.Branch != "" {
		place = append(place, part{text: t.Dim.Styled(OneLine(s.Branch)), rank: 2})
	}
	if s.Mode != "" {
		place = append(place, part{text: t.Warning.Styled(OneLine(s.Mode)), rank: 0})
	}
	figures := []part{{text: s.context(t), rank: 0}, {text: t.Dim.Styled(s.tokens(t)), rank: 2}, {text: t.Dim.Styled(s.cost()), rank: 1}}
	if s.Thinking != "" {
		figures = append(figures, part{text: t.Dim.Styled("thinking " + OneLine(s.Thinking)), rank: 3})
	}
	return []string{joinParts(t, place, width), joinParts(t, figures, width)}
}

func orUnknown(s string) string {
	if s = OneLine(s); s == "" {
		return Unknown
	}
	return s
}

func (s Status) context(t *Theme) string {
	if s.Context == nil {
		return t.Dim.Styled("context " + Unknown)
	}
	used, budget := s.Context.Used, s.Context.Budget
	if budget <= 0 {
		return t.Dim.Styled("context " + Tokens(used) + " of " + Unknown)
	}
	text := fmt.Sprintf("context %s of %s (%s)", Tokens(used), Tokens(budget), Percent(used, budget))
	switch percent := int64(used) * 100 / int64(budget); {
	case percent >= contextFull:
		return t.Error.Styled(text)
	case percent >= contextWarning:
		return t.Warning.Styled(text)
	}
	return t.Dim.Styled(text)
}

func (s Status) tokens(t *Theme) string {
	if s.Tokens == nil {
		return "tokens " + Unknown
	}
	return fmt.Sprintf("%s%s %s%s", Tokens(s.Tokens.In), t.Glyphs.Up, Tokens(s.Tokens.Out), t.Glyphs.Down)
}

func (s Status) cost() string {
	if s.Cost == nil {
		return "cost " + Unknown
	}
	return Cost(*s.Cost)
}

// part is a piece of a line. Pieces of a higher rank are left out first.
type part struct {
	text string
	rank int
}

func joinParts(t *Theme, parts []part, width int) string {
	separator := t.Dim.Styled(" " + t.Glyphs.Separator + " ")
	for rank := 4; ; rank-- {
		var texts []string
		for _, p := range parts {
			if p.rank <= rank {
				texts = append(texts, p.text)
			}
		}
		line := strings.Join(texts, separator)
		if Width(line) <= width || rank == 0 {
			return Truncate(line, width)
		}
	}
}

// Loader is the line that says what goes on.
type Loader struct {
	// Frame is the picture of the spinner.
	Frame string
	// Text says what goes on, such as "Compacting...".
	Text string
	// Elapsed is how long it has been going on.
	Elapsed time.Duration
	// Hint says how to stop it, such as "esc to interrupt".
	Hint string
	// Notification is a note beside it, or empty.
	Notification string
}

// LoaderLine renders the loader. The notification stays when there is little
// room.
func LoaderLine(t *Theme, l Loader, width int) string {
	width = max(width, 1)
	head := part{text: t.Accent.Styled(l.Frame + " " + OneLine(l.Text)), rank: 0}
	if l.Frame == "" {
		head.text = t.Accent.Styled(OneLine(l.Text))
	}
	parts := []part{head, {text: t.Dim.Styled(Elapsed(l.Elapsed)), rank: 2}}
	if l.Hint != "" {
		parts = append(parts, part{text: t.Dim.Styled(OneLine(l.Hint)), rank: 3})
	}
	if l.Notification != "" {
		parts = append(parts, part{text: t.Strong.Styled(OneLine(l.Notification)), rank: 1})
	}
	return joinParts(t, parts, width)
}

// Notification renders a note that is shown for a moment by itself.
func Notification(t *Theme, text string, width int) string {
	return Truncate(t.Strong.Styled(OneLine(text)), max(width, 1))
}

// QueueBand renders the prompts that wait for their turn, one line each. The
// one at index selected is marked; -1 marks none.
func QueueBand(t *Theme, prompts []string, selected, width int) []string {
	if len(prompts) == 0 {
		return nil
	}
	width = max(width, 1)
	lines := []string{Truncate(t.Dim.Styled(fmt.Sprintf("Queue %s %d waiting", t.Glyphs.Separator, len(prompts))), width)}
	for i, prompt := range prompts {
		text := firstLine(prompt)
		if more := strings.Count(strings.TrimSpace(prompt), "\n"); more > 0 {
			text += t.Dim.Styled(" " + t.Glyphs.More + " " + plural(more, "more line"))
		}
		pointer, style := "  ", t.User
		if i == selected {
			pointer, style = t.Accent.Styled(t.Glyphs.Pointer)+" ", t.Strong
		}
		lines = append(lines, Truncate(pointer+style.Styled(text), width))
	}
	return lines
}
