package permission

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A script is read twice. The first reading learns what its variables can
// hold, from every place that gives them a value, in whichever order these
// places run and in whichever shell: a loop, a function or an eval may come
// back to them. The second reading judges. So a variable is a number only if
// everything that is ever put into it is one.

// variables is what the first reading learnt about a script.
type variables struct {
	named map[string]*variable
	// moves says that the script changes directory, lost that it does so in
	// a way that cannot be followed.
	moves, lost bool
	// functions are the names that the script gives to functions.
	functions map[string]bool
	// changed says that the present reading learnt something new.
	changed bool
	// seen are the variables that the present reading found a value for so
	// far: before that they hold what the environment says. keyed are those
	// that it found declared as arrays with keys.
	seen, keyed map[string]bool
}

// reread begins another reading.
func (v *variables) reread() {
	v.changed, v.seen, v.keyed = false, make(map[string]bool), make(map[string]bool)
}

func newVariables() *variables {
	return &variables{named: make(map[string]*variable), functions: make(map[string]bool)}
}

// variable is what is known of one variable.
type variable struct {
	// given says that the script gives it a value at all.
	given bool
	// texts are its values where the script spells them out.
	texts []string
	// patterns says that there are others which the shell makes of a pattern
	// that the script spells out, unknown that there are more.
	patterns, unknown bool
	// words says that one of the others is no arithmetic expression made of
	// numbers alone.
	words bool
	// from are the variables whose values it takes over.
	from []string
	// integer variables evaluate what they are given.
	integer bool
	// unkeyed says that it is not known to be an array with keys all along.
	unkeyed bool
	// array says that it holds more than one value at a time.
	array bool
}

// maxTexts bounds the values that are remembered of one variable.
const maxTexts = 20

// get returns what is known of a variable, nil when the script never sets it.
func (v *variables) get(name string) *variable { return v.named[name] }

func (v *variables) entry(name string) *variable {
	if v.named[name] == nil {
		v.named[name] = &variable{}
	}
	return v.named[name]
}

// note changes what is known of a variable.
func (v *variables) note(name string, change func(*variable)) {
	now := v.entry(name)
	before := *now
	change(now)
	if len(now.texts) != len(before.texts) || len(now.from) != len(before.from) || now.flags() != before.flags() {
		v.changed = true
	}
}

func (v *variable) flags() [7]bool {
	return [...]bool{v.given, v.patterns, v.unknown, v.words, v.integer, v.unkeyed, v.array}
}

// learn notes a value that the script gives to a variable.
func (c *classifier) learn(name string, value value) {
	c.vars.seen[name] = true
	c.vars.note(name, func(v *variable) {
		v.given = true
		switch {
		case value.kind == valuePattern:
			v.patterns, v.words = true, true
		case value.kind != valueText:
			v.unknown = true
			v.words = v.words || value.kind == valueUnknown
		case slices.Contains(v.texts, value.text):
		case len(v.texts) < maxTexts:
			v.texts = append(v.texts, value.text)
		default:
			v.unknown = true
			v.words = v.words || !numbers.MatchString(value.text)
		}
		for _, other := range value.from {
			if !slices.Contains(v.from, other) {
				v.from = append(v.from, other)
			}
		}
	})
}

// value is what is known of something that a variable is set to.
type value struct {
	kind valueKind
	text string
	from []string
}

type valueKind int

const (
	// valueUnknown may be any text.
	valueUnknown valueKind = iota
	// valueText is spelled out.
	valueText
	// valuePattern is what the shell makes of a pattern that is spelled out.
	valuePattern
	// valueNumber is a number that only shows when the script runs.
	valueNumber
	// valueFrom is a number if the variables in from hold numbers.
	valueFrom
)

// valueOf returns what is known of the value that a word expands to.
func (c *classifier) valueOf(w *syntax.Word) value {
	if w == nil {
		return value{kind: valueText}
	}
	if spelledOut(w) {
		a := c.plain(w)
		if strings.HasPrefix(w.Lit(), "~") {
			return value{kind: valuePattern}
		}
		return value{kind: valueText, text: a.text}
	}
	names, ok := c.numericParts(w.Parts)
	switch {
	case !ok, slices.ContainsFunc(names, func(name string) bool { return !c.vars.seen[name] }):
		// Before a variable is set it holds what the environment says.
		return value{}
	case len(names) == 0:
		return value{kind: valueNumber}
	}
	return value{kind: valueFrom, from: names}
}

// itemOf returns what is known of the values that a word, whose braces are
// expanded, stands for where the shell also expands patterns.
func (c *classifier) itemOf(w *syntax.Word) value {
	if w != nil && spelledOut(w) && c.plain(w).pattern {
		return value{kind: valuePattern}
	}
	return c.valueOf(w)
}

