package chat

import (
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

type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int
}

func (p *parser) now() token  { return p.tokens[p.at] }
func (p *parser) next() token { t := p.now(); p.at = min(p.at+1, len(p.tokens)-1); return t }

// is reports whether the next token is a sign or a name of a text.
func (p *parser) is(texts ...string) bool {
	t := p.now()
	for _, text := range texts {
		if (t.kind == kindSign || t.kind == kindName) && t.text == text {
			return true
		}
	}
	return false
}

// take skips the next token if it is a given sign or name.
func (p *parser) take(text string) bool {
	if !p.is(text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) fail(text string, args ...any) error {
	return at(p.now().line, failf(ErrSyntax, text, args...))
}

func (p *parser) expect(text string) error {
	if !p.take(text) {
		return p.fail("%q is expected, and there is %q", text, p.now().text)
	}
	return nil
}

func (p *parser) expectClose() error {
	if p.now().kind != kindClose {
		return p.fail("the tag does not end at %q", p.now().text)
	}
	p.next()
	return nil
}

func (p *parser) name() (string, error) {
	if p.now().kind != kindName {
		return "", p.fail("a name is expected, and there is %q", p.now().text)
	}
	return p.next().text, nil
}

// enter counts the nesting; leave must follow.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return &Error{p.now().line, ErrLimit, "the template is nested too deeply"}
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// block reads statements up to a block with one of the given names, and stops at the name.
func (p *parser) block(ends ...string) ([]*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var out []*node
	for {
		t := p.next()
		switch {
		case t.kind == kindEnd && len(ends) == 0:
			return out, nil
		case t.kind == kindEnd:
			return nil, p.fail("%q is missing", ends[len(ends)-1])
		case t.kind == kindText:
			out = append(out, &node{op: opText, line: t.line, text: t.text})
			continue
		case t.text == "{{":
			e, err := p.expressions()
			if err != nil {
				return nil, err
			}
			out = append(out, &node{op: opOutput, line: t.line, kids: []*node{e}})
			if err := p.expectClose(); err != nil {
				return nil, err
			}
			continue
		}
		if p.is(ends...) {
			return out, nil
		}
		n, err := p.statement()
		if err != nil {
			return nil, err
		}
		n.line = t.line
		out = append(out, n)
	}
}

// end reads the name of the end of a block.
func (p *parser) end(name string) error {
	if err := p.expect(name); err != nil {
		return err
	}
	return p.expectClose()
}

func (p *parser) statement() (*node, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	switch name {
	case "for":
		return p.forLoop()
	case "if":
		return p.condition()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "generation":
		return p.generation()
	case "filter":
		return p.filterBlock()
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail("%s is outside of a loop", name)
		}
		if name == "break" {
			return &node{op: opBreak}, p.expectClose()
		}
		return &node{op: opContinue}, p.expectClose()
	}
	return nil, p.fail("the statement %q is not known here", name)
}

func (p *parser) generation() (*node, error) {
	if err := p.expectClose(); err != nil {
		return nil, err
	}
	body, err := p.block("endgeneration")
	if err != nil {
		return nil, err
	}
	return &node{op: opGeneration, body: body}, p.end("endgeneration")
}

// filteredName is the variable of the text of a filter block. No template can write it.
const filteredName = " filtered"

func (p *parser) filterBlock() (*node, error) {
	p.at-- // the name of the statement replaces the | of the first filter
	p.tokens[p.at] = token{kindSign, "|", p.now().line}
	value, err := p.filters(&node{op: opName, line: p.now().line, text: filteredName})
	if err != nil {
		return nil, err
	}
	n := &node{op: opFilterBlock, kids: []*node{value}}
	if err := p.expectClose(); err != nil {
		return nil, err
	}
	if n.body, err = p.block("endfilter"); err != nil {
		return nil, err
	}
	return n, p.end("endfilter")
}

