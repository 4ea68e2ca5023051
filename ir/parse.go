package ir

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// SyntaxError reports where a text is not the text form of a graph.
type SyntaxError struct {
	Line, Col int // from 1; Col counts bytes
	Msg       string
	// Err is [ErrSyntax], or the [*OpError] of an op that was rejected.
	Err error
}

// Error returns "3:14: ...".
func (e *SyntaxError) Error() string { return format.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// maxNesting limits the nesting depth of graphs.
const maxNesting = 64

// Parse reads the text form that [Graph.String] writes; the result prints as the same text (round
// trip). It also accepts value names of letters, digits and underscores, free white space, and
// comments that start with "//". It infers the result types and compares them with the written
// ones. The error is a [*SyntaxError]. Untrusted text is safe: memory use is proportional to its
// length.
func Parse(text string) (*Graph, error) {
	p := &parser{text: text, splats: &splatBudget{}}
	g := p.graph(0)
	p.space()
	if p.pos < len(p.text) {
		p.failf(p.pos, "text follows the graph")
	}
	if p.err != nil {
		return nil, p.err
	}
	return g, nil
}

// parser reads text from pos on. After the first error pos is the end of the text, where nothing
// matches and every loop ends.
type parser struct {
	text   string
	pos    int
	splats *splatBudget
	err    *SyntaxError
}

// block is a graph being read.
type block struct {
	b      *Builder
	values map[string]Value
	depth  int
}

func (p *parser) failf(at int, text string, args ...any) {
	p.fail(at, ErrSyntax, format.Sprintf(text, args...))
}

func (p *parser) fail(at int, err error, msg string) {
	if p.err != nil {
		return
	}
	before := p.text[:at]
	p.err = &SyntaxError{
		Line: strings.Count(before, "\n") + 1,
		Col:  at - strings.LastIndexByte(before, '\n'),
		Msg:  msg,
		Err:  err,
	}
	p.pos = len(p.text)
}

// graph reads "graph "name" { statements }".
func (p *parser) graph(depth int) *Graph {
	start := p.space()
	if p.word() != "graph" {
		p.failf(start, `"graph" expected`)
	}
	if depth > maxNesting {
		p.failf(start, "graphs nested deeper than %d", maxNesting)
	}
	k := &block{b: newBuilder(p.quoted()), values: map[string]Value{}, depth: depth}
	k.b.placeless = true
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		at := p.space()
		p.statement(k)
		if err := k.b.err; err != nil {
			p.fail(at, err, err.Error())
		}
	}
	g, err := k.b.finish()
	if err != nil {
		p.fail(start, err, err.Error())
	}
	return g
}

func (p *parser) statement(k *block) {
	at := p.space()
	if p.peek('%') {
		p.node(k)
		return
	}
	switch w := p.word(); w {
	case "output", "state":
		name := p.quoted()
		p.expect("=")
		v := p.value(k)
		if p.err == nil && w == "state" {
			k.b.SetState(name, v)
		} else if p.err == nil {
			k.b.Output(name, v)
		}
	default:
		p.failf(at, "a node, an output or a state expected")
	}
}

// node reads "%a, %b = op(…) … : types #"label"" and the subgraphs after it.
func (p *parser) node(k *block) {
	start := p.pos
	names := []string{p.valueName()}
	for p.accept(",") {
		names = append(names, p.valueName())
	}
	p.expect("=")
	at := p.space()
	var results []Value
	switch op := p.word(); op {
	case "input", "param", "state":
		results = p.port(k, op)
	case "constant":
		results = p.constant(k)
	default:
		results = p.call(k, Op(op), at)
	}
	if k.b.err == nil && p.err == nil && len(results) != len(names) {
		p.failf(start, "%d names given for %d results", len(names), len(results))
	}
	if p.err != nil || k.b.err != nil {
		return
	}
	for i, name := range names {
		if _, taken := k.values[name]; taken {
			p.failf(start, "%%%s is defined twice", name)
			return
		}
		k.values[name] = results[i]
	}
}

func (p *parser) port(k *block, word string) []Value {
	kind := InputPort
	for kind.String() != word {
		kind++
	}
	name := p.quoted()
	p.expect(":")
	t := p.typ()
	o := p.portOptions()
	if p.err != nil {
		return nil
	}
	return []Value{k.b.portWith(name, kind, o, t)}
}

