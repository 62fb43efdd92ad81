package render

import "strings"

// Welcome is what the start screen says.
type Welcome struct {
	// Version is Keen's version.
	Version string
	// Dir is the working directory, Home the user's.
	Dir, Home string
	// Model is provider and model, empty when none is set up.
	Model string
	// Last is the latest session of this directory as one short text, or
	// empty.
	Last string
	// Notices are things that the user should know, such as a new version.
	Notices []string
	// Tips are short pieces of advice.
	Tips []string
}

// WelcomeScreen renders the start screen.
func WelcomeScreen(t *Theme, w Welcome, width int) []string {
	width = max(width, 1)
	title := t.Accent.Styled(t.Glyphs.Prompt) + " " + t.Strong.Styled("Keen")
	if w.Version != "" {
		title += " " + t.Dim.Styled(OneLine(w.Version))
	}
	model := OneLine(w.Model)
	if model == "" {
		model = "none yet; /login sets one up"
	}
	lines := []string{Truncate(title, width), ""}
	rows := [][2]string{{"directory", Path(OneLine(w.Dir), w.Home)}, {"model", model}}
	if w.Last != "" {
		rows = append(rows, [2]string{"last session", OneLine(w.Last)})
	}
	for _, row := range rows {
		lines = append(lines, Truncate(t.Dim.Styled(Pad(row[0], len("last session")))+"  "+row[1], width))
	}
	if len(w.Notices)+len(w.Tips) > 0 {
		lines = append(lines, "")
	}
	for _, notice := range w.Notices {
		lines = append(lines, Warning(t, notice, width)...)
	}
	for _, tip := range w.Tips {
		lines = append(lines, Notice(t, tip, width)...)
	}
	return lines
}

// Rule renders a line across the screen with an optional label in it.
func Rule(t *Theme, label string, width int) string {
	width = max(width, 1)
	label = OneLine(label)
	if label == "" || width < Width(label)+6 {
		return t.Border.Styled(strings.Repeat(t.Glyphs.Rule, width))
	}
	head := strings.Repeat(t.Glyphs.Rule, 2)
	tail := strings.Repeat(t.Glyphs.Rule, width-Width(label)-4)
	return t.Border.Styled(head) + " " + t.Dim.Styled(label) + " " + t.Border.Styled(tail)
}
