package ir

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
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
		p.failf(p.pos, "nothing may follow the graph")
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
		p.failf(start, "%d names for %d results", len(names), len(results))
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
	if p.err != nil {
		return nil
	}
	return []Value{k.b.Port(kind, name, t)}
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
		p.failf(at, "there is no op %q", shorten(string(op)))
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