// portOptions reads "init rule(number, …)" and "frozen", which are optional.
func (p *parser) portOptions() (o PortOptions) {
	if p.accept(wordInitial) {
		o.Initial.Rule = p.word()
		if p.accept("(") {
			for p.err == nil && !p.accept(")") {
				if len(o.Initial.Args) > 0 {
					p.expect(",")
				}
				at := p.space()
				o.Initial.Args = append(o.Initial.Args, p.parseFloat(at, p.number()))
			}
		}
	}
	o.Frozen = p.accept(wordFrozen)
	return o
}

func (p *parser) constant(k *block) []Value {
	at := p.space()
	text := p.literal()
	p.expect(":")
	t := p.typ()
	k.b.Label(p.label())
	if p.err != nil {
		return nil
	}
	data, err := parseLiteral(text, t, p.splats)
	if err == nil {
		err = checkConstant(t, data)
	}
	if err != nil {
		p.fail(at, err, err.Error())
		return nil
	}
	return []Value{k.b.constant(t, data)}
}

func (p *parser) call(k *block, op Op, at int) []Value {
	d, ok := Lookup(op)
	if !ok || d.Op == OpPort {
		p.failf(at, "unknown op %q", shorten(string(op)))
		return nil
	}
	p.expect("(")
	var in []Value
	for p.err == nil && !p.accept(")") {
		if len(in) > 0 {
			p.expect(",")
		}
		in = append(in, p.value(k))
	}
	attrs := p.attrs(d)
	p.expect(":")
	typeAt := p.space()
	want := p.types()
	label := p.label()
	var subs []*Graph
	for range d.Subgraphs {
		subs = append(subs, p.graph(k.depth+1))
	}
	if p.err != nil {
		return nil
	}
	k.b.Label(label)
	out := k.b.AddNode(op, attrs, subs, in...)
	if k.b.err != nil {
		return nil
	}
	if got := out[0].node.types; !slices.EqualFunc(got, want, Type.Equal) {
		p.failf(typeAt, "%s has type %s", op, formatTypes(got))
	}
	return out
}

// attrs reads "{name=value …}" in the order of the op's fields.
func (p *parser) attrs(d *Def) Attrs {
	if d.NewAttrs == nil {
		return nil
	}
	a := d.NewAttrs()
	v := &attrParser{p: p}
	a.Visit(v)
	if v.fields > 0 {
		p.expect("}")
	}
	return a
}

func (p *parser) value(k *block) Value {
	at := p.space()
	name := p.valueName()
	v, ok := k.values[name]
	if !ok {
		p.failf(at, "%%%s is not defined", name)
	}
	return v
}

// types reads one type, or several in parentheses.
func (p *parser) types() []Type {
	if !p.accept("(") {
		return []Type{p.typ()}
	}
	var out []Type
	for p.err == nil && !p.accept(")") {
		if len(out) > 0 {
			p.expect(",")
		}
		out = append(out, p.typ())
	}
	return out
}

// typ reads a type like "f32[batch,4]".
func (p *parser) typ() Type {
	at := p.space()
	d := p.dtype()
	t := Type{d, p.dims()}
	if p.err != nil {
		return t
	}
	if err := checkType(t); err != nil {
		p.fail(at, err, err.Error())
	}
	return t
}

// label reads an optional "#"name"".
func (p *parser) label() string {
	if !p.accept("#") {
		return ""
	}
	return p.quoted()
}

// space skips white space and comments and returns the new position.
func (p *parser) space() int {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			p.pos++
		case strings.HasPrefix(p.text[p.pos:], "//"):
			end := strings.IndexByte(p.text[p.pos:], '\n')
			if end < 0 {
				end = len(p.text) - p.pos
			}
			p.pos += end
		default:
			return p.pos
		}
	}
	return p.pos
}

func (p *parser) peek(c byte) bool {
	p.space()
	return p.pos < len(p.text) && p.text[p.pos] == c
}

func (p *parser) accept(s string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.pos:], s) {
		return false
	}
	p.pos += len(s)
	return true
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.failf(p.pos, "%q expected", s)
	}
}

