package render

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/charmbracelet/x/ansi"
)

// highlighter colours the lines of one piece of code.
type highlighter struct {
	theme *Theme
	lexer chroma.Lexer // nil shows plain text
}

// newHighlighter returns a highlighter for a language as it stands behind the
// opening fence of a code block. Unknown languages stay plain.
func newHighlighter(t *Theme, language string) highlighter {
	name, _, _ := strings.Cut(strings.TrimSpace(language), " ")
	name = strings.ToLower(strings.Trim(name, "{}."))
	if name == "" || t.palette.keyword == "" {
		return highlighter{theme: t}
	}
	lexer := lexers.Get(name)
	if lexer == nil {
		return highlighter{theme: t}
	}
	return highlighter{theme: t, lexer: chroma.Coalesce(lexer)}
}

// lines returns the given lines of code with colours. Each closes its styles.
func (h highlighter) lines(code []string) []string {
	if h.lexer == nil || len(code) == 0 {
		return code
	}
	tokens, err := h.lexer.Tokenise(nil, strings.Join(code, "\n")+"\n")
	if err != nil {
		return code
	}
	colored := make([]string, 0, len(code))
	var line strings.Builder
	for token := tokens(); token != chroma.EOF; token = tokens() {
		style := h.theme.token(token.Type)
		for text := range strings.SplitAfterSeq(token.Value, "\n") {
			text, ended := strings.CutSuffix(text, "\n")
			if text != "" {
				line.WriteString(style.Styled(text))
			}
			if ended {
				colored = append(colored, line.String())
				line.Reset()
			}
		}
	}
	// A lexer that loses lines must not lose text.
	if len(colored) < len(code) {
		return code
	}
	return colored[:len(code)]
}

// token returns the style of a kind of token.
func (t *Theme) token(kind chroma.TokenType) Style {
	p := t.palette
	var c string
	switch {
	case kind.InCategory(chroma.Comment):
		c = p.comment
	case kind == chroma.KeywordType, kind == chroma.NameClass, kind == chroma.NameBuiltin:
		c = p.kind
	case kind.InCategory(chroma.Keyword), kind == chroma.OperatorWord, kind == chroma.NameTag:
		c = p.keyword
	case kind == chroma.NameFunction, kind == chroma.NameFunctionMagic, kind == chroma.NameDecorator, kind == chroma.NameAttribute:
		c = p.name
	case kind.InSubCategory(chroma.LiteralString):
		c = p.literal
	case kind.InSubCategory(chroma.LiteralNumber), kind == chroma.NameConstant, kind == chroma.KeywordConstant:
		c = p.number
	case kind.InCategory(chroma.Operator):
		c = p.operator
	case kind == chroma.GenericInserted:
		c = p.success
	case kind == chroma.GenericDeleted, kind == chroma.GenericError:
		c = p.failure
	case kind == chroma.GenericHeading, kind == chroma.GenericSubheading:
		c = p.accent
	}
	return foreground(ansi.NewStyle(), c)
}
