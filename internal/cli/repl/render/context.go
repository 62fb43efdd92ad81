package render

import (
	"fmt"
	"strings"
)

// ContextUse says what fills the context, in tokens.
type ContextUse struct {
	// System, Tools, User, Assistant and ToolResults are the parts of the next
	// request.
	System, Tools, User, Assistant, ToolResults int
	// Budget is how large a request may be, Window the model's whole window;
	// zero when unknown.
	Budget, Window int
	// Threshold is where automatic compaction begins; zero when it never
	// does.
	Threshold int
}

// Total returns the size of the next request, in tokens.
func (c ContextUse) Total() int {
	return c.System + c.Tools + c.User + c.Assistant + c.ToolResults
}

// contextPart is one part of a context with its look.
type contextPart struct {
	name   string
	tokens int
	style  Style
	letter string
}

func (c ContextUse) parts(t *Theme) []contextPart {
	return []contextPart{
		{"System prompt", c.System, t.Accent, "s"},
		{"Tool definitions", c.Tools, t.Hunk, "t"},
		{"Your messages", c.User, t.Success, "u"},
		{"Answers", c.Assistant, t.Warning, "a"},
		{"Tool results", c.ToolResults, t.Error, "r"},
	}
}

// ContextBar renders what fills the context: a bar and a table with the parts,
// what is free, and where automatic compaction begins.
func ContextBar(t *Theme, c ContextUse, width int) []string {
	width = max(width, 1)
	lines := []string{Truncate(t.Strong.Styled("Context")+"  "+c.headline(), width)}
	if c.Budget > 0 {
		lines = append(lines, c.bar(t, min(width, 60)))
	}
	whole := c.Budget
	if whole <= 0 {
		whole = c.Total()
	}
	for _, p := range c.parts(t) {
		lines = append(lines, contextRow(t, p.style.Styled(p.sign(t)), p.name, p.tokens, whole, width))
	}
	if c.Budget > 0 {
		lines = append(lines, contextRow(t, t.Dim.Styled(t.Glyphs.BarFree), "Free", max(c.Budget-c.Total(), 0), whole, width))
	}
	switch {
	case c.Threshold > 0 && c.Budget > 0:
		lines = append(lines, contextRow(t, t.Strong.Styled("|"), "Compaction from", c.Threshold, whole, width))
	case c.Threshold > 0:
		lines = append(lines, Truncate("| Compaction from "+Tokens(c.Threshold), width))
	}
	if c.Window > 0 && c.Budget > 0 && c.Window > c.Budget {
		lines = append(lines, styleLines(t.Dim, Wrap(fmt.Sprintf("The window has %s tokens; %s of them are kept for the answer and for safety.", Tokens(c.Window), Tokens(c.Window-c.Budget)), width))...)
	}
	return lines
}

func (c ContextUse) headline() string {
	if c.Budget <= 0 {
		return fmt.Sprintf("about %s tokens, budget %s", Tokens(c.Total()), Unknown)
	}
	return fmt.Sprintf("about %s of %s tokens (%s)", Tokens(c.Total()), Tokens(c.Budget), Percent(c.Total(), c.Budget))
}

func (p contextPart) sign(t *Theme) string {
	if t.palette.accent == "" {
		return p.letter
	}
	return t.Glyphs.Bar
}

// bar draws the parts to scale. A part that is there at all gets a cell as
// long as there is room; the threshold is a line through the bar.
func (c ContextUse) bar(t *Theme, width int) string {
	scale := max(c.Budget, c.Total())
	var cells []string
	sum := 0
	for _, p := range c.parts(t) {
		sum += p.tokens
		end := int(int64(sum) * int64(width) / int64(scale))
		if p.tokens > 0 && end == len(cells) {
			end++
		}
		for len(cells) < min(end, width) {
			cells = append(cells, p.style.Styled(p.sign(t)))
		}
	}
	for len(cells) < width {
		cells = append(cells, t.Dim.Styled(t.Glyphs.BarFree))
	}
	if c.Threshold > 0 && c.Threshold <= scale {
		cells[min(int(int64(c.Threshold)*int64(width)/int64(scale)), width-1)] = t.Strong.Styled("|")
	}
	return strings.Join(cells, "")
}

func contextRow(t *Theme, sign, name string, tokens, whole, width int) string {
	const nameWidth, tokensWidth = 18, 7
	row := sign + " " + Pad(name, nameWidth) + padLeft(Tokens(tokens), tokensWidth)
	if whole > 0 {
		row += t.Dim.Styled(padLeft(Percent(tokens, whole), 8))
	}
	return Truncate(row, width)
}
