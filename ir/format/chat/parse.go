package chat

import (
	"slices"
	"strconv"
)

// node is a statement or an expression with its line.
type node struct {
	op    operation
	line  int
	text  string // a name, an operator, text of the output
	value any    // of a literal
	kids  []*node
	names []string // parameters of a macro, keywords of a call
	body  []*node
	other []*node // the else part
}

type operation int

const (
	opText operation = iota
	opOutput
	opFor // kids: the iterable, the condition or nil; names: targets
	opIf  // kids: the condition
	opSet // kids: the value; names: targets, or text and names[0] for an attribute
	opSetBlock
	opMacro // kids: default values, nil for none
	opBreak
	opContinue
	opGeneration
	opFilterBlock // kids: the filters of filteredName
	opLiteral
	opName
	opList
	opTuple
	opDict      // kids: keys and values in turn
	opAttribute // kids: the object
	opIndex     // kids: the object, the index
	opSlice     // kids: the object, start, stop, step, each or nil
	opCall      // kids: the function, arguments; the last of them are those named in names
	opFilter    // text: the name; kids: the value, arguments
	opTest      // text: the name; kids as those of a filter
	opNot
	opAnd
	opOr
	opChoose  // kids: the condition, the value, the other value or nil
	opUnary   // text
	opBinary  // text
	opCompare // names: operators; kids: operands
)

// maxDepth bounds the nesting of a template and of calls of macros.
const maxDepth = 100

// cursor reads tokens. The first error stays in err and moves the cursor to the end.
type cursor struct {
	tokens []token
	at     int
	err    error
}

func (c *cursor) now() token   { return c.tokens[c.at] }
func (c *cursor) after() token { return c.tokens[min(c.at+1, len(c.tokens)-1)] }
func (c *cursor) next() token  { t := c.now(); c.at = min(c.at+1, len(c.tokens)-1); return t }

// is reports whether the next token is a sign or a name of a text.
func (c *cursor) is(texts ...string) bool {
	t := c.now()
	return (t.kind == kindSign || t.kind == kindName) && slices.Contains(texts, t.text)
}

// take skips the next token if it is a given sign or name.
func (c *cursor) take(text string) bool {
	if !c.is(text) {
		return false
	}
	c.next()
	return true
}

// stop ends parsing with an error, unless there is one already.
func (c *cursor) stop(err error) {
	if c.err == nil {
		c.err = err
	}
	c.at = len(c.tokens) - 1
}

// fail stops at the line of the next token.
func (c *cursor) fail(text string, args ...any) {
	c.stop(at(c.now().line, failf(ErrSyntax, text, args...)))
}

func (c *cursor) expect(text string) {
	if !c.take(text) {
		c.fail("%q is expected, and there is %q", text, c.now().text)
	}
}

func (c *cursor) expectClose() {
	if c.now().kind != kindClose {
		c.fail("the tag does not end at %q", c.now().text)
	}
	c.next()
}

func (c *cursor) name() string {
	if c.now().kind != kindName {
		c.fail("a name is expected, and there is %q", c.now().text)
	}
	return c.next().text
}

// parser reads a template by recursive descent. After an error every rule ends, since its cursor is at
// the end of the template; what rules return then is not used.
type parser struct {
	cursor
	depth int
	loops int
}

// enter counts the nesting; leave must follow.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.stop(&Error{p.now().line, ErrLimit, "the template is nested too deeply"})
	}
}

func (p *parser) leave() { p.depth-- }

// body reads the end of a tag and statements up to a block with one of the given names.
func (p *parser) body(ends ...string) []*node {
	p.expectClose()
	return p.block(ends...)
}