// targets reads names with commas.
func (p *parser) targets() ([]string, error) {
	bracket := p.take("(")
	var names []string
	for {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if !p.take(",") {
			break
		}
	}
	if bracket {
		return names, p.expect(")")
	}
	return names, nil
}

func (p *parser) forLoop() (*node, error) {
	n := &node{op: opFor}
	var err error
	if n.names, err = p.targets(); err != nil {
		return nil, err
	}
	if err := p.expect("in"); err != nil {
		return nil, err
	}
	over, err := p.or() // without a choice: an if belongs to the loop
	if err != nil {
		return nil, err
	}
	var only *node
	if p.take("if") {
		if only, err = p.expression(); err != nil {
			return nil, err
		}
	}
	n.kids = []*node{over, only}
	if err := p.expectClose(); err != nil {
		return nil, err
	}
	p.loops++
	n.body, err = p.block("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	if p.take("else") {
		if err := p.expectClose(); err != nil {
			return nil, err
		}
		if n.other, err = p.block("endfor"); err != nil {
			return nil, err
		}
	}
	return n, p.end("endfor")
}

// condition reads the condition of an if or elif.
func (p *parser) condition() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	test, err := p.expressions()
	if err != nil {
		return nil, err
	}
	n := &node{op: opIf, kids: []*node{test}}
	if err := p.expectClose(); err != nil {
		return nil, err
	}
	if n.body, err = p.block("elif", "else", "endif"); err != nil {
		return nil, err
	}
	line := p.now().line
	switch {
	case p.take("elif"):
		rest, err := p.condition()
		if err != nil {
			return nil, err
		}
		rest.line = line
		n.other = []*node{rest}
		return n, nil
	case p.take("else"):
		if err := p.expectClose(); err != nil {
			return nil, err
		}
		if n.other, err = p.block("endif"); err != nil {
			return nil, err
		}
	}
	return n, p.end("endif")
}

func (p *parser) set() (*node, error) {
	n := &node{op: opSet}
	var err error
	if n.names, err = p.targets(); err != nil {
		return nil, err
	}
	if len(n.names) == 1 && p.take(".") {
		if n.text, err = p.name(); err != nil {
			return nil, err
		}
	}
	if p.take("=") {
		value, err := p.expressions()
		if err != nil {
			return nil, err
		}
		n.kids = []*node{value}
		return n, p.expectClose()
	}
	n.op = opSetBlock
	if err := p.expectClose(); err != nil {
		return nil, err
	}
	if n.body, err = p.block("endset"); err != nil {
		return nil, err
	}
	return n, p.end("endset")
}

