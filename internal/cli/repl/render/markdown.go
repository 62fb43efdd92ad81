package render

import (
	"html"
	"strings"

	"charm.land/glamour/v2"
	"github.com/charmbracelet/x/ansi"

	gansi "charm.land/glamour/v2/ansi"
)

// Markdown renders Markdown for one theme and one width. It is not safe for
// concurrent use.
type Markdown struct {
	theme   *Theme
	width   int
	glamour *glamour.TermRenderer
	// inners are the renderers of what is indented, by width; depth counts
	// how often that was done.
	inners map[int]*Markdown
	depth  int
}

// NewMarkdown returns a renderer of lines of at most width cells.
func NewMarkdown(t *Theme, width int) *Markdown {
	return &Markdown{theme: t, width: max(width, 1)}
}

// Width returns the width that the renderer was made for, in cells.
func (m *Markdown) Width() int { return m.width }

// Theme returns the theme that the renderer was made for.
func (m *Markdown) Theme() *Theme { return m.theme }

// inner returns a renderer of narrower lines.
func (m *Markdown) inner(width int) *Markdown {
	width = max(width, 1)
	if m.inners[width] == nil {
		if m.inners == nil {
			m.inners = make(map[int]*Markdown)
		}
		m.inners[width] = &Markdown{theme: m.theme, width: width, depth: m.depth + 1}
	}
	return m.inners[width]
}

// Render returns the lines of a whole text. A [Stream] that was given the same
// text and closed has the same lines.
func (m *Markdown) Render(text string) []string {
	s := m.Stream()
	s.Write(text)
	s.Close()
	settled, _ := s.Lines()
	return settled
}

// text renders paragraphs and the tables among them.
func (m *Markdown) text(lines []string) []string {
	start := tableStart(lines)
	if start < 0 {
		return m.prose(strings.Join(lines, "\n"))
	}
	end := start + 2
	for end < len(lines) && strings.Contains(lines[end], "|") {
		end++
	}
	var out []string
	if start > 0 {
		out = append(m.prose(strings.Join(lines[:start], "\n")), "")
	}
	out = append(out, m.table(lines[start:end])...)
	if end < len(lines) {
		out = append(append(out, ""), m.text(lines[end:])...)
	}
	return out
}

// prose renders Markdown that is neither code nor list nor table.
func (m *Markdown) prose(source string) []string {
	if m.glamour == nil {
		m.glamour = m.theme.newGlamour(m.width)
	}
	var out string
	err := error(nil)
	if m.glamour != nil {
		out, err = m.glamour.Render(escapeTags(source))
	}
	if m.glamour == nil || err != nil {
		return Wrap(source, m.width)
	}
	var lines []string
	out = strings.ReplaceAll(out, ampersand, "&")
	if m.theme.Name == "dumb" {
		out = ansi.Strip(out) // Links are sequences too.
	}
	for line := range strings.SplitSeq(strings.Trim(out, "\n"), "\n") {
		lines = append(lines, fitStyled(trimRight(line), m.width)...)
	}
	return trimBlank(lines)
}

// newGlamour returns nil when glamour refuses the style, which only a mistake
// in it could make it do; text is then shown as it is.
func (t *Theme) newGlamour(width int) *glamour.TermRenderer {
	r, err := glamour.NewTermRenderer(
		glamour.WithStyles(t.markdownStyle()),
		glamour.WithWordWrap(width),
		glamour.WithPreservedNewLines(),
	)
	if err != nil {
		return nil
	}
	return r
}

