package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// This file sees through commands that run other commands.

var shells = []string{"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"}

// shell judges a command that runs a script, and reports whether it is one.
func (c *classifier) shell(name string, args []arg) bool {
	switch {
	case name == "eval", name == "trap":
		c.evaluate(name, args)
		return true
	case !slices.Contains(shells, name):
		return false
	}
	for i, a := range args {
		if strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "c") {
			if i+1 < len(args) {
				c.scriptArgument(name, args[i+1])
			}
			return true
		}
	}
	if i := firstOperand(args); i >= 0 && !isInput(args[i].text) && !hasShort(texts(args[:i]), "s") {
		c.scriptFile(name, args, i)
		return true
	}
	if len(args) == 1 && args[0].text == "--version" {
		return true
	}
	c.scriptInput(name)
	c.reads(args)
	return true
}

// scriptInput judges a shell that runs its standard input.
func (c *classifier) scriptInput(name string) {
	switch {
	case c.stdin.text != nil:
		c.scriptArgument(name, c.arg(c.stdin.text))
	case c.stdin.piped:
		c.pipedProgram(name)
	default:
		c.ask("starts " + name)
	}
}

// source judges the file that the shell itself runs.
func (c *classifier) source(args []arg) {
	_, operands, ok := builtinOptions(args, "")
	switch {
	case !ok, len(operands) == 0:
		c.unclear("runs a script that only shows when it runs")
	case isInput(operands[0].text):
		c.scriptInput("source")
	case isDevice(operands[0].text), operands[0].dynamic:
		c.unclear("runs a script that only shows when it runs")
	}
}

// scriptFile judges a shell that runs a file.
func (c *classifier) scriptFile(name string, args []arg, i int) {
	switch a := args[i]; {
	case a.download:
		c.unclear("runs what it downloads with " + name)
	case a.dynamic, a.looked, isDevice(a.text):
		c.unclear("runs a script that only shows when it runs")
	default:
		words := append([]arg{{text: name}}, args...)
		c.add(severityAsk, "runs the script "+a.text)
		c.commands = append(c.commands, line(words))
		c.patterns = append(c.patterns, scriptPattern(name, args, i))
		c.operands(effect{}, words)
	}
}

func scriptPattern(name string, args []arg, i int) string {
	if i > 0 || strings.ContainsAny(args[0].text, " \t\n'\"*") {
		return ""
	}
	return name + " " + args[0].text + " *"
}

// scriptArgument judges a script that is given as one word.
func (c *classifier) scriptArgument(name string, a arg) {
	switch {
	case a.download:
		c.unclear("runs what it downloads with " + name)
	case a.dynamic, a.looked:
		c.unclear("runs a script with " + name + " that only shows when it runs")
	default:
		c.nested(a.text)
	}
}

func (c *classifier) evaluate(name string, args []arg) {
	if name == "trap" {
		// The first operand is a script, the others are signals.
		_, operands, ok := builtinOptions(args, "")
		switch {
		case !ok:
			c.unclear("runs a script with trap that only shows when it runs")
			return
		case len(operands) < 2, operands[0].text == "-" && !operands[0].dynamic:
			// Without a script it resets signals.
			return
		}
		args = operands[:1]
	}
	var text []string
	for _, a := range args {
		if a.dynamic || a.looked {
			c.scriptArgument(name, a)
			return
		}
		text = append(text, a.text)
	}
	c.nested(strings.Join(text, " "))
}

// wrap describes a command that runs the command in its arguments.
type wrap struct {
	// values are the short options that take the next word as their value.
	values string
	// operands is how many words come before the command.
	operands int
	// input says that the command works on names it reads.
	input bool
	// reason says what is asked about for the wrapper's own sake.
	reason string
	// dangerous says that the reason is a dangerous one.
	dangerous bool
}

var wraps = map[string]wrap{
	"nohup": {}, "setsid": {}, "builtin": {}, "exec": {values: "a"}, "busybox": {}, "unbuffer": {},
	"command": {}, "time": {values: "fo"}, "nice": {values: "n"}, "ionice": {values: "cn"}, "stdbuf": {values: "ioe"},
	"timeout": {values: "sk", operands: 1}, "env": {values: "uC"}, "caffeinate": {values: "tw"},
	"xargs":    {values: "InPLdsaE", input: true, reason: "runs a command on what it reads"},
	"parallel": {values: "jNn", input: true, reason: "runs a command on what it reads"},
	"watch":    {values: "n", reason: "runs a command again and again"},
	"sudo":     {values: "ugpCrtTUhD", reason: "runs as another user", dangerous: true},
	"doas":     {values: "uC", reason: "runs as another user", dangerous: true},
	"su":       {values: "sc", reason: "runs as another user", dangerous: true},
}

// wrapper judges a command that runs another one, and reports whether it is
// one.
func (c *classifier) wrapper(name string, args []arg) bool {
	w, ok := wraps[name]
	if !ok || name == "command" && len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
		return ok
	}
	if w.reason != "" {
		c.ask(name + " " + w.reason)
	}
	if w.dangerous {
		c.unclear(name + " " + w.reason)
	}
	inner := c.wrapped(name, w, args)
	if len(inner) == 0 {
		if name == "env" {
			c.effect(name, true, append([]arg{{text: name}}, args...))
		}
		return true
	}
	in, functions := c.stdin, c.functions
	if w.input {
		c.stdin = stdin{}
	}
	// A wrapper runs programs and builtins, never functions.
	c.functions = nil
	c.run(inner)
	c.stdin, c.functions = in, functions
	return true
}

// wrapped returns the command that a wrapper runs.
func (c *classifier) wrapped(name string, w wrap, args []arg) []arg {
	operands := w.operands
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case name == "env" && (text == "-S" || strings.HasPrefix(text, "--split-string")):
			c.unclear("runs a command that env takes apart")
			return nil
		case strings.HasPrefix(text, "-") && len(text) > 1:
			if len(text) == 2 && strings.ContainsRune(w.values, rune(text[1])) {
				i++
			}
		case name == "env" && strings.Contains(text, "="):
			if variable, content, _ := strings.Cut(text, "="); syntax.ValidName(variable) {
				v := value{kind: valueText, text: content}
				if args[i].dynamic {
					v = value{}
				}
				c.set(variable, v)
			}
		case operands > 0:
			operands--
		default:
			return args[i:]
		}
	}
	return nil
}
