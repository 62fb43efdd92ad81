package render

import (
	"fmt"
	"slices"
	"strings"
)

// PermissionChoice is an answer that the user may give to a request.
type PermissionChoice int

// The answers to a request.
const (
	// AllowOnce allows this call.
	AllowOnce PermissionChoice = iota
	// AllowSession allows calls like it until the session ends.
	AllowSession
	// AllowProject allows what the pattern matches, in this project, for good.
	AllowProject
	// Deny forbids it; the user may say what to do instead.
	Deny
)

// Permission is a request for permission as it is shown.
type Permission struct {
	// Tool is the tool's name, Action what it will do.
	Tool, Action string
	// Command is the command that would run.
	Command string
	// Paths are the files that would be touched.
	Paths []string
	// Reason says why it is asked about.
	Reason string
	// Pattern is what an answer for the project would allow, or empty.
	Pattern string
	// Diff is the change as a unified diff.
	Diff string
	// Dangerous says that the effect may be hard to undo: only this one call
	// can be allowed.
	Dangerous bool
	// Choice is the selected answer.
	Choice PermissionChoice
	// Message is what the user typed for the model, beside Deny.
	Message string
	// Waiting is how many requests come after this one.
	Waiting int
	// MaxLines bounds the lines of command and of diff that are shown each;
	// zero stands for [DefaultLines].
	MaxLines int
}

// Choices returns the answers that the request allows, in the order in which
// they are shown.
func (p Permission) Choices() []PermissionChoice {
	switch {
	case p.Dangerous:
		return []PermissionChoice{AllowOnce, Deny}
	case p.Pattern == "":
		return []PermissionChoice{AllowOnce, AllowSession, Deny}
	}
	return []PermissionChoice{AllowOnce, AllowSession, AllowProject, Deny}
}

// Move returns the answer that is n places after the selected one, or before it
// when n is negative, without going beyond either end.
func (p Permission) Move(n int) PermissionChoice {
	choices := p.Choices()
	i := max(slices.Index(choices, p.Choice), 0) + n
	return choices[min(max(i, 0), len(choices)-1)]
}

// PermissionCard renders a request: what will run, in full, why it is asked
// about, and the answers.
func PermissionCard(t *Theme, p Permission, width int) []string {
	width = max(width, 1)
	limit := p.MaxLines
	if limit <= 0 {
		limit = DefaultLines
	}
	frame := t.Warning
	if p.Dangerous {
		frame = t.Error
	}
	inner := width - indentWidth(2, width)
	lines := styleLines(t.Strong, Wrap(p.title(), inner))
	if p.Command != "" {
		lines = append(lines, commandLines(t, p.Command, limit, inner)...)
	}
	for i, path := range p.Paths {
		if i == limit {
			lines = append(lines, Truncate(t.Dim.Styled(t.Glyphs.Arrow+" "+plural(len(p.Paths)-i, "more file")), inner))
			break
		}
		lines = append(lines, styleLines(t.Code, HardWrap(Reveal(path), inner))...)
	}
	if p.Diff != "" {
		lines = append(lines, Diff(t, p.Diff, limit, inner)...)
	}
	if p.Reason != "" {
		lines = append(lines, styleLines(frame, Wrap("Asked because: "+OneLine(p.Reason), inner))...)
	}
	lines = append(lines, "")
	for _, choice := range p.Choices() {
		lines = append(lines, p.choiceLines(t, choice, inner)...)
	}
	lines = append(lines, Truncate(t.Dim.Styled(p.hint(t)), inner))
	if inner == width {
		return lines
	}
	bar := frame.Styled(t.Glyphs.Quote) + " "
	return hang(bar, bar, lines)
}

func (p Permission) title() string {
	action := OneLine(p.Action)
	if action == "" {
		action = "Use " + OneLine(p.Tool)
	}
	if p.Dangerous {
		action += " (hard to undo)"
	}
	return "Allow this? " + action
}

func (p Permission) hint(t *Theme) string {
	hint := t.Glyphs.Up + t.Glyphs.Down + " choose " + t.Glyphs.Separator + " enter confirm " + t.Glyphs.Separator + " esc deny"
	if p.Waiting > 0 {
		hint = fmt.Sprintf("%d more waiting %s %s", p.Waiting, t.Glyphs.Separator, hint)
	}
	return hint
}

func (p Permission) choiceLines(t *Theme, choice PermissionChoice, width int) []string {
	var text string
	switch choice {
	case AllowOnce:
		text = "Allow once"
	case AllowSession:
		text = "Allow for this session"
	case AllowProject:
		text = "Allow for this project: " + OneLine(Reveal(p.Pattern))
	case Deny:
		text = "Deny, and say what to do instead"
		if p.Message != "" {
			text = "Deny: " + Sanitize(p.Message)
		}
	}
	indent := indentWidth(2, width)
	pointer, style := "  ", Style{}
	if choice == p.Choice {
		pointer, style = t.Accent.Styled(t.Glyphs.Pointer)+" ", t.Strong
	}
	if indent == 0 {
		pointer = ""
		if choice == p.Choice {
			style = t.Selected
		}
	}
	return hang(pointer, strings.Repeat(" ", indent), styleLines(style, Wrap(text, width-indent)))
}
