package permission

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// This file holds the builtins that take the names of variables. Bash
// evaluates a subscript in such a name, so the name must be seen.

// set notes that a variable is given a value.
func (c *classifier) set(name string, v value) {
	if !harmlessVariable(name) {
		c.ask("sets " + name)
	}
	if known := c.vars.get(name); known != nil && known.integer && v.kind == valueText {
		c.arithmeticText(v.text)
		v = value{kind: valueNumber}
	}
	c.learn(name, v)
	if c.vars.get(name).integer && !c.numeric(v) {
		c.hidden()
	}
}

// setArray notes that an element of an array is given a value.
func (c *classifier) setArray(name string, v value) {
	c.set(name, v)
	c.vars.note(name, func(v *variable) { v.array = true })
}

// numeric reports whether a value is a number.
func (c *classifier) numeric(v value) bool {
	switch v.kind {
	case valueText:
		return numbers.MatchString(v.text)
	case valueFrom:
		return !slices.ContainsFunc(v.from, func(name string) bool { return !c.number(name) })
	}
	return v.kind == valueNumber
}

// elements match the name of a variable, or of an element whose subscript is
// no expression.
var elements = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(\[([0-9]+|[@*])\])?$`)

// arrayName returns the variable that a word names. It notes a question when
// the word is no plain name.
func (c *classifier) arrayName(a arg) (name string, ok bool) {
	match := elements.FindStringSubmatch(a.text)
	if match == nil || a.dynamic || a.looked || a.splits {
		c.hidden()
		return "", false
	}
	return match[1], true
}

// namesBuiltin judges a builtin that takes the names of variables, and reports
// whether it is one that needs no further question.
func (c *classifier) namesBuiltin(name string, args []arg) (judged, reads bool) {
	switch name {
	case "read":
		c.readInput(args)
	case "mapfile", "readarray":
		c.readLines(args)
	case "unset":
		return true, c.unset(args)
	case "wait":
		c.wait(args)
	case "getopts":
		c.getopts(args)
	case "printf":
		c.printf(args)
	case "test", "[":
		c.testCommand(args)
	case "let":
		for _, a := range args {
			if a.dynamic || a.looked || a.splits {
				c.hidden()
				continue
			}
			c.arithmeticText(a.text)
		}
	case "declare", "typeset", "local", "export", "readonly":
		c.declareWords(name, args)
		return true, false
	default:
		return false, false
	}
	return true, true
}

// builtinOptions splits the words of a builtin into options with their values
// and operands. values are the options that take one. It reports false when an
// option may hide in a word that only shows when the script runs.
func builtinOptions(args []arg, values string) (options map[byte]arg, operands []arg, ok bool) {
	options = make(map[byte]arg)
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.splits || a.looked || a.dynamic && (a.text == "" || a.text[0] == '-'):
			return nil, nil, false
		case a.text == "--":
			return options, args[i+1:], true
		case len(a.text) < 2 || a.text[0] != '-':
			return options, args[i:], true
		}
		for j := 1; j < len(a.text); j++ {
			letter := a.text[j]
			if !strings.Contains(values, string(letter)) {
				options[letter] = arg{}
				continue
			}
			given := arg{text: a.text[j+1:]}
			if given.text == "" {
				if i++; i == len(args) {
					return nil, nil, false
				}
				given = args[i]
			}
			if given.splits {
				return nil, nil, false
			}
			options[letter] = given
			break
		}
	}
	return options, nil, true
}

func (c *classifier) readInput(args []arg) {
	options, names, ok := builtinOptions(args, "adinNptu")
	if !ok {
		c.hidden()
		return
	}
	if a, given := options['a']; given {
		if name, ok := c.arrayName(a); ok {
			c.setArray(name, value{})
		}
	}
	for _, a := range names {
		if name, ok := c.arrayName(a); ok {
			c.set(name, value{})
		}
	}
	if len(names) == 0 {
		c.learn("REPLY", value{})
	}
}

func (c *classifier) readLines(args []arg) {
	options, names, ok := builtinOptions(args, "dnOsuCc")
	if !ok || len(names) > 1 {
		c.hidden()
		return
	}
	if code, given := options['C']; given {
		c.scriptArgument("mapfile", code)
	}
	if len(names) == 0 {
		c.learn("MAPFILE", value{})
		return
	}
	if name, ok := c.arrayName(names[0]); ok {
		c.setArray(name, value{})
	}
}

func (c *classifier) unset(args []arg) bool {
	options, names, ok := builtinOptions(args, "")
	if !ok {
		c.hidden()
		return true
	}
	if _, functions := options['f']; functions {
		return false
	}
	for _, a := range names {
		name, ok := c.arrayName(a)
		if !ok {
			continue
		}
		if !harmlessVariable(name) {
			c.ask("unsets " + name)
		}
		c.vars.note(name, func(v *variable) { v.unkeyed = true })
	}
	return true
}

func (c *classifier) wait(args []arg) {
	options, jobs, ok := builtinOptions(args, "p")
	if !ok {
		c.hidden()
		return
	}
	if a, given := options['p']; given {
		if name, ok := c.arrayName(a); ok {
			c.set(name, value{kind: valueNumber})
		}
	}
	for _, a := range jobs {
		if a.splits || a.looked || a.dynamic {
			c.hidden()
		}
	}
}

func (c *classifier) getopts(args []arg) {
	if len(args) < 2 || args[0].splits || args[0].dynamic && args[0].text == "" {
		c.hidden()
		return
	}
	if name, ok := c.arrayName(args[1]); ok {
		c.set(name, value{})
	}
	c.learn("OPTARG", value{})
}

// printf stores its output with -v. A format from elsewhere may be that
// option.
func (c *classifier) printf(args []arg) {
	options, rest, ok := builtinOptions(args, "v")
	if !ok {
		c.hidden()
		return
	}
	if a, given := options['v']; given {
		if name, ok := c.arrayName(a); ok {
			c.set(name, value{})
		}
	}
	c.words(rest)
}

// testCommand judges test and [, where -v evaluates the word behind it. Which
// words are operators depends on their number, so any word that can be -v
// counts as one.
func (c *classifier) testCommand(args []arg) {
	for i, a := range args {
		operator := a.text == "-v" || a.text == "-R" || a.looked || a.dynamic && (a.text == "" || a.text == "-") || a.pattern && mayMatchOption(a.text)
		if a.splits && operator {
			c.hidden()
			return
		}
		if !operator || i+1 == len(args) {
			continue
		}
		if next := args[i+1]; next.splits || next.dynamic || next.looked || next.pattern || strings.ContainsAny(next.text, "[") {
			c.hidden()
			return
		}
	}
	c.words(args)
}

// mayMatchOption reports whether a file name pattern may stand for an option.
func mayMatchOption(pattern string) bool {
	return pattern != "" && strings.ContainsRune("-*?[{", rune(pattern[0]))
}

// declareWords judges declare and its kin where their words are not
// assignments that the parser sees.
func (c *classifier) declareWords(builtin string, args []arg) {
	options, words, ok := builtinOptions(args, "")
	if _, reference := options['n']; !ok || reference && builtin != "export" {
		c.hidden()
		return
	}
	_, integer := options['i']
	for _, a := range words {
		text, content, assigns := strings.Cut(a.text, "=")
		text = strings.TrimSuffix(text, "+")
		name, ok := c.arrayName(arg{text: text, dynamic: a.dynamic && !assigns, looked: a.looked, splits: a.splits})
		switch {
		case !ok:
			continue
		case strings.HasPrefix(content, "("):
			// Bash reads such a text as a list and expands what is in it.
			c.hidden()
		}
		c.vars.note(name, func(v *variable) { v.integer, v.unkeyed, v.array = v.integer || integer, true, true })
		switch {
		case !assigns:
		case a.dynamic:
			c.set(name, value{})
		default:
			c.set(name, value{kind: valueText, text: content})
		}
	}
	c.ask("runs " + builtin + " with options")
}

// declare reads export, local, readonly, declare and typeset.
func (c *classifier) declare(n *syntax.DeclClause) {
	builtin := n.Variant.Value
	if len(n.Args) == 0 || builtin == "nameref" {
		c.ask("runs " + builtin + ", which may show secrets of the environment")
	}
	letters := ""
	var words []arg
	for _, a := range n.Args {
		if a.Name != nil {
			continue
		}
		w := c.arg(a.Value)
		if !declareOptions.MatchString(w.text) || w.dynamic || w.looked || w.splits {
			words = append(words, w)
			continue
		}
		letters += w.text[1:]
	}
	if len(words) > 0 || builtin == "nameref" {
		c.declareWords(builtin, words)
	}
	for _, a := range n.Args {
		if a.Name == nil {
			continue
		}
		c.declared(a.Name.Value, letters)
		if v := c.valueOf(a.Value); a.Array == nil && !c.numeric(v) && (v.kind != valueText || strings.HasPrefix(v.text, "(")) {
			c.listValue(a.Name.Value, letters)
		}
		if len(words) > 0 {
			// An option may change what is stored, such as its case.
			c.learn(a.Name.Value, value{})
		}
		c.assign(a)
	}
}

// listValue notes that a declaration gives a variable a text. If that is an
// array, bash reads a text in parentheses as a list and expands what is in it.
func (c *classifier) listValue(name, letters string) {
	if known := c.vars.get(name); strings.ContainsAny(letters, "aA") || known.array || slices.Contains(shellArrays, name) {
		c.hidden()
	}
}

// shellArrays are arrays from the start.
var shellArrays = []string{
	"BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_CMDS", "BASH_LINENO", "BASH_REMATCH", "BASH_SOURCE", "BASH_VERSINFO",
	"COMPREPLY", "COMP_WORDS", "COPROC", "DIRSTACK", "FUNCNAME", "GROUPS", "MAPFILE", "PIPESTATUS",
}

// declareOptions are those that change nothing but how values are stored.
var declareOptions = regexp.MustCompile(`^-[raAxgi]+$`)

// declared notes what a declaration says about a variable beside its value.
func (c *classifier) declared(name, letters string) {
	keyed := strings.Contains(letters, "A") && c.inner == 0
	c.vars.note(name, func(v *variable) {
		v.integer = v.integer || strings.Contains(letters, "i")
		v.array = v.array || strings.ContainsAny(letters, "aA")
		v.unkeyed = v.unkeyed || !keyed
	})
	if keyed && !c.learning && !c.vars.seen[name] && !c.vars.get(name).unkeyed {
		c.vars.keyed[name] = true
	}
}