func (t *Theme) markdownStyle() gansi.StyleConfig {
	p := t.palette
	styled := t.Name != "dumb"
	on := &styled
	if !styled {
		on = nil
	}
	colored := func(c string) gansi.StylePrimitive { return gansi.StylePrimitive{Color: optional(c)} }
	bold := colored("")
	bold.Bold = on
	heading := colored(p.accent)
	heading.Bold = on
	title := heading
	title.Underline = on
	italic := colored("")
	italic.Italic = on
	struck := colored("")
	struck.CrossedOut = on
	link := colored(p.accent)
	link.Underline = on
	code := gansi.StyleBlock{StylePrimitive: colored(p.code)}
	if p.code == "" {
		code.Prefix, code.Suffix = "`", "`"
	}
	return gansi.StyleConfig{
		Document:  gansi.StyleBlock{},
		Paragraph: gansi.StyleBlock{},
		Heading:   gansi.StyleBlock{StylePrimitive: heading},
		H1:        gansi.StyleBlock{StylePrimitive: title},
		Strong:    bold, Emph: italic, Strikethrough: struck,
		HorizontalRule: gansi.StylePrimitive{Color: optional(p.dim), Format: "\n" + strings.Repeat(t.Glyphs.Rule, 8) + "\n"},
		Link:           link, LinkText: colored(p.accent),
		Image: link, ImageText: gansi.StylePrimitive{Color: optional(p.dim), Format: "Image: {{.text}} " + t.Glyphs.Arrow},
		Code:                  code,
		CodeBlock:             gansi.StyleCodeBlock{StyleBlock: gansi.StyleBlock{StylePrimitive: colored(p.code)}},
		DefinitionTerm:        bold,
		DefinitionDescription: gansi.StylePrimitive{BlockPrefix: "\n" + t.Glyphs.Arrow + " "},
	}
}

func optional(c string) *string {
	if c == "" {
		return nil
	}
	return &c
}

// ampersand stands for & on the way through the Markdown library, which would
// decode character references, control characters among them, wherever it finds
// one. It is a character for private use that no font draws.
const ampersand = "\ue0ff"

// escapeTags keeps what looks like HTML visible: a model that writes <T> means
// it. Code spans and links in angle brackets stay as they are. Character
// references outside of code are decoded here, and nowhere else.
func escapeTags(source string) string {
	if !strings.ContainsAny(source, "<&") {
		return source
	}
	var b strings.Builder
	for i := 0; i < len(source); i++ {
		switch c := source[i]; c {
		case '\\':
			b.WriteByte(c)
			if i+1 < len(source) && source[i+1] != '&' {
				i++
				b.WriteByte(source[i])
			}
		case '`':
			n := codeSpanLength(source[i:])
			b.WriteString(strings.ReplaceAll(source[i:i+n], "&", ampersand))
			i += n - 1
		case '<':
			if !isAutoLink(source[i:]) {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case '&':
			text, n := decodeReference(source[i:])
			b.WriteString(text)
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// decodeReference returns what a character reference at the start of s stands
// for, escaped and harmless, and its length; without one, the ampersand.
func decodeReference(s string) (string, int) {
	const longest = 34
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		return ampersand, 1
	}
	text := html.UnescapeString(s[:end+1])
	if strings.HasSuffix(text, ";") && text != ";" {
		return ampersand, 1
	}
	text = strings.ReplaceAll(Sanitize(text), "\n", " ")
	if len(text) == 1 && strings.ContainsAny(text, "\\`*_{}[]()#+-.!<>|~\"'$%,/:;=?@^") {
		text = `\` + text
	}
	return strings.ReplaceAll(text, "&", ampersand), end + 1
}

// codeSpanLength returns the length of the code span at the start of s, or of
// its backticks alone when it does not end.
func codeSpanLength(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	for i := n; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		i += run
		if run == n {
			return i
		}
	}
	return n
}

func isAutoLink(s string) bool {
	for _, scheme := range []string{"<http://", "<https://", "<mailto:"} {
		if strings.HasPrefix(s, scheme) {
			return true
		}
	}
	return false
}

// trimRight cuts the spaces that fill a line with styles up, so that copying
// it from the screen yields the text alone.
func trimRight(line string) string {
	end, visible := 0, 0
	for i := 0; i < len(line); {
		if line[i] == escape {
			i += sequenceLength(line, i, 1, &visible)
			if end > 0 && strings.TrimLeft(line[end:i], " ") == line[end:i] {
				end = i // A style directly behind the text closes it.
			}
			continue
		}
		if line[i] != ' ' {
			end = i + 1
		}
		i++
	}
	kept := line[:end]
	if end < len(line) && strings.Contains(kept, "\x1b[") && !strings.HasSuffix(kept, "\x1b[m") && !strings.HasSuffix(kept, "\x1b[0m") {
		kept += "\x1b[m"
	}
	return kept
}

// trimBlank cuts blank lines at both ends.
func trimBlank(lines []string) []string {
	for len(lines) > 0 && Width(strings.TrimSpace(lines[0])) == 0 {
		lines = lines[1:]
	}
	for len(lines) > 0 && Width(strings.TrimSpace(lines[len(lines)-1])) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}
