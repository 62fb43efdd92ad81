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
	maxNesting = 8
	maxReasons = 3
	maxPaths   = 20
)

// ClassifyCommand reads a command for bash that would run in the guard's
// working directory. The text is parsed, never matched: what stands in quotes
// or in a comment is no command, and what stands in a substitution, a loop or
// an argument of "sh -c" is one. ClassifyCommand looks at the file system
// (links, file name patterns) and runs nothing.
func ClassifyCommand(command string, g *filesystem.Guard) Classification {
	f := &findings{}
	c := newClassifier(g, f, []string{g.Dir()}, 0)
	c.script(command)
	return f.classification()
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

// classifier reads one script. Its scope fields (dirs, stdin) are saved and
// restored around subshells.
type classifier struct {
	guard *filesystem.Guard
	*findings
	nesting int
	// dirs are the directories that the shell may be in. cd adds to them.
	dirs []string
	// entered is where the latest cd leads, when that is known.
	entered string
	// lost says that the script changes directory in a way that cannot be
	// followed.
	lost bool
	// moves says that it changes directory at all.
	moves bool
	// clean variables hold only values that the script itself spells out,
	// and that are looked at where they are spelt out.
	clean map[string]bool
	// assigned variables get their value in the script, clean ones included.
	assigned map[string]bool
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

func newClassifier(g *filesystem.Guard, f *findings, dirs []string, nesting int) *classifier {
	return &classifier{
		guard: g, findings: f, dirs: dirs, nesting: nesting,
		clean: make(map[string]bool), assigned: make(map[string]bool), functions: make(map[string]bool),
	}
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
	c.survey(file)
	for _, s := range file.Stmts {
		c.stmt(s)
		if f, ok := s.Cmd.(*syntax.FuncDecl); ok && f.Name != nil && !s.Background && len(s.Redirs) == 0 {
			c.functions[f.Name.Value] = true
		}
	}
}

// nested reads a script that another shell runs.
func (c *classifier) nested(text string) {
	inner := newClassifier(c.guard, c.findings, c.dirs, c.nesting+1)
	inner.lost, inner.stdin = c.lost, c.stdin
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

// survey looks through a script before it is read in order, for what a loop or
// a function may do before the place where it is written.
func (c *classifier) survey(file *syntax.File) {
	tainted := make(map[string]bool)
	note := func(name string, w *syntax.Word) {
		c.clean[name] = true
		tainted[name] = tainted[name] || w != nil && !spelledOut(w)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				note(n.Name.Value, n.Value)
				tainted[n.Name.Value] = tainted[n.Name.Value] || n.Append || n.Array != nil || n.Naked
			}
		case *syntax.WordIter:
			for _, w := range n.Items {
				note(n.Name.Value, w)
			}
		case *syntax.ForClause:
			c.lost = c.lost || changesDirectory(n)
		case *syntax.WhileClause:
			c.lost = c.lost || changesDirectory(n)
		case *syntax.FuncDecl:
			c.lost = c.lost || changesDirectory(n)
		case *syntax.CallExpr:
			if len(n.Args) > 0 && setsVariables(n.Args[0].Lit()) {
				for _, w := range n.Args[1:] {
					tainted[w.Lit()] = true
				}
			}
		}
		return true
	})
	c.moves = changesDirectory(file)
	for name := range tainted {
		c.assigned[name] = true
		if tainted[name] || c.moves {
			delete(c.clean, name)
		}
	}
}

// setsVariables reports whether a builtin stores input in the variables it
// names.
func setsVariables(name string) bool {
	return slices.Contains([]string{"read", "mapfile", "readarray", "printf", "getopts", "let", "declare"}, name)
}

func changesDirectory(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			found = found || slices.Contains([]string{"cd", "pushd", "popd"}, call.Args[0].Lit())
		}
		return !found
	})
	return found
}

// spelledOut reports whether a word holds nothing but text.
func spelledOut(w *syntax.Word) bool {
	plain := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		default:
			plain = false
		}
		return plain
	})
	return plain
}
