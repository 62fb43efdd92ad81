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
	// Waiting is how many cards come after this one.
	Waiting int
	// Keys says whether the card has the keys.
	Keys CardKeys
	// Height is how many lines the card may have; zero or less means as many
	// as it takes.
	Height int
	// Offset is the first line of its body that is shown.
	Offset int
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

// maxBody bounds the lines of each part of a card's body. Nobody reads more of
// a change before it is made.
const maxBody = 1000

// PermissionBody renders what a request is about: the command, the files, the
// change, each in full. It goes into [PermissionCard] with the same width.
func PermissionBody(t *Theme, p Permission, width int) []string {
	_, inner := cardWidths(width)
	var lines []string
	if p.Command != "" {
		lines = append(lines, commandLines(t, p.Command, maxBody, inner)...)
	}
	for i, path := range p.Paths {
		if i == maxBody {
			lines = append(lines, Truncate(t.Dim.Styled(t.Glyphs.Arrow+" "+plural(len(p.Paths)-i, "more file")), inner))
			break
		}
		lines = append(lines, styleLines(t.Code, CodeWrap(Reveal(path), inner))...)
	}
	if p.Diff != "" {
		lines = append(lines, Diff(t, p.Diff, maxBody, inner)...)
	}
	return lines
}

// PermissionCard renders a request: what will run, why it is asked about, and
// the answers. Of a body that is too long for the card a part is shown, from
// the offset on; page is how many lines that are.
func PermissionCard(t *Theme, p Permission, body []string, width int) (lines []string, page int) {
	width, inner := cardWidths(width)
	frame := p.frame(t)
	head, foot := styleLines(t.Strong, Wrap(p.title(), inner)), p.footLines(t, inner)
	body, page = p.window(t, body, len(head)+len(foot), inner)
	lines = append(append(head, body...), foot...)
	if p.Height > 0 {
		lines = lines[max(len(lines)-p.Height, 0):]
	}
	if inner == width {
		return lines, page
	}
	bar := frame.Styled(t.Glyphs.Quote) + " "
	return hang(bar, bar, lines), page
}

// cardWidths returns the width of a card and that of what is in its frame.
func cardWidths(width int) (outer, inner int) {
	width = max(width, 1)
	return width, width - indentWidth(2, width)
}

// frame returns the colour of the card: it stands out when it has the keys.
func (p Permission) frame(t *Theme) Style {
	switch {
	case !p.Keys.Focused():
		return t.Border
	case p.Dangerous:
		return t.Error
	}
	return t.Warning
}

// window cuts the body to what there is room for beside some other lines, and
// says where in it that is.
func (p Permission) window(t *Theme, body []string, others, width int) (lines []string, page int) {
	room := p.Height - others
	if p.Height <= 0 || len(body) <= room {
		return body, len(body)
	}
	page = max(room-1, 0)
	from := min(max(p.Offset, 0), len(body)-page)
	place := fmt.Sprintf("%s lines %d to %d of %d %s pgup pgdown", t.Glyphs.Arrow, from+1, from+page, len(body), t.Glyphs.Separator)
	if room <= 0 {
		return nil, page
	}
	return append(append(lines, body[from:from+page]...), Truncate(t.Dim.Styled(place), width)), page
}

// footLines renders what is below the body: why it is asked about, the answers
// and the keys. In a low card there is less of it, so that the body is seen.
func (p Permission) footLines(t *Theme, width int) []string {
	const low, veryLow = 14, 9
	var lines []string
	if p.Reason != "" {
		why := Wrap("Asked because: "+OneLine(p.Reason), width)
		if p.Height > 0 && p.Height < low && len(why) > 1 {
			why = []string{Truncate("Asked because: "+OneLine(p.Reason), width)}
		}
		lines = styleLines(p.frame(t), why)
	}
	if p.Height <= 0 || p.Height >= low {
		lines = append(lines, "")
	}
	for _, choice := range p.Choices() {
		if choice == p.Choice || p.Height <= 0 || p.Height >= veryLow {
			lines = append(lines, p.choiceLines(t, choice, width)...)
		}
	}
	hint := CardHint{Keys: p.Keys, Move: t.Glyphs.Up + t.Glyphs.Down + " choose", Enter: "enter confirm", Esc: "esc deny", Waiting: p.Waiting}
	return append(lines, hint.Line(t, width))
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

// messageLines is how many lines of the message are shown, the last ones.
const messageLines = 3

func (p Permission) choiceLines(t *Theme, choice PermissionChoice, width int) []string {
	selected := choice == p.Choice && p.Keys.Focused()
	indent := indentWidth(2, width)
	lines := Wrap(p.choiceText(choice), width-indent)
	if choice == Deny {
		lines = lines[max(len(lines)-messageLines, 0):]
	}
	pointer, style := "  ", Style{}
	if selected {
		pointer, style = t.Accent.Styled(t.Glyphs.Pointer)+" ", t.Strong
	}
	if indent == 0 {
		pointer = ""
		if selected {
			style = t.Selected
		}
	}
	lines = styleLines(style, lines)
	// Where text goes to the message there is a cursor behind it.
	if last := len(lines) - 1; selected && choice == Deny && Width(lines[last]) < width-indent {
		lines[last] += t.Selected.Styled(" ")
	}
	return hang(pointer, strings.Repeat(" ", indent), lines)
}

func (p Permission) choiceText(choice PermissionChoice) string {
	switch choice {
	case AllowSession:
		return "Allow for this session"
	case AllowProject:
		return "Allow for this project: " + OneLine(Reveal(p.Pattern))
	case Deny:
		if p.Message != "" {
			return "Deny: " + Sanitize(p.Message)
		}
		return "Deny, and say what to do instead"
	}
	return "Allow once"
}