// numbers matches text that is a number or made of numbers and operators: no
// name stands in it, so that nothing but arithmetic comes out of it.
var numbers = regexp.MustCompile(`^([-+]?(0[xX][0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+)|[-0-9 +/%()<>=!&|^:~,]*)$`)

// numericParts reports whether parts of a word make text without a name in
// it, provided that the variables it returns hold numbers.
func (c *classifier) numericParts(parts []syntax.WordPart) (names []string, ok bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !numbers.MatchString(p.Value) {
				return nil, false
			}
		case *syntax.SglQuoted:
			if p.Dollar || !numbers.MatchString(p.Value) {
				return nil, false
			}
		case *syntax.DblQuoted:
			inner, ok := c.numericParts(p.Parts)
			if !ok {
				return nil, false
			}
			names = append(names, inner...)
		case *syntax.ArithmExp:
		case *syntax.CmdSubst:
			if !c.printsNumber(p.Stmts) {
				return nil, false
			}
		case *syntax.ParamExp:
			switch {
			case p.Length || plainParameter(p) && slices.Contains(numberParameters, p.Param.Value):
			case plainParameter(p) && syntax.ValidName(p.Param.Value):
				names = append(names, p.Param.Value)
			default:
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return names, true
}

// plainParameter reports whether an expansion is $name or ${name}, or an
// element of an array, with nothing done to it.
func plainParameter(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// number reports whether a variable holds nothing but numbers at this place.
func (c *classifier) number(name string) bool {
	return !c.learning && c.vars.seen[name] && c.vars.number(name, nil)
}

// number reports whether all values that a script gives to a variable are
// numbers. Names that stand before it in a chain are taken to be.
func (v *variables) number(name string, before []string) bool {
	known := v.get(name)
	if known == nil || known.words {
		return false
	}
	for printer := range numberPrinters {
		if v.functions[printer] {
			return false
		}
	}
	for _, text := range known.texts {
		if !numbers.MatchString(text) {
			return false
		}
	}
	before = append(before, name)
	for _, other := range known.from {
		if !slices.Contains(before, other) && !v.number(other, before) {
			return false
		}
	}
	return true
}

// spelled returns the values of a variable if the script spells them all out
// and nothing changes them on their way.
func (c *classifier) spelled(name string) ([]string, bool) {
	v := c.vars.get(name)
	if c.learning || !c.looked(name) || v.patterns || v.integer {
		return nil, false
	}
	return v.texts, true
}

// looked reports whether a variable holds only what the script spells out, in
// places where it was looked at.
func (c *classifier) looked(name string) bool {
	v := c.vars.get(name)
	return !c.learning && v != nil && v.given && !v.unknown && !v.array && c.vars.seen[name]
}

// given reports whether the script gives a variable a value at all.
func (c *classifier) given(name string) bool {
	v := c.vars.get(name)
	return v != nil && v.given
}

// spelledOut reports whether a word holds nothing but text.
func spelledOut(w *syntax.Word) bool {
	plain := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Word, *syntax.Lit, *syntax.DblQuoted:
		case *syntax.SglQuoted:
			plain = plain && (!n.Dollar || !strings.Contains(n.Value, `\`))
		default:
			plain = false
		}
		return plain
	})
	return plain
}

// numberPrinters are commands whose output is a number, or several, as long as
// all their arguments match: they are given none of the names of files.
var numberPrinters = map[string]*regexp.Regexp{
	"wc":    regexp.MustCompile(`^-[lwcm]$`),
	"date":  regexp.MustCompile(`^(\+(%[sYmdHMSNj])+|-u)$`),
	"nproc": regexp.MustCompile(`^--all$`),
	"id":    regexp.MustCompile(`^-[ugUG]$`),
	"seq":   regexp.MustCompile(`^-?[0-9]+$`),
}

// printsNumber reports whether the output of a substitution is a number.
func (c *classifier) printsNumber(list []*syntax.Stmt) bool {
	if len(list) != 1 || list[0].Background || list[0].Coprocess {
		return false
	}
	last := list[0]
	if pipe, ok := last.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe && len(last.Redirs) == 0 {
		last = pipe.Y
	}
	call, ok := last.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return false
	}
	for _, r := range last.Redirs {
		errors := r.Op == syntax.RdrOut && r.N != nil && r.N.Value == "2"
		if r.Op != syntax.RdrIn && r.Op != syntax.WordHdoc && !errors {
			return false
		}
	}
	name := call.Args[0].Lit()
	arguments, ok := numberPrinters[name]
	if !ok || c.vars.functions[name] {
		return false
	}
	for _, w := range call.Args[1:] {
		if !arguments.MatchString(w.Lit()) {
			return false
		}
	}
	return name != "seq" && name != "date" && name != "id" || len(call.Args) > 1
}
