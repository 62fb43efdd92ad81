package permission

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"keen/internal/filesystem"
)

// call reads a simple command.
func (c *classifier) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		if a.Name.Value == "IFS" && len(n.Args) > 0 && n.Args[0].Lit() == "read" && a.Index == nil {
			// It says how read takes a line apart, and ends with it.
			c.value(a.Value)
			continue
		}
		c.assign(a)
	}
	if args := c.args(n.Args); len(args) > 0 {
		c.run(args)
	}
}

// run judges a command whose words are known.
func (c *classifier) run(args []arg) {
	first := args[0]
	if first.dynamic || first.looked || first.splits || first.pattern && len(first.text) > 1 || first.text == "" {
		c.unclear("runs a command whose name only shows when it runs")
		return
	}
	name, trusted := commandName(first.text)
	rest := args[1:]
	switch {
	case c.functions[first.text] && !knownCommand(name):
		c.reads(rest)
		return
	case name == "cd":
		c.changeDirectory(rest)
		return
	case c.shell(name, rest), c.wrapper(name, rest):
		return
	case name == "pushd", name == "popd":
		c.moved()
	case trusted && c.readOnly(name, rest):
		return
	}
	c.effect(name, trusted, args)
}

// knownCommand reports whether a name has a meaning of its own here, which a
// function of that name does not take away: the shell can get around it.
func knownCommand(name string) bool {
	_, reads := readRules[name]
	_, acts := effects[name]
	_, special := specialEffects[name]
	_, wraps := wraps[name]
	return reads || acts || special || wraps || slices.Contains(shells, name)
}

// commandName returns a command's name without its directory, and whether that
// says which program it is: a file of the project may have any name.
func commandName(text string) (name string, trusted bool) {
	dir, name := path.Split(text)
	return name, slices.Contains([]string{"", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"}, dir)
}

// effect notes a command that needs a question.
func (c *classifier) effect(name string, trusted bool, args []arg) {
	what := "runs " + name
	if !trusted {
		what = "runs " + args[0].text
	}
	e, known := effects[name]
	if strings.HasPrefix(name, "mkfs.") {
		e, known = effects["mkfs"], true
	}
	if special, ok := specialEffects[name]; ok {
		e, known = special(texts(args[1:])), true
	}
	if known && e.what != "" {
		what = name + " " + e.what
	}
	c.add(severityAsk, what)
	if e.dangerous {
		c.add(severityDangerous, what)
	}
	if e.outside {
		c.add(severityOutside, what)
	}
	runsCode := e.interpreter || name == "source" || name == "."
	switch {
	case runsCode && slices.ContainsFunc(args, func(a arg) bool { return a.download }):
		c.unclear("runs what it downloads with " + name)
	case e.interpreter && c.stdin.piped && c.stdin.text == nil && !hasOperand(args[1:]):
		c.pipedProgram(name)
	case runsCode && !e.interpreter:
		c.source(args[1:])
	}
	c.commands = append(c.commands, line(args))
	c.patterns = append(c.patterns, patternFor(name, args))
	c.operands(e, args)
}

// operands looks at the files that a command with an effect names.
func (c *classifier) operands(e effect, args []arg) {
	list := args[1:]
	if !trustedPath(args[0].text) {
		c.outsideOnly(args[0], filesystem.AccessRead)
	}
	if e.skip && len(list) > 0 {
		if i := firstOperand(list); i >= 0 {
			list = slices.Delete(slices.Clone(list), i, i+1)
		}
	}
	last := len(list) - 1
	for i, a := range list {
		access := filesystem.AccessRead
		if e.writes == writesAll || e.writes == writesLast && i == last || strings.HasPrefix(a.text, "of=") {
			access = filesystem.AccessWrite
		}
		if a.environment && e.dangerous {
			c.add(severityOutside, "names a file in a way that only shows when it runs")
		}
		if replacesDevice(args[0].text, a, access) {
			c.add(severityDenied, "replaces "+a.text+", which belongs to the system")
			c.loose = true
		}
		c.outsideOnly(a, access)
	}
}

func trustedPath(text string) bool {
	_, trusted := commandName(text)
	return trusted
}

// outsideOnly looks at a word of a command that is asked about anyway: only
// what leads out of the working directory, or is forbidden, is news.
func (c *classifier) outsideOnly(a arg, access filesystem.Access) {
	if a.looked {
		return
	}
	scratch := &findings{}
	inner := *c
	inner.findings = scratch
	a.dynamic = false
	inner.argument(a, access)
	for _, s := range []severity{severityOutside, severityDenied} {
		for _, r := range scratch.reasons[s] {
			c.add(s, r)
		}
	}
	if scratch.outside || len(scratch.reasons[severityDenied]) > 0 {
		c.loose = true
		for _, p := range scratch.paths {
			c.addPath(p)
		}
	}
}

// reads looks at every word of a command that only reads.
func (c *classifier) reads(args []arg) {
	for _, a := range args {
		c.argument(a, filesystem.AccessRead)
	}
}

// moved notes that the script changes directory.
func (c *classifier) moved() {
	if lost := c.repeated > 0; !c.vars.moves || lost && !c.vars.lost {
		c.vars.moves, c.vars.lost, c.vars.changed = true, c.vars.lost || lost, true
	}
}

func (c *classifier) changeDirectory(args []arg) {
	c.moved()
	i := firstOperand(args)
	if i < 0 {
		c.add(severityOutside, "changes to the home directory")
		c.loose = true
		return
	}
	target := args[i]
	if target.dynamic || target.looked || target.pattern || target.text == "-" {
		c.lost = true
		c.ask("changes directory in a way that cannot be followed")
		return
	}
	c.argument(target, filesystem.AccessRead)
	for _, dir := range c.dirs {
		if to, err := c.guard.ResolveFrom(dir, target.text); err == nil {
			c.dirs = union(c.dirs, []string{to})
			c.entered = to
		}
	}
	if len(c.dirs) > maxNesting {
		c.lost = true
	}
}

// line writes a command in the form that patterns match.
func line(args []arg) string {
	words := make([]string, len(args))
	for i, a := range args {
		quoted, err := syntax.Quote(a.text, syntax.LangBash)
		if err != nil || a.dynamic || a.looked {
			quoted = "'…'"
		}
		words[i] = quoted
	}
	return strings.Join(words, " ")
}

func texts(args []arg) []string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = a.text
	}
	return list
}