// block reads statements up to a block with one of the given names, and stops at the name.
func (p *parser) block(ends ...string) []*node {
	p.enter()
	defer p.leave()
	var out []*node
	for {
		t := p.next()
		n := &node{op: opText, text: t.text}
		switch {
		case t.kind == kindEnd && len(ends) == 0:
			return out
		case t.kind == kindEnd:
			p.fail("%q is missing", ends[len(ends)-1])
			return nil
		case t.kind == kindText:
		case t.text == "{{":
			n = &node{op: opOutput, kids: []*node{p.expressions()}}
			p.expectClose()
		case p.is(ends...):
			return out
		default:
			n = p.statement()
		}
		n.line = t.line
		out = append(out, n)
	}
}

// end reads the name of the end of the block of n, which it returns.
func (p *parser) end(n *node, name string) *node {
	p.expect(name)
	p.expectClose()
	return n
}

func (p *parser) statement() *node {
	switch name := p.name(); name {
	case "for":
		return p.forLoop()
	case "if":
		return p.condition()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "generation":
		return p.end(&node{op: opGeneration, body: p.body("endgeneration")}, "endgeneration")
	case "filter":
		return p.filterBlock()
	case "break":
		return p.jump(opBreak, name)
	case "continue":
		return p.jump(opContinue, name)
	default:
		p.fail("the statement %q is not known here", name)
	}
	return &node{}
}

func (p *parser) jump(op operation, name string) *node {
	if p.loops == 0 {
		p.fail("%s is outside of a loop", name)
	}
	p.expectClose()
	return &node{op: op}
}

// filteredName is the variable of the text of a filter block. No template can write it.
const filteredName = " filtered"

func (p *parser) filterBlock() *node {
	p.at-- // the name of the statement replaces the | of the first filter
	p.tokens[p.at] = token{kindSign, "|", p.now().line}
	value := p.filters(&node{op: opName, line: p.now().line, text: filteredName})
	return p.end(&node{op: opFilterBlock, kids: []*node{value}, body: p.body("endfilter")}, "endfilter")
}

// targets reads names with commas.
func (p *parser) targets() []string {
	bracket := p.take("(")
	names := []string{p.name()}
	for p.take(",") {
		names = append(names, p.name())
	}
	if bracket {
		p.expect(")")
	}
	return names
}

func (p *parser) forLoop() *node {
	n := &node{op: opFor, names: p.targets()}
	p.expect("in")
	n.kids = []*node{p.or(), nil} // without a choice: an if belongs to the loop
	if p.take("if") {
		n.kids[1] = p.expression()
	}
	p.loops++
	n.body = p.body("else", "endfor")
	p.loops--
	if p.take("else") {
		n.other = p.body("endfor")
	}
	return p.end(n, "endfor")
}

// condition reads the condition of an if or elif.
func (p *parser) condition() *node {
	p.enter()
	defer p.leave()
	n := &node{op: opIf, kids: []*node{p.expressions()}}
	n.body = p.body("elif", "else", "endif")
	line := p.now().line
	if p.take("elif") {
		rest := p.condition()
		rest.line = line
		n.other = []*node{rest}
		return n
	}
	if p.take("else") {
		n.other = p.body("endif")
	}
	return p.end(n, "endif")
}

func (p *parser) set() *node {
	n := &node{op: opSet, names: p.targets()}
	if len(n.names) == 1 && p.take(".") {
		n.text = p.name()
	}
	if p.take("=") {
		n.kids = []*node{p.expressions()}
		p.expectClose()
		return n
	}
	n.op, n.body = opSetBlock, p.body("endset")
	return p.end(n, "endset")
}

func (p *parser) macro() *node {
	n := &node{op: opMacro, text: p.name()}
	p.expect("(")
	p.list(")", func() {
		n.names = append(n.names, p.name())
		var value *node
		if p.take("=") {
			value = p.expression()
		}
		n.kids = append(n.kids, value)
	})
	loops := p.loops
	p.loops = 0
	n.body = p.body("endmacro")
	p.loops = loops
	return p.end(n, "endmacro")
}

