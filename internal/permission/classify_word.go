package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"keen/internal/filesystem"
)

// arg is a word as the command will see it, as far as that is known.
type arg struct {
	// text is the word without quotes, up to where something follows that is
	// only known when the command runs.
	text string
	// dynamic says that something follows.
	dynamic bool
	// environment says that it comes from a variable the script never set.
	environment bool
	// looked says that the whole word is a variable or a substitution whose
	// content was looked at elsewhere.
	looked bool
	// download says that it holds what was fetched from elsewhere.
	download bool
	// pattern says that the shell expands text to file names.
	pattern bool
}

// arg reads a word, the commands within it included.
func (c *classifier) arg(w *syntax.Word) arg {
	c.substitutions(w)
	var a arg
	for _, part := range w.Parts {
		c.part(&a, part, len(w.Parts) == 1)
	}
	return a
}

// add appends text, unless something unknown stands before it.
func (a *arg) add(text string) {
	if !a.dynamic {
		a.text += text
	}
}

// part adds a part of a word to a. whole says that the word has no other.
func (c *classifier) part(a *arg, part syntax.WordPart, whole bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		text, pattern := unescape(p.Value)
		a.add(text)
		a.pattern = a.pattern || pattern
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			a.dynamic = true
			return
		}
		a.add(p.Value)
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				a.add(unquote(lit.Value))
				continue
			}
			c.part(a, inner, whole && len(p.Parts) == 1)
		}
	case *syntax.ParamExp:
		c.parameter(a, p, whole)
	case *syntax.ArithmExp:
		a.add("0")
	case *syntax.ProcSubst:
		a.looked, a.dynamic = whole, !whole
		a.download = a.download || downloads(&syntax.Stmt{Cmd: &syntax.Block{Stmts: p.Stmts}})
	case *syntax.CmdSubst:
		a.dynamic = true
		a.download = a.download || downloads(&syntax.Stmt{Cmd: &syntax.Block{Stmts: p.Stmts}})
	default:
		a.dynamic, a.pattern = true, true
	}
}

// numberParameters expand to numbers.
var numberParameters = []string{"?", "#", "$", "!", "PIPESTATUS", "RANDOM", "LINENO", "SECONDS", "BASHPID", "UID", "EUID"}

func (c *classifier) parameter(a *arg, p *syntax.ParamExp, whole bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	plain := p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Excl && p.Names == 0
	switch {
	case slices.Contains(numberParameters, name) && !p.Excl && p.Exp == nil && p.Repl == nil, p.Length:
		a.add("0")
	case !plain:
		a.dynamic = true
	case name == "PWD" && !c.moves && !c.assigned[name]:
		a.add(c.guard.Dir())
	case name == "HOME" && c.guard.Home() != "" && !c.assigned[name]:
		a.add(c.guard.Home())
	case c.clean[name]:
		a.dynamic, a.looked = !whole, whole
	case c.assigned[name]:
		a.dynamic = true
	default:
		a.dynamic, a.environment = true, true
	}
}

// unescape takes the backslashes off unquoted text and reports whether the
// shell will expand the rest to file names.
func unescape(s string) (text string, pattern bool) {
	var b strings.Builder
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
			continue
		case strings.ContainsRune("*?[{", r):
			pattern = true
		}
		b.WriteRune(r)
	}
	return b.String(), pattern
}

// unquote takes off the backslashes that mean something within double quotes.
func unquote(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", `\"`, `"`).Replace(s)
}

// argument looks at a word that may name a file, in one of the ways in which
// options and operands do.
func (c *classifier) argument(a arg, access filesystem.Access) {
	if a.looked {
		return
	}
	if a.dynamic {
		c.dynamicFile(a, access)
		a.dynamic = false
	}
	for _, text := range candidates(a.text) {
		inner := a
		inner.text = text
		c.file(inner, access)
	}
}

// candidates returns the file names that a word may hold.
func candidates(text string) []string {
	var names []string
	if _, value, ok := strings.Cut(text, "="); ok && value != "" {
		names = append(names, value)
	}
	switch {
	case !strings.HasPrefix(text, "-"):
		names = append(names, text)
	case len(text) > 2 && text[1] != '-':
		names = append(names, text[2:])
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || strings.Contains(n, "://") })
}

// file looks at a word that names a file.
func (c *classifier) file(a arg, access filesystem.Access) {
	if a.looked {
		if access == filesystem.AccessWrite {
			c.ask("writes to a file whose name a variable holds")
		}
		return
	}
	if a.dynamic {
		c.dynamicFile(a, access)
	}
	if a.text == "" {
		return
	}
	if c.lost && !filepath.IsAbs(a.text) {
		c.ask("changes directory in a way that cannot be followed")
	}
	for _, dir := range c.dirs {
		c.path(dir, a.text, access)
		if a.pattern {
			c.expand(dir, a.text, access)
		}
	}
}

func (c *classifier) dynamicFile(a arg, access filesystem.Access) {
	reason := "names a file in a way that only shows when it runs"
	c.ask(reason)
	if access == filesystem.AccessWrite && a.environment {
		c.add(severityOutside, reason)
	}
}

func (c *classifier) path(dir, text string, access filesystem.Access) {
	if strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/") {
		// Somebody else's home, or a file of that name: rare enough.
		c.add(severityOutside, "uses "+text)
		c.loose = true
		return
	}
	d, err := c.guard.CheckFrom(dir, text, access)
	if err != nil {
		c.ask("uses a path that cannot be resolved")
		return
	}
	c.decide(d)
}

// expand looks at the files that a pattern matches now: one of them may be a
// link that leads elsewhere.
func (c *classifier) expand(dir, text string, access filesystem.Access) {
	if bracesSpan(text) {
		c.ask("uses a brace pattern over several directories")
	}
	for _, sign := range []string{"{/", ",/", "{~", ",~", "{.", ",.", ".}", ".,"} {
		if strings.Contains(text, sign) {
			c.add(severityOutside, "uses a brace pattern that may lead out of the working directory")
			c.loose = true
			return
		}
	}
	matches, complete := expandPattern(dir, text)
	if !complete {
		c.ask("uses a file name pattern that matches too much to look at")
		return
	}
	for _, m := range matches {
		c.path(dir, m, access)
	}
}

// bracesSpan reports whether a slash stands within braces.
func bracesSpan(text string) bool {
	depth := 0
	for _, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth = max(depth-1, 0)
		case '/':
			if depth > 0 {
				return true
			}
		}
	}
	return false
}