// firstOperand returns the index of the first word that is no option, or -1.
func firstOperand(args []arg) int {
	return slices.IndexFunc(args, func(a arg) bool { return !strings.HasPrefix(a.text, "-") || a.text == "-" })
}

// hasOperand reports whether a program is given by an argument, so that
// standard input is only its data.
func hasOperand(args []arg) bool {
	return slices.ContainsFunc(args, func(a arg) bool { return !isInput(a.text) && a.text != "-s" && a.text != "" || a.dynamic })
}

// pipedProgram notes an interpreter that runs its standard input.
func (c *classifier) pipedProgram(name string) {
	if c.stdin.download {
		c.unclear("runs what it downloads with " + name)
		return
	}
	c.unclear("runs the output of another command with " + name)
}

// subcommandTools do different things by their first words.
var subcommandTools = []string{
	"go", "git", "npm", "pnpm", "yarn", "bun", "cargo", "make", "docker", "kubectl", "pip", "pip3", "uv", "poetry",
	"bundle", "rails", "mix", "dotnet", "gradle", "gradlew", "mvn", "terraform", "gh", "brew", "apt", "helm", "bazel",
	"just", "task", "composer", "deno", "swift", "flutter",
}

// patternFor returns the pattern that allows commands like this one, empty
// when there is none that says what it allows.
func patternFor(name string, args []arg) string {
	plain := func(i int) bool {
		return i < len(args) && !args[i].dynamic && !args[i].looked && args[i].text != "" && !strings.HasPrefix(args[i].text, "-") &&
			!strings.ContainsAny(args[i].text, " \t\n'\"*")
	}
	words := 1
	switch {
	case !plain(0):
		return ""
	case slices.Contains(subcommandTools, name):
		if plain(1) {
			words = 2
		} else if len(args) > 1 {
			return ""
		}
		if words == 2 && args[1].text == "run" && name != "go" && plain(2) {
			words = 3
		}
	case effects[name].interpreter:
		if !plain(1) {
			return ""
		}
		words = 2
	}
	return strings.Join(texts(args[:words]), " ") + " *"
}