// list reads items with commas up to a sign, which it skips.
func (p *parser) list(end string, item func()) {
	for p.err == nil && !p.take(end) {
		item()
		if !p.take(",") && !p.is(end) {
			p.fail("%q is missing", end)
		}
	}
}

// expressions reads an expression, or a tuple without parentheses.
func (p *parser) expressions() *node {
	first := p.expression()
	if !p.is(",") {
		return first
	}
	tuple := &node{op: opTuple, line: first.line, kids: []*node{first}}
	for p.take(",") && p.now().kind != kindClose && !p.is(")") {
		tuple.kids = append(tuple.kids, p.expression())
	}
	return tuple
}

// expression reads a choice: value if condition else other.
func (p *parser) expression() *node {
	p.enter()
	defer p.leave()
	value := p.or()
	for p.is("if") {
		line := p.next().line
		value = &node{op: opChoose, line: line, kids: []*node{p.or(), value, nil}}
		if p.take("else") {
			value.kids[2] = p.expression()
		}
	}
	return value
}

// chain reads operands of an operator that is used from the left.
func (p *parser) chain(operand func() *node, op operation, texts ...string) *node {
	left := operand()
	for p.is(texts...) {
		t := p.next()
		left = &node{op: op, line: t.line, text: t.text, kids: []*node{left, operand()}}
	}
	return left
}

func (p *parser) or() *node  { return p.chain(p.and, opOr, "or") }
func (p *parser) and() *node { return p.chain(p.not, opAnd, "and") }

func (p *parser) not() *node {
	if !p.is("not") {
		return p.compare()
	}
	p.enter()
	defer p.leave()
	line := p.next().line
	return &node{op: opNot, line: line, kids: []*node{p.not()}}
}

func (p *parser) compare() *node {
	first := p.sum()
	n := &node{op: opCompare, line: first.line, kids: []*node{first}}
	for {
		t := p.now()
		switch {
		case p.is("==", "!=", "<", ">", "<=", ">=", "in"):
		case p.is("not") && p.after().text == "in":
			p.next()
			t.text = "not in"
		case len(n.names) == 0:
			return first
		default:
			return n
		}
		p.next()
		n.names, n.kids = append(n.names, t.text), append(n.kids, p.sum())
	}
}

func (p *parser) sum() *node     { return p.chain(p.joined, opBinary, "+", "-") }
func (p *parser) joined() *node  { return p.chain(p.product, opBinary, "~") }
func (p *parser) product() *node { return p.chain(p.power, opBinary, "*", "/", "//", "%") }
func (p *parser) power() *node   { return p.chain(p.filtered, opBinary, "**") }

// filtered reads an operand with its signs and the filters that take all of it.
func (p *parser) filtered() *node { return p.filters(p.unary()) }

// unary reads an operand with its signs.
func (p *parser) unary() *node {
	p.enter()
	defer p.leave()
	if !p.is("-", "+") {
		return p.postfix(p.primary())
	}
	t := p.next()
	return p.postfix(&node{op: opUnary, line: t.line, text: t.text, kids: []*node{p.unary()}})
}

// constants are the names of literals.
var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() *node {
	t := p.next()
	switch t.kind {
	case kindString:
		for p.now().kind == kindString {
			t.text += p.next().text
		}
		return &node{op: opLiteral, line: t.line, value: t.text}
	case kindInt, kindFloat:
		return p.number(t)
	case kindName:
		if v, ok := constants[t.text]; ok {
			return &node{op: opLiteral, line: t.line, value: v}
		}
		return &node{op: opName, line: t.line, text: t.text}
	}
	switch t.text {
	case "(":
		return p.parenthesis(t.line)
	case "[":
		return p.items(&node{op: opList, line: t.line}, "]")
	case "{":
		return p.items(&node{op: opDict, line: t.line}, "}")
	}
	p.stop(at(t.line, failf(ErrSyntax, "an expression is expected, and there is %q", t.text)))
	return &node{}
}

