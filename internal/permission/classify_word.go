package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
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
	// splits says that the shell may make no word or several ones of it.
	splits bool
}

// args reads the words of a command.
func (c *classifier) args(words []*syntax.Word) []arg {
	args := make([]arg, 0, len(words))
	for _, w := range c.braces(words) {
		if p, ok := onlyPart(w).(*syntax.ParamExp); ok && plainParameter(p) && p.Index == nil {
			if texts, ok := c.spelled(p.Param.Value); ok && len(texts) == 1 {
				// Without quotes, its value is split into words.
				for _, word := range strings.Fields(texts[0]) {
					args = append(args, arg{text: word, pattern: globs(word)})
				}
				continue
			}
		}
		args = append(args, c.arg(w))
	}
	return args
}

// maxBraces bounds the words that braces stand for.
const maxBraces = 1000

// braces replaces words with braces, such as {a,b}, by what they stand for.
func (c *classifier) braces(words []*syntax.Word) []*syntax.Word {
	var all []*syntax.Word
	for _, w := range words {
		split := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if !syntax.SplitBraces(split) {
			all = append(all, w)
			continue
		}
		for expanded, err := range expand.BracesSeq(nil, split) {
			if err != nil || len(all) > maxBraces {
				c.unclear("uses braces that stand for too many words")
				return words
			}
			all = append(all, expanded)
		}
	}
	return all
}

func onlyPart(w *syntax.Word) syntax.WordPart {
	if len(w.Parts) == 1 {
		return w.Parts[0]
	}
	return nil
}

// arg reads a word, the commands within it included.
func (c *classifier) arg(w *syntax.Word) arg {
	c.substitutions(w)
	return c.plain(w)
}

// plain reads a word without the commands within it.
func (c *classifier) plain(w *syntax.Word) arg {
	var a arg
	for _, part := range w.Parts {
		c.part(&a, part, place{whole: len(w.Parts) == 1})
	}
	return a
}

// place says where a part of a word stands.
type place struct {
	// whole says that the word has no other part, quoted that it is in
	// double quotes.
	whole, quoted bool
}

// add appends text, unless something unknown stands before it.
func (a *arg) add(text string) {
	if !a.dynamic {
		a.text += text
	}
}

// part adds a part of a word to a.
func (c *classifier) part(a *arg, part syntax.WordPart, at place) {
	switch p := part.(type) {
	case *syntax.Lit:
		if at.quoted {
			a.add(unquote(p.Value))
			return
		}
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
			c.part(a, inner, place{whole: at.whole && len(p.Parts) == 1, quoted: true})
		}
	case *syntax.ParamExp:
		c.parameter(a, p, at)
	case *syntax.ArithmExp:
		a.add("0")
	case *syntax.ProcSubst:
		a.looked, a.dynamic = at.whole, !at.whole
		a.download = a.download || downloads(&syntax.Stmt{Cmd: &syntax.Block{Stmts: p.Stmts}})
	case *syntax.CmdSubst:
		a.download = a.download || downloads(&syntax.Stmt{Cmd: &syntax.Block{Stmts: p.Stmts}})
		if c.printsNumber(p.Stmts) {
			a.add("0")
			return
		}
		a.dynamic, a.splits = true, a.splits || !at.quoted
	default:
		a.dynamic, a.pattern, a.splits = true, true, true
	}
}

// numberParameters expand to numbers.
var numberParameters = []string{"?", "#", "$", "!", "PIPESTATUS", "RANDOM", "LINENO", "SECONDS", "BASHPID", "UID", "EUID"}

func (c *classifier) parameter(a *arg, p *syntax.ParamExp, at place) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	texts, spelled := c.spelled(name)
	plain := plainParameter(p) && p.Index == nil
	several := name == "@" || name == "*" || p.Index != nil || p.Excl
	switch {
	case p.Length, plainParameter(p) && slices.Contains(numberParameters, name) && !c.given(name):
		a.add("0")
	case plain && spelled && len(texts) == 1:
		a.add(texts[0])
		if !at.quoted {
			a.pattern = a.pattern || globs(texts[0])
			a.splits = a.splits || len(strings.Fields(texts[0])) != 1
		}
	case plainParameter(p) && c.number(name):
		a.add("0")
	case !plain:
		a.dynamic = true
		a.splits = a.splits || several || !at.quoted
	case name == "PWD" && !c.vars.moves && !c.given(name):
		a.add(c.guard.Dir())
	case name == "HOME" && c.guard.Home() != "" && !c.given(name):
		a.add(c.guard.Home())
	case c.looked(name) && !c.vars.moves && at.whole && !mayBeOption(c.vars.get(name), at):
		a.looked = true
		a.splits = a.splits || !at.quoted && splitting(c.vars.get(name))
	default:
		a.dynamic = true
		a.environment = a.environment || !c.given(name) && syntax.ValidName(name)
		a.splits = a.splits || several || !at.quoted
	}
}

// mayBeOption reports whether one of the values of a variable begins an
// option, or one of the words that the shell splits it into.
func mayBeOption(v *variable, at place) bool {
	return slices.ContainsFunc(v.texts, func(text string) bool {
		return strings.HasPrefix(text, "-") || !at.quoted && slices.ContainsFunc(strings.Fields(text), func(word string) bool { return strings.HasPrefix(word, "-") })
	})
}

// splitting reports whether the shell may make no word or several ones of one
// of the values of a variable.
func splitting(v *variable) bool {
	return v.patterns || slices.ContainsFunc(v.texts, func(text string) bool { return globs(text) || len(strings.Fields(text)) != 1 })
}

// globs reports whether text is a pattern for file names, once a variable
// holds it.
func globs(text string) bool { return strings.ContainsAny(text, "*?[") }

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
	if isDevice(text) {
		return
	}
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
		if !strings.Contains(text, "/") && strings.HasPrefix(filepath.Base(m), "-") {
			c.unclear("uses a file name pattern that matches an option, " + filepath.Base(m))
		}
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