// run reads the bytes that belong to a token.
func (p *parser) run(belongs func(c byte) bool) string {
	start := p.space()
	for p.pos < len(p.text) && belongs(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isNumberByte(c byte) bool { return isWordByte(c) || c == '+' || c == '-' }

// word reads the name of an op, of an attribute or of an element type.
func (p *parser) word() string { return p.run(isWordByte) }

// number reads a number or a word such as inf.
func (p *parser) number() string { return p.run(isNumberByte) }

// valueName reads "%name".
func (p *parser) valueName() string {
	at := p.space()
	if !p.accept("%") || p.pos == len(p.text) || !isWordByte(p.text[p.pos]) {
		p.failf(at, "a value like %%0 expected")
		return ""
	}
	return p.word()
}

func (p *parser) quoted() string {
	at := p.space()
	if !p.peek('"') {
		p.failf(at, "a quoted string expected")
		return ""
	}
	q, err := strconv.QuotedPrefix(p.text[at:])
	if err != nil {
		p.failf(at, "a quoted string expected")
		return ""
	}
	p.pos += len(q)
	s, _ := strconv.Unquote(q)
	return s
}

// literal reads the elements of a constant, before its type.
func (p *parser) literal() string {
	if !p.peek('[') {
		return p.number()
	}
	at := p.pos
	end := strings.IndexByte(p.text[at:], ']')
	if end < 0 {
		p.failf(at, `"]" expected`)
		return ""
	}
	p.pos += end + 1
	return p.text[at:p.pos]
}

func (p *parser) dtype() DType {
	at := p.space()
	w := p.word()
	d, err := dtype.Parse(w)
	if err != nil {
		p.failf(at, "unknown element type %q", shorten(w))
	}
	return d
}

// dims reads sizes in brackets.
func (p *parser) dims() []Dim {
	var out []Dim
	p.list(func(at int, item string) {
		d, err := ParseDim(item)
		if err != nil {
			p.failf(at, "%q is not a size", shorten(item))
		}
		out = append(out, d)
	})
	return out
}

// list reads comma-separated items in brackets; items contain no commas or brackets.
func (p *parser) list(item func(at int, s string)) {
	p.expect("[")
	if p.accept("]") {
		return
	}
	for p.err == nil {
		at := p.space()
		s := p.run(func(c byte) bool { return c != ',' && c != ']' && c != '\n' })
		item(at, strings.TrimRight(s, " \t\r"))
		if p.accept("]") {
			return
		}
		p.expect(",")
	}
}

// attrParser parses the fields that it visits.
type attrParser struct {
	p      *parser
	fields int
}

// field reads "name=" and returns the position after it.
func (a *attrParser) field(name string) int {
	if a.fields == 0 {
		a.p.expect("{")
	}
	a.fields++
	at := a.p.space()
	if a.p.word() != name {
		a.p.failf(at, "attribute %s expected", name)
	}
	a.p.expect("=")
	return a.p.space()
}

// hasField reports whether a field of the given name is next.
func (a *attrParser) hasField(name string) bool {
	start := a.p.pos
	found := (a.fields > 0 || a.p.accept("{")) && a.p.word() == name
	a.p.pos = start
	return found
}

func (a *attrParser) Int(name string, p *int) {
	at := a.field(name)
	*p = a.p.parseInt(at, a.p.number())
}

func (p *parser) parseInt(at int, s string) int {
	x, err := strconv.Atoi(s)
	if err != nil {
		p.failf(at, "%q is not an integer", shorten(s))
	}
	return x
}

func (a *attrParser) Ints(name string, p *[]int) {
	a.field(name)
	*p = nil
	a.p.list(func(at int, item string) { *p = append(*p, a.p.parseInt(at, item)) })
}

func (a *attrParser) Float(name string, p *float64) {
	at := a.field(name)
	*p = a.p.parseFloat(at, a.p.number())
}

func (p *parser) parseFloat(at int, s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.failf(at, "%q is not a number", shorten(s))
	}
	return x
}

// Bool accepts a missing field and keeps its value, so that older texts remain readable when an op
// gets a new option.
func (a *attrParser) Bool(name string, p *bool) {
	if !a.hasField(name) {
		return
	}
	at := a.field(name)
	s := a.p.word()
	if s != "true" && s != "false" {
		a.p.failf(at, "true or false expected")
	}
	*p = s == "true"
}

func (a *attrParser) Text(name string, p *string) {
	a.field(name)
	*p = a.p.quoted()
}

func (a *attrParser) DType(name string, p *DType) {
	a.field(name)
	*p = a.p.dtype()
}

func (a *attrParser) Dims(name string, p *[]Dim) {
	a.field(name)
	*p = a.p.dims()
}