// number returns the literal of a token of kind kindInt or kindFloat.
func (p *parser) number(t token) *node {
	n := &node{op: opLiteral, line: t.line}
	var err error
	if t.kind == kindInt {
		n.value, err = strconv.ParseInt(t.text, 10, 64)
	} else {
		n.value, err = strconv.ParseFloat(t.text, 64)
	}
	if err != nil {
		p.fail("the number %.50s is too large", t.text)
	}
	return n
}

func (p *parser) parenthesis(line int) *node {
	if p.take(")") {
		return &node{op: opTuple, line: line}
	}
	e := p.expressions()
	p.expect(")")
	return e
}

// items reads those of a list or a dict.
func (p *parser) items(n *node, end string) *node {
	p.list(end, func() {
		n.kids = append(n.kids, p.expression())
		if n.op == opDict {
			p.expect(":")
			n.kids = append(n.kids, p.expression())
		}
	})
	return n
}

// postfix reads attributes, indices and calls.
func (p *parser) postfix(e *node) *node {
	for {
		t := p.now()
		switch {
		case p.take("."):
			if p.now().kind != kindName && p.now().kind != kindInt {
				p.fail("an attribute is expected")
			}
			name := p.next()
			e = &node{op: opAttribute, line: t.line, text: name.text, kids: []*node{e}}
			if n, err := strconv.ParseInt(name.text, 10, 64); err == nil {
				e.op, e.kids = opIndex, append(e.kids, &node{op: opLiteral, line: t.line, value: n})
			}
		case p.take("["):
			e = p.index(e, t.line)
		case p.is("("):
			e = &node{op: opCall, line: t.line, kids: []*node{e}}
			p.arguments(e)
		default:
			return e
		}
	}
}

// index reads [i] or [start:stop:step].
func (p *parser) index(object *node, line int) *node {
	n := &node{op: opSlice, line: line, kids: []*node{object, nil, nil, nil}}
	for part := 1; part <= 3; part++ {
		if !p.is(":", "]") {
			n.kids[part] = p.expressions()
		}
		if p.take("]") {
			if part > 1 {
				return n
			}
			if n.kids[1] == nil {
				p.fail("an index is missing")
			}
			n.op, n.kids = opIndex, n.kids[:2]
			return n
		}
		if part < 3 {
			p.expect(":")
		}
	}
	p.fail("%q is missing", "]")
	return n
}

// arguments reads those of a call, with their parentheses.
func (p *parser) arguments(n *node) {
	p.expect("(")
	p.list(")", func() {
		if p.now().kind == kindName && p.after().text == "=" {
			n.names = append(n.names, p.next().text)
			p.next()
		} else if len(n.names) > 0 {
			p.fail("an argument without a name follows one with a name")
		}
		n.kids = append(n.kids, p.expression())
	})
}

// filters reads filters and tests.
func (p *parser) filters(e *node) *node {
	for {
		n := &node{line: p.now().line, kids: []*node{e}}
		switch {
		case p.take("|"):
			n.op, n.text = opFilter, p.name()
			if p.is("(") {
				p.arguments(n)
			}
			e = n
		case p.take("is"):
			e = n
			if n.op = opTest; p.take("not") {
				e = &node{op: opNot, line: n.line, kids: []*node{n}}
			}
			p.test(n)
		default:
			return e
		}
	}
}

// test reads the name of a test, and its argument, which needs no parentheses.
func (p *parser) test(n *node) {
	n.text = p.next().text
	t := p.now()
	switch {
	case p.is("("):
		p.arguments(n)
	case t.kind == kindString, t.kind == kindInt, t.kind == kindFloat, p.is("[", "{"),
		t.kind == kindName && !p.is("and", "or", "not", "else", "if", "is", "in"):
		n.kids = append(n.kids, p.postfix(p.primary()))
	}
}
