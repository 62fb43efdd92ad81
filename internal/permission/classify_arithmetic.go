package permission

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates more than it seems to. An arithmetic expression evaluates
// the values of the variables it names as expressions again, an expression
// may have subscripts, and a subscript may hold a command substitution: with
// x='a[$(rm -r .)]', echo $((x)) removes files. Builtins that take the name of
// a variable evaluate a subscript in it, too. Nothing of this kind passes here
// unless it can be seen to be a number or a plain name.

// hidden notes text that bash evaluates and that may hold a command.
func (c *classifier) hidden() { c.unclear("evaluates text that may hold a command") }

// arithmetic reads an arithmetic expression.
func (c *classifier) arithmetic(x syntax.ArithmExpr) {
	switch n := x.(type) {
	case nil:
	case *syntax.Word:
		c.operand(n)
	case *syntax.ParenArithm:
		c.arithmetic(n.X)
	case *syntax.UnaryArithm:
		c.arithmetic(n.X)
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			c.setElement(n.X)
		}
	case *syntax.BinaryArithm:
		if n.Op != syntax.Assgn {
			c.arithmetic(n.X)
		}
		c.arithmetic(n.Y)
		if slices.Contains(arithmeticAssigns, n.Op) {
			c.setElement(n.X)
		}
	default:
		c.hidden()
	}
}

var arithmeticAssigns = []syntax.BinAritOperator{
	syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn,
	syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
}

// setElement notes that an expression stores a number in a variable or in an
// element of an array.
func (c *classifier) setElement(x syntax.ArithmExpr) {
	w, ok := x.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		c.hidden()
		return
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if syntax.ValidName(p.Value) {
			c.set(p.Value, value{kind: valueNumber})
			return
		}
	case *syntax.ParamExp:
		if !p.Dollar.IsValid() && plainParameter(p) {
			c.subscript(p)
			c.setArray(p.Param.Value, value{kind: valueNumber})
			return
		}
	}
	c.hidden()
}

// operand reads a word within an arithmetic expression: its text is evaluated.
func (c *classifier) operand(w *syntax.Word) {
	c.substitutions(w)
	if names, ok := c.numericParts(w.Parts); ok {
		c.wantNumbers(names)
		return
	}
	if len(w.Parts) == 1 {
		switch p := w.Parts[0].(type) {
		case *syntax.Lit:
			if syntax.ValidName(p.Value) {
				c.wantNumbers([]string{p.Value})
				return
			}
		case *syntax.ParamExp:
			// An element such as a[i]: the subscript was looked at.
			if !p.Dollar.IsValid() && plainParameter(p) {
				c.wantNumbers([]string{p.Param.Value})
				return
			}
		}
	}
	if !spelledOut(w) {
		c.hidden()
		return
	}
	c.arithmeticText(c.plain(w).text)
}

// arithmeticText reads an arithmetic expression that stands in quotes.
func (c *classifier) arithmeticText(text string) {
	if numbers.MatchString(text) {
		return
	}
	if strings.ContainsAny(text, "$`\"'\\[") {
		c.hidden()
		return
	}
	x, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Arithmetic(strings.NewReader(text))
	if err != nil || x == nil {
		c.hidden()
		return
	}
	c.arithmetic(x)
}

// wantNumbers notes a question unless all of the variables hold numbers.
func (c *classifier) wantNumbers(names []string) {
	for _, name := range names {
		if c.given(name) && !c.number(name) || !c.given(name) && !slices.Contains(numberParameters, name) {
			c.hidden()
		}
	}
}

// keys are texts in which nothing is expanded.
var keys = regexp.MustCompile(`^[A-Za-z0-9_./:-]+$`)

// subscript reads what stands in brackets behind the name of an array. Bash
// expands the key of an array with keys, and evaluates nothing; but within an
// arithmetic expression it expands it twice.
func (c *classifier) subscript(p *syntax.ParamExp) {
	w, ok := p.Index.(*syntax.Word)
	if !ok {
		c.arithmetic(p.Index)
		return
	}
	keyed := c.vars.keyed[p.Param.Value]
	switch lit := w.Lit(); {
	case lit == "@" || lit == "*", keyed && keys.MatchString(lit):
	case keyed && p.Dollar.IsValid():
		c.substitutions(w)
	default:
		c.operand(w)
	}
}

// elementOf returns the element that an assignment stores to.
func elementOf(name *syntax.Lit, index syntax.ArithmExpr) *syntax.ParamExp {
	return &syntax.ParamExp{Dollar: name.Pos(), Param: name, Index: index}
}

// test reads what stands between [[ and ]].
func (c *classifier) test(x syntax.TestExpr) {
	switch n := x.(type) {
	case *syntax.Word:
		c.substitutions(n)
	case *syntax.ParenTest:
		c.test(n.X)
	case *syntax.UnaryTest:
		w, word := n.X.(*syntax.Word)
		if word && (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) {
			c.arrayName(c.arg(w))
			return
		}
		c.test(n.X)
	case *syntax.BinaryTest:
		x, left := n.X.(*syntax.Word)
		y, right := n.Y.(*syntax.Word)
		if left && right && slices.Contains(numberTests, n.Op) {
			c.operand(x)
			c.operand(y)
			return
		}
		c.test(n.X)
		c.test(n.Y)
	default:
		c.hidden()
	}
}

var numberTests = []syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}

// expansion reads ${...}, apart from the commands within it.
func (c *classifier) expansion(p *syntax.ParamExp) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	all := false
	if w, ok := p.Index.(*syntax.Word); ok {
		all = w.Lit() == "@" || w.Lit() == "*"
	}
	if p.Index != nil {
		c.subscript(p)
	}
	if p.Excl && p.Names == 0 && !all {
		c.indirect(name, p)
	}
	if p.Slice != nil {
		c.arithmetic(p.Slice.Offset)
		c.arithmetic(p.Slice.Length)
	}
	if e := p.Exp; e != nil {
		switch {
		case e.Op == syntax.OtherParamOps && (e.Word == nil || e.Word.Lit() == "P"):
			// The value is expanded like a prompt.
			c.hidden()
		case (e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull) && p.Index != nil:
			c.setArray(name, c.valueOf(e.Word))
		case e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull:
			c.set(name, c.valueOf(e.Word))
		}
	}
}

// indirect reads ${!name}: the value of name is the name of what is shown.
func (c *classifier) indirect(name string, p *syntax.ParamExp) {
	values, ok := c.spelled(name)
	for _, v := range values {
		ok = ok && syntax.ValidName(v)
	}
	if !ok || p.Index != nil {
		c.hidden()
		return
	}
	c.ask("shows a variable whose name another one holds")
}

// let reads the words of let. They are also patterns for file names.
func (c *classifier) let(n *syntax.LetClause) {
	for _, x := range n.Exprs {
		syntax.Walk(x, func(n syntax.Node) bool {
			b, ok := n.(*syntax.BinaryArithm)
			if ok && slices.Contains([]syntax.BinAritOperator{syntax.Mul, syntax.MulAssgn, syntax.TernQuest}, b.Op) {
				c.hidden()
			}
			return true
		})
		c.arithmetic(x)
	}
}