func (p *parser) macro() (*node, error) {
	n := &node{op: opMacro}
	var err error
	if n.text, err = p.name(); err != nil {
		return nil, err
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	for !p.take(")") {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		var value *node
		if p.take("=") {
			if value, err = p.expression(); err != nil {
				return nil, err
			}
		}
		n.names, n.kids = append(n.names, name), append(n.kids, value)
		if !p.take(",") && !p.is(")") {
			return nil, p.fail("a ) is missing")
		}
	}
	if err := p.expectClose(); err != nil {
		return nil, err
	}
	loops := p.loops
	p.loops = 0
	n.body, err = p.block("endmacro")
	p.loops = loops
	if err != nil {
		return nil, err
	}
	return n, p.end("endmacro")
}

// expressions reads an expression, or a tuple without parentheses.
func (p *parser) expressions() (*node, error) {
	first, err := p.expression()
	if err != nil || !p.is(",") {
		return first, err
	}
	tuple := &node{op: opTuple, line: first.line, kids: []*node{first}}
	for p.take(",") {
		if p.now().kind == kindClose || p.is(")") {
			break
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		tuple.kids = append(tuple.kids, e)
	}
	return tuple, nil
}

// expression reads a choice: value if condition else other.
func (p *parser) expression() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	value, err := p.or()
	for err == nil && p.is("if") {
		line := p.next().line
		n := &node{op: opChoose, line: line, kids: []*node{nil, value, nil}}
		if n.kids[0], err = p.or(); err != nil {
			return nil, err
		}
		if p.take("else") {
			if n.kids[2], err = p.expression(); err != nil {
				return nil, err
			}
		}
		value = n
	}
	return value, err
}

// chain reads operands of an operator that is used from the left.
func (p *parser) chain(operand func() (*node, error), op operation, texts ...string) (*node, error) {
	left, err := operand()
	for err == nil && p.is(texts...) {
		t := p.next()
		var right *node
		if right, err = operand(); err == nil {
			left = &node{op: op, line: t.line, text: t.text, kids: []*node{left, right}}
		}
	}
	return left, err
}

func (p *parser) or() (*node, error)  { return p.chain(p.and, opOr, "or") }
func (p *parser) and() (*node, error) { return p.chain(p.not, opAnd, "and") }

func (p *parser) not() (*node, error) {
	if !p.is("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	line := p.next().line
	e, err := p.not()
	return &node{op: opNot, line: line, kids: []*node{e}}, err
}

func (p *parser) compare() (*node, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	n := &node{op: opCompare, line: first.line, kids: []*node{first}}
	for {
		t := p.now()
		switch {
		case p.is("==", "!=", "<", ">", "<=", ">=", "in"):
			p.next()
		case p.is("not") && p.tokens[min(p.at+1, len(p.tokens)-1)].text == "in":
			p.next()
			p.next()
			t.text = "not in"
		default:
			if len(n.names) == 0 {
				return first, nil
			}
			return n, nil
		}
		e, err := p.sum()
		if err != nil {
			return nil, err
		}
		n.names, n.kids = append(n.names, t.text), append(n.kids, e)
	}
}

func (p *parser) sum() (*node, error)     { return p.chain(p.joined, opBinary, "+", "-") }
func (p *parser) joined() (*node, error)  { return p.chain(p.product, opBinary, "~") }
func (p *parser) product() (*node, error) { return p.chain(p.power, opBinary, "*", "/", "//", "%") }

func (p *parser) power() (*node, error) {
	return p.chain(func() (*node, error) { return p.unary(true) }, opBinary, "**")
}

// unary reads an operand with its signs; a filter after it takes all of that.
func (p *parser) unary(filtered bool) (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var e *node
	var err error
	if p.is("-", "+") {
		t := p.next()
		e = &node{op: opUnary, line: t.line, text: t.text, kids: []*node{nil}}
		e.kids[0], err = p.unary(false)
	} else {
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	if err == nil && filtered {
		e, err = p.filters(e)
	}
	return e, err
}

// constants are the names of literals.
var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() (*node, error) {
	t := p.next()
	literal := func(v any) (*node, error) { return &node{op: opLiteral, line: t.line, value: v}, nil }
	switch t.kind {
	case kindString:
		for p.now().kind == kindString {
			t.text += p.next().text
		}
		return literal(t.text)
	case kindInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, p.fail("the number %.50s is too large", t.text)
		}
		return literal(n)
	case kindFloat:
		x, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fail("the number %.50s is too large", t.text)
		}
		return literal(x)
	case kindName:
		if v, ok := constants[t.text]; ok {
			return literal(v)
		}
		return &node{op: opName, line: t.line, text: t.text}, nil
	}
	switch t.text {
	case "(":
		return p.parenthesis(t.line)
	case "[":
		return p.items(&node{op: opList, line: t.line}, "]")
	case "{":
		return p.items(&node{op: opDict, line: t.line}, "}")
	}
	return nil, at(t.line, failf(ErrSyntax, "an expression is expected, and there is %q", t.text))
}

func (p *parser) parenthesis(line int) (*node, error) {
	if p.take(")") {
		return &node{op: opTuple, line: line}, nil
	}
	e, err := p.expressions()
	if err != nil {
		return nil, err
	}
	return e, p.expect(")")
}

// items reads those of a list or a dict.
func (p *parser) items(n *node, end string) (*node, error) {
	for !p.take(end) {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, e)
		if n.op == opDict {
			if err := p.expect(":"); err != nil {
				return nil, err
			}
			if e, err = p.expression(); err != nil {
				return nil, err
			}
			n.kids = append(n.kids, e)
		}
		if !p.take(",") && !p.is(end) {
			return nil, p.fail("%q is missing", end)
		}
	}
	return n, nil
}

