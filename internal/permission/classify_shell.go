package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"keen/internal/filesystem"
)

// This file follows the shell's own grammar: lists, pipelines, loops,
// redirections. What a single command means is in classify_command.go.

func (c *classifier) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		c.stmt(s)
	}
}

// subshell reads statements whose change of directory ends with them.
func (c *classifier) subshell(list []*syntax.Stmt) {
	dirs := c.dirs
	c.inner++
	c.stmts(list)
	c.inner--
	c.dirs = dirs
}

func (c *classifier) stmt(s *syntax.Stmt) {
	dirs, in := c.dirs, c.stdin
	for _, r := range s.Redirs {
		c.redirect(r)
	}
	if apart := s.Background || s.Coprocess; apart {
		c.inner++
		c.cmd(s.Cmd)
		c.inner--
		c.dirs = dirs
	} else {
		c.cmd(s.Cmd)
	}
	c.stdin = in
}

func (c *classifier) cmd(command syntax.Command) {
	switch n := command.(type) {
	case nil:
	case *syntax.CallExpr:
		c.call(n)
	case *syntax.BinaryCmd:
		c.binary(n)
	case *syntax.Subshell:
		c.subshell(n.Stmts)
	case *syntax.Block:
		c.stmts(n.Stmts)
	case *syntax.IfClause:
		for clause := n; clause != nil; clause = clause.Else {
			c.maybe(clause.Cond)
			c.maybe(clause.Then)
		}
	case *syntax.WhileClause:
		c.again(n.Cond)
		c.again(n.Do)
	case *syntax.ForClause:
		c.loop(n)
	case *syntax.CaseClause:
		c.substitutions(n.Word)
		for _, item := range n.Items {
			for _, w := range item.Patterns {
				c.substitutions(w)
			}
			c.maybe(item.Stmts)
		}
	case *syntax.FuncDecl:
		if n.Name != nil {
			c.vars.functions[n.Name.Value] = true
		}
		c.again([]*syntax.Stmt{n.Body})
	case *syntax.TimeClause:
		if n.Stmt != nil {
			c.stmt(n.Stmt)
		}
	case *syntax.DeclClause:
		c.declare(n)
	case *syntax.ArithmCmd:
		c.arithmetic(n.X)
	case *syntax.TestClause:
		c.test(n.X)
	case *syntax.LetClause:
		c.let(n)
	default:
		c.unclear("uses shell syntax that Keen does not follow")
	}
}

// maybe reads statements that run or not.
func (c *classifier) maybe(list []*syntax.Stmt) {
	dirs := c.dirs
	c.inner++
	c.stmts(list)
	c.inner--
	c.dirs = union(dirs, c.dirs)
}

// again reads statements that may run more than once.
func (c *classifier) again(list []*syntax.Stmt) {
	c.repeated++
	c.maybe(list)
	c.repeated--
}

func (c *classifier) loop(n *syntax.ForClause) {
	switch l := n.Loop.(type) {
	case *syntax.CStyleLoop:
		c.arithmetic(l.Init)
		c.arithmetic(l.Cond)
		c.arithmetic(l.Post)
	case *syntax.WordIter:
		for _, w := range c.braces(l.Items) {
			c.value(w)
			c.set(l.Name.Value, c.itemOf(w))
		}
		if len(l.Items) == 0 {
			c.set(l.Name.Value, value{})
		}
		if n.Select {
			c.learn("REPLY", value{})
		}
	}
	c.again(n.Do)
}

// binary reads a list joined by && or || and pipelines. The parser nests them
// to the left, so they are laid out flat first.
func (c *classifier) binary(n *syntax.BinaryCmd) {
	var parts []*syntax.Stmt
	for {
		parts = append(parts, n.Y)
		left, ok := n.X.Cmd.(*syntax.BinaryCmd)
		if !ok || !sameKind(left.Op, n.Op) || len(n.X.Redirs) > 0 || n.X.Negated {
			parts = append(parts, n.X)
			break
		}
		n = left
	}
	slices.Reverse(parts)
	switch n.Op {
	case syntax.Pipe, syntax.PipeAll:
		c.pipeline(parts)
	case syntax.AndStmt:
		c.allOf(parts)
	default:
		for _, s := range parts {
			c.maybe([]*syntax.Stmt{s})
		}
	}
}

func sameKind(a, b syntax.BinCmdOperator) bool {
	pipe := func(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }
	return a == b || pipe(a) && pipe(b)
}

