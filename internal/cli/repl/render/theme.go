package render

import (
	"fmt"
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Style is how a piece of text looks. Its zero value changes nothing.
type Style = ansi.Style

// Theme is the look of the program. A theme is immutable and may be shared.
type Theme struct {
	// Name is the name by which [SelectTheme] knows it.
	Name string
	// Glyphs are the signs that the theme uses.
	Glyphs Glyphs

	// Text is ordinary text, Dim what stands behind it, Strong what stands
	// out, Accent what belongs to Keen itself.
	Text, Dim, Strong, Accent Style
	// User is what the user said, Reasoning what the model thought.
	User, Reasoning Style
	// Success, Warning and Error say how something went.
	Success, Warning, Error Style
	// Selected is the chosen entry of a list, Match what a search found in
	// an entry.
	Selected, Match Style
	// Border is for rules and frames, Code for commands and file names.
	Border, Code Style
	// Added and Removed are lines of a diff, Hunk its headings.
	Added, Removed, Hunk Style

	palette palette
}

// Glyphs are the signs of a theme, one cell wide each but for Tip.
type Glyphs struct {
	Success, Error, Refused, Bullet, Prompt, Pointer, Arrow, Separator, Rule, Column, Cross, Bar, BarFree, Quote, More string
	Up, Down                                                                                                           string
	// Frames are the pictures of a spinner, in order.
	Frames []string
}

// palette are the colours of a theme as strings, empty for the terminal's own.
type palette struct {
	accent, dim, success, warning, failure, user, code      string
	keyword, name, kind, literal, number, comment, operator string
}

func unicodeGlyphs() Glyphs {
	return Glyphs{
		Success: "✓", Error: "✗", Refused: "⊘", Bullet: "•", Prompt: "❯", Pointer: "❯", Arrow: "→", Separator: "·",
		Rule: "─", Column: "│", Cross: "┼", Bar: "█", BarFree: "░", Quote: "│", More: "…", Up: "↑", Down: "↓",
		Frames: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
	}
}

func asciiGlyphs() Glyphs {
	return Glyphs{
		Success: "+", Error: "x", Refused: "o", Bullet: "*", Prompt: ">", Pointer: ">", Arrow: ">", Separator: "|",
		Rule: "-", Column: "|", Cross: "+", Bar: "#", BarFree: ".", Quote: "|", More: "~", Up: "^", Down: "v",
		Frames: []string{"|", "/", "-", `\`},
	}
}

// Dark returns the theme for dark backgrounds.
func Dark() *Theme {
	return newTheme("dark", palette{
		accent: "#7AB8FF", dim: "#8A8F98", success: "#7FD88F", warning: "#E5C07B", failure: "#FF7B72", user: "#C8D3E0", code: "#9CDCFE",
		keyword: "#C792EA", name: "#82AAFF", kind: "#FFCB6B", literal: "#A5D6A7", number: "#F78C6C", comment: "#8A8F98", operator: "#89DDFF",
	})
}

// Light returns the theme for light backgrounds.
func Light() *Theme {
	return newTheme("light", palette{
		accent: "#0B5CAD", dim: "#6A6F78", success: "#1A7F37", warning: "#8A5A00", failure: "#B42318", user: "#24415F", code: "#0550AE",
		keyword: "#7A2FB5", name: "#0550AE", kind: "#8A5A00", literal: "#116329", number: "#A0430A", comment: "#6A6F78", operator: "#24415F",
	})
}

// NoColor returns the theme that uses weight instead of colour.
func NoColor() *Theme {
	t := newTheme("no-color", palette{})
	t.Dim, t.Reasoning, t.Border = ansi.NewStyle().Faint(), ansi.NewStyle().Faint(), ansi.NewStyle().Faint()
	t.Accent, t.Warning, t.Error = t.Strong, t.Strong, t.Strong
	t.Match = ansi.NewStyle().Underline(true)
	return t
}

// Dumb returns the theme for terminals that know no escape sequences at all.
// It uses ASCII signs only.
func Dumb() *Theme { return &Theme{Name: "dumb", Glyphs: asciiGlyphs()} }

func newTheme(name string, p palette) *Theme {
	fg := func(c string) Style { return foreground(ansi.NewStyle(), c) }
	return &Theme{
		Name: name, Glyphs: unicodeGlyphs(), palette: p,
		Dim: fg(p.dim), Strong: ansi.NewStyle().Bold(), Accent: fg(p.accent),
		User: fg(p.user), Reasoning: foreground(ansi.NewStyle().Italic(true), p.dim),
		Success: fg(p.success), Warning: fg(p.warning), Error: fg(p.failure),
		Selected: ansi.NewStyle().Reverse(true), Match: foreground(ansi.NewStyle().Bold(), p.accent),
		Border: fg(p.dim), Code: fg(p.code),
		Added: fg(p.success), Removed: fg(p.failure), Hunk: fg(p.accent),
	}
}

func foreground(s Style, c string) Style {
	if c == "" {
		return s
	}
	return s.ForegroundColor(themeColor(c))
}

func themeColor(c string) color.Color { return lipgloss.Color(c) }

// Background says what a terminal draws on.
type Background int

// The backgrounds. Where nothing is known, dark is the better guess.
const (
	BackgroundDark Background = iota
	BackgroundLight
)

// ThemeOptions says what is known when a theme is selected.
type ThemeOptions struct {
	// Name is the user's setting: "auto" or empty, "dark", "light",
	// "no-color".
	Name string
	// NoColor is the value of the variable NO_COLOR; any but the empty one
	// asks for no colour.
	NoColor string
	// Term is the value of the variable TERM.
	Term string
	// Background is what the terminal said about itself.
	Background Background
}

// SelectTheme returns the theme for a terminal. A dumb terminal and NO_COLOR
// win over the setting, the setting over the background.
func SelectTheme(o ThemeOptions) (*Theme, error) {
	var theme *Theme
	switch {
	case o.Name == "dark", (o.Name == "" || o.Name == "auto") && o.Background == BackgroundDark:
		theme = Dark()
	case o.Name == "light", o.Name == "" || o.Name == "auto":
		theme = Light()
	case o.Name == "no-color":
		theme = NoColor()
	default:
		return nil, fmt.Errorf("unknown theme %q; choose auto, dark, light or no-color", OneLine(o.Name))
	}
	switch {
	case o.Term == "dumb":
		return Dumb(), nil
	case o.NoColor != "":
		return NoColor(), nil
	}
	return theme, nil
}
