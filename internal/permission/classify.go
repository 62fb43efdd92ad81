package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"keen/internal/filesystem"
)

// Classification says what a shell command may touch, as far as its text
// tells. What a program does by itself cannot be seen: everything that is not
// known to be harmless needs a question.
type Classification struct {
	// Verdict is allow for a command that only reads inside the working
	// directory, deny for one that writes what the file guard forbids, and
	// ask for all others.
	Verdict Verdict
	// Outside says that it reaches beyond the working directory: other
	// paths, other machines, the system.
	Outside bool
	// Dangerous says that its effect may be hard to undo.
	Dangerous bool
	// Reason says why it is not simply allowed, in a few words.
	Reason string
	// Paths are the resolved paths that a question is about.
	Paths []string
	// Commands are the single commands that need a question, see
	// [Request.Commands].
	Commands []string
	// Pattern is what would allow commands of this kind, or empty.
	Pattern string
}

// Limits of what is looked at. What is beyond them is asked about.
const (
	maxNesting  = 8
	maxReadings = 5
	maxReasons  = 3
	maxPaths    = 20
)

// ClassifyCommand reads a command for bash that would run in the guard's
// working directory. The text is parsed, never matched: what stands in quotes
// or in a comment is no command, and what stands in a substitution, a loop or
// an argument of "sh -c" is one. ClassifyCommand looks at the file system
// (links, file name patterns) and runs nothing.
func ClassifyCommand(command string, g *filesystem.Guard) Classification {
	vars := newVariables()
	read := func(learning bool) *findings {
		c := &classifier{guard: g, findings: &findings{}, dirs: []string{g.Dir()}, vars: vars, functions: make(map[string]bool), learning: learning}
		vars.reread()
		c.lost = vars.lost
		c.script(command)
		return c.findings
	}
	read(true)
	for range maxReadings {
		// What is known of variables shows more of the script, which may show
		// more of variables.
		if f := read(false); !vars.changed {
			return f.classification()
		}
	}
	c := &classifier{findings: &findings{}}
	c.unclear("is too tangled to be read")
	return c.classification()
}

// severity orders reasons, the worst last.
type severity int

const (
	severityAsk severity = iota
	severityOutside
	severityDangerous
	severityDenied
)

// findings collects what a command does.
type findings struct {
	reasons  [severityDenied + 1][]string
	outside  bool
	paths    []string
	commands []string
	patterns []string
	// loose says that something else than a command needs the question.
	loose bool
}

func (f *findings) add(s severity, reason string) {
	if s == severityOutside {
		f.outside = true
	}
	if !slices.Contains(f.reasons[s], reason) {
		f.reasons[s] = append(f.reasons[s], reason)
	}
}

// decide notes what the guard says about a path.
func (f *findings) decide(d filesystem.Decision) {
	switch {
	case d.Verdict == filesystem.VerdictAllow:
		return
	case d.Verdict == filesystem.VerdictDeny:
		f.outside = f.outside || !d.Inside
		f.add(severityDenied, d.Reason)
	case !d.Inside:
		f.add(severityOutside, d.Reason)
	default:
		f.add(severityAsk, d.Reason)
	}
	f.loose = true
	f.addPath(d.Path)
}

func (f *findings) addPath(path string) {
	if len(f.paths) < maxPaths && !slices.Contains(f.paths, path) {
		f.paths = append(f.paths, path)
	}
}

func (f *findings) classification() Classification {
	var reasons []string
	for _, list := range slices.Backward(f.reasons[:]) {
		for _, r := range list {
			// What is said to be dangerous need not be said again.
			if !slices.Contains(reasons, r) {
				reasons = append(reasons, r)
			}
		}
	}
	if len(reasons) == 0 {
		return Classification{Verdict: VerdictAllow}
	}
	c := Classification{
		Verdict:   VerdictAsk,
		Outside:   f.outside,
		Dangerous: len(f.reasons[severityDangerous]) > 0,
		Reason:    strings.Join(reasons[:min(len(reasons), maxReasons)], "; "),
		Paths:     f.paths,
	}
	if len(f.reasons[severityDenied]) > 0 {
		c.Verdict = VerdictDeny
	}
	if !f.loose {
		c.Commands = f.commands
	}
	if c.Verdict == VerdictAsk && !c.Outside && !c.Dangerous && len(c.Commands) == 1 {
		c.Pattern = f.patterns[0]
	}
	return c
}

// classifier reads one script. Its scope fields (dirs, stdin, inner) are saved
// and restored around subshells.
type classifier struct {
	guard *filesystem.Guard
	*findings
	nesting int
	// vars is what is known of the script's variables, shared by all shells
	// within it. learning says that this is the first reading.
	vars     *variables
	learning bool
	// dirs are the directories that the shell may be in. cd adds to them.
	dirs []string
	// entered is where the latest cd leads, when that is known.
	entered string
	// lost says that the script changes directory in a way that cannot be
	// followed.
	lost bool
	// inner counts the constructs around this place that run it never, more
	// than once or in another shell; repeated those that may do so more than
	// once.
	inner, repeated int
	// functions are those that are certainly defined at this place.
	functions map[string]bool
	stdin     stdin
}

// stdin is what a command reads when it reads its standard input.
type stdin struct {
	piped    bool
	download bool
	// text is the here-document, where it is a plain one.
	text *syntax.Word
}

// script reads the text of a whole script.
func (c *classifier) script(text string) {
	if c.nesting > maxNesting {
		c.unclear("nests shells too deeply to be read")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		c.unclear("cannot be parsed as a shell command")
		return
	}
	for _, s := range file.Stmts {
		c.stmt(s)
		if f, ok := s.Cmd.(*syntax.FuncDecl); ok && f.Name != nil && !s.Background && len(s.Redirs) == 0 {
			c.functions[f.Name.Value] = true
		}
	}
}

// nested reads a script that another shell runs.
func (c *classifier) nested(text string) {
	inner := *c
	inner.nesting++
	inner.inner++
	inner.functions = make(map[string]bool)
	inner.stdin.text = nil
	inner.script(text)
}

// unclear notes something whose effect cannot be known: it may be anything.
func (c *classifier) unclear(reason string) {
	c.add(severityDangerous, reason)
	c.add(severityOutside, reason)
	c.loose = true
}

// ask notes something that needs a question and is no command.
func (c *classifier) ask(reason string) {
	c.add(severityAsk, reason)
	c.loose = true
}