// postfix reads attributes, indices and calls.
func (p *parser) postfix(e *node) (*node, error) {
	for {
		t := p.now()
		switch {
		case p.take("."):
			if p.now().kind != kindName && p.now().kind != kindInt {
				return nil, p.fail("an attribute is expected")
			}
			name := p.next()
			e = &node{op: opAttribute, line: t.line, text: name.text, kids: []*node{e}}
			if n, err := strconv.ParseInt(name.text, 10, 64); err == nil {
				e.op, e.kids = opIndex, append(e.kids, &node{op: opLiteral, line: t.line, value: n})
			}
		case p.take("["):
			n, err := p.index(e, t.line)
			if err != nil {
				return nil, err
			}
			e = n
		case p.is("("):
			n := &node{op: opCall, line: t.line, kids: []*node{e}}
			if err := p.arguments(n); err != nil {
				return nil, err
			}
			e = n
		default:
			return e, nil
		}
	}
}

// index reads [i] or [start:stop:step].
func (p *parser) index(object *node, line int) (*node, error) {
	n := &node{op: opSlice, line: line, kids: []*node{object, nil, nil, nil}}
	for part := 1; ; part++ {
		if !p.is(":", "]") {
			e, err := p.expressions()
			if err != nil {
				return nil, err
			}
			n.kids[part] = e
		}
		if p.take("]") {
			if part == 1 {
				if n.kids[1] == nil {
					return nil, p.fail("an index is missing")
				}
				n.op, n.kids = opIndex, n.kids[:2]
			}
			return n, nil
		}
		if part == 3 {
			return nil, p.fail("a ] is missing")
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
	}
}

// arguments reads those of a call, with their parentheses.
func (p *parser) arguments(n *node) error {
	if err := p.expect("("); err != nil {
		return err
	}
	for !p.take(")") {
		if p.now().kind == kindName && p.tokens[min(p.at+1, len(p.tokens)-1)].text == "=" {
			n.names = append(n.names, p.next().text)
			p.next()
		} else if len(n.names) > 0 {
			return p.fail("an argument without a name follows one with a name")
		}
		e, err := p.expression()
		if err != nil {
			return err
		}
		n.kids = append(n.kids, e)
		if !p.take(",") && !p.is(")") {
			return p.fail("a ) is missing")
		}
	}
	return nil
}

// filters reads filters and tests.
func (p *parser) filters(e *node) (*node, error) {
	for {
		t := p.now()
		n := &node{op: opFilter, line: t.line, kids: []*node{e}}
		negate := false
		var err error
		switch {
		case p.take("|"):
			if n.text, err = p.name(); err != nil {
				return nil, err
			}
			if p.is("(") {
				err = p.arguments(n)
			}
		case p.take("is"):
			n.op = opTest
			negate = p.take("not")
			err = p.test(n)
		default:
			return e, nil
		}
		if err != nil {
			return nil, err
		}
		e = n
		if negate {
			e = &node{op: opNot, line: t.line, kids: []*node{n}}
		}
	}
}

// test reads the name of a test, and its argument, which needs no parentheses.
func (p *parser) test(n *node) error {
	n.text = p.next().text
	if p.is("(") {
		return p.arguments(n)
	}
	t := p.now()
	operand := t.kind == kindString || t.kind == kindInt || t.kind == kindFloat || p.is("[", "{") ||
		t.kind == kindName && !p.is("and", "or", "not", "else", "if", "is", "in")
	if !operand {
		return nil
	}
	e, err := p.primary()
	if err == nil {
		e, err = p.postfix(e)
	}
	n.kids = append(n.kids, e)
	return err
}