// allOf reads a list joined by &&: after a cd the rest runs there or not at
// all.
func (c *classifier) allOf(parts []*syntax.Stmt) {
	possible := c.dirs
	c.inner++
	defer func() { c.inner-- }()
	for _, s := range parts {
		c.entered = ""
		c.stmt(s)
		possible = union(possible, c.dirs)
		if _, simple := s.Cmd.(*syntax.CallExpr); simple && c.entered != "" && !s.Negated && !s.Background {
			c.dirs = []string{c.entered}
		}
	}
	c.dirs = possible
}

func (c *classifier) pipeline(parts []*syntax.Stmt) {
	in := c.stdin
	for i, s := range parts {
		c.subshell([]*syntax.Stmt{s})
		if i == 0 {
			c.stdin = stdin{piped: true}
		}
		c.stdin.download = c.stdin.download || downloads(s)
	}
	c.stdin = in
}

// downloads reports whether a stage of a pipeline brings text from elsewhere.
func downloads(s *syntax.Stmt) bool {
	found := false
	syntax.Walk(s, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			name, _ := commandName(w.Lit())
			found = found || name == "curl" || name == "wget" || name == "fetch"
		}
		return !found
	})
	return found
}

func (c *classifier) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		if name, ok := c.arrayName(arg{text: strings.Trim(r.N.Value, "{}")}); ok {
			c.set(name, value{kind: valueNumber})
		}
	}
	if r.Hdoc != nil {
		c.substitutions(r.Hdoc)
		c.stdin = stdin{piped: true, text: r.Hdoc}
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return
	case syntax.WordHdoc:
		c.substitutions(r.Word)
		c.stdin = stdin{piped: true, text: r.Word}
		return
	}
	a := c.arg(r.Word)
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		if isDescriptor(a.text) && !a.dynamic {
			return
		}
		c.file(a, filesystem.AccessWrite)
	case syntax.RdrIn:
		c.stdin = stdin{piped: true, download: a.download}
		c.file(a, filesystem.AccessRead)
	default:
		c.file(a, filesystem.AccessWrite)
	}
}

// isDescriptor reports whether what follows >& is a number or "-", not a file.
func isDescriptor(text string) bool {
	if text == "-" {
		return true
	}
	for _, r := range text {
		if (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return text != ""
}

func (c *classifier) assign(a *syntax.Assign) {
	name := a.Name.Value
	if a.Index != nil {
		c.subscript(elementOf(a.Name, a.Index))
	}
	switch {
	case a.Naked:
	case a.Array != nil:
		c.setArray(name, value{kind: valueText})
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				c.subscript(elementOf(a.Name, e.Index))
			}
			if e.Value == nil {
				continue
			}
			for _, w := range c.braces([]*syntax.Word{e.Value}) {
				c.value(w)
				c.setArray(name, c.itemOf(w))
			}
		}
	default:
		c.value(a.Value)
		v := c.valueOf(a.Value)
		if a.Append && v.kind == valueText {
			if v.kind = valueUnknown; numbers.MatchString(v.text) {
				v.kind = valueNumber
			}
		}
		if a.Index != nil {
			c.setArray(name, v)
			return
		}
		c.set(name, v)
	}
}

// value reads a word that becomes the value of a variable. Where it is spelt
// out it is looked at here, because the place of use does not show it: there,
// the shell may split it into words and expand patterns in it.
func (c *classifier) value(w *syntax.Word) {
	if w == nil {
		return
	}
	a := c.arg(w)
	if a.dynamic {
		return
	}
	c.argument(a, filesystem.AccessRead)
	words := strings.Fields(a.text)
	for _, word := range words {
		if pattern := globs(word); pattern && !a.pattern || len(words) > 1 {
			c.argument(arg{text: word, pattern: pattern}, filesystem.AccessRead)
		}
	}
}

// substitutions reads the commands within a word or another node.
func (c *classifier) substitutions(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			c.subshell(n.Stmts)
			return false
		case *syntax.ProcSubst:
			in := c.stdin
			c.stdin = stdin{piped: true}
			c.subshell(n.Stmts)
			c.stdin = in
			return false
		case *syntax.ArithmExp:
			c.arithmetic(n.X)
			return false
		case *syntax.ParamExp:
			c.expansion(n)
			if n.Exp != nil && n.Exp.Word != nil {
				c.substitutions(n.Exp.Word)
			}
			if n.Repl != nil {
				for _, w := range []*syntax.Word{n.Repl.Orig, n.Repl.With} {
					if w != nil {
						c.substitutions(w)
					}
				}
			}
			return false
		}
		return true
	})
}

func union(a, b []string) []string {
	all := slices.Clip(a)
	for _, dir := range b {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}
