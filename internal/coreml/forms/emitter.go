package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
)

// maxOps bounds the operations of a function: loops are unrolled, and Core ML compiles every
// iteration.
const maxOps = 100_000

// maxRank is the maximum rank of Core ML's tensors.
const maxRank = 5

// Value is a value of a graph in MIL. Ref has the shape Dims, or one that MIL broadcasts to it.
type Value struct {
	Ref  mil.Ref
	Dims []int
}

// constant reports whether the value is a constant that needs no broadcast.
func (v Value) constant() bool { return v.Ref.Value != nil && slices.Equal(v.Ref.Type.Dims, v.Dims) }

// Emitter adds the nodes of graphs to a function.
type Emitter struct {
	moves
	// Half computes f32 values in f16.
	Half bool
	// Packed holds the bytes of packed parameters that are stored with the model, by name.
	Packed map[string]*ir.Array

	checks []check
	under  mil.Ref // the bool under which emitted checks count, invalid for always
}

// NewEmitter returns an emitter that adds to a function.
func NewEmitter(b *mil.Builder) *Emitter { return &Emitter{moves: moves{Builder: b}} }

// form adds a node to a function and returns its results.
type form func(e *Emitter, n *ir.Node, in []Value) []Value

// forms maps ops to their forms.
var forms = map[ir.Op]form{}

// add enters a form into the table. It is called from init functions.
func add(op ir.Op, f form) { forms[op] = f }

// single makes a form from a function with one result.
func single(f func(e *Emitter, n *ir.Node, in []Value) Value) form {
	return func(e *Emitter, n *ir.Node, in []Value) []Value { return []Value{f(e, n, in)} }
}

// Claims reports whether a composite has a form, so that it is not inlined.
func (e *Emitter) Claims(n *ir.Node) bool {
	if _, ok := forms[n.Op()]; !ok || !n.Def().IsComposite() {
		return false
	}
	if fits := onlyWhere[n.Op()]; fits != nil {
		return fits(e, n)
	}
	return true
}

// onlyWhere holds the conditions under which the form of a composite applies.
var onlyWhere = map[ir.Op]func(e *Emitter, n *ir.Node) bool{}

// Type returns the MIL type for a type of a graph. The error is of kind [ir.ErrUnsupported] for an
// element type that MIL does not compute with and for a value without elements, and of kind
// [ir.ErrSymbol] for a symbolic size.
func (e *Emitter) Type(t ir.Type) (mil.Type, error) {
	dims, ok := t.Shape.Ints()
	if !ok {
		return mil.Type{}, ir.Errorf(ir.ErrSymbol, "%s has a symbolic size", t)
	}
	if slices.Contains(dims, 0) {
		return mil.Type{}, ir.Errorf(ir.ErrUnsupported, "%s has no elements; no tensor of Core ML is empty", t)
	}
	d, err := e.dtype(t.DType)
	return mil.Type{DType: d, Dims: fold(dims)}, err
}

func (e *Emitter) dtype(d ir.DType) (mil.DType, error) {
	switch d {
	case ir.F32:
		if e.Half {
			return mil.Float16, nil
		}
		return mil.Float32, nil
	case ir.F16:
		return mil.Float16, nil
	case ir.I32:
		return mil.Int32, nil
	case ir.Bool:
		return mil.Bool, nil
	}
	return 0, ir.Errorf(ir.ErrUnsupported, "MIL has no element type %s", d)
}

// fold returns the MIL shape of a value.
func fold(dims []int) []int {
	switch {
	case len(dims) == 0:
		return []int{1}
	case len(dims) <= maxRank:
		return slices.Clone(dims)
	}
	first := len(dims) - maxRank + 1
	return append([]int{product(dims[:first])}, dims[first:]...)
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Graph adds all nodes of a graph, given the values of its ports, and returns those of its outputs.
// The builder keeps the first error, which names the node.
func (e *Emitter) Graph(g *ir.Graph, ports []Value) []Value {
	at := make([][]Value, len(g.Nodes()))
	for i, p := range g.Ports() {
		at[p.Value.Node().ID()] = []Value{ports[i]}
	}
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		if e.Err() != nil {
			return make([]Value, len(g.Outputs()))
		}
		in := make([]Value, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = at[v.Node().ID()][v.Index()]
		}
		at[n.ID()] = e.Node(n, in)
	}
	out := make([]Value, len(g.Outputs()))
	for i, o := range g.Outputs() {
		out[i] = at[o.Value.Node().ID()][o.Value.Index()]
	}
	return out
}

// Node adds one node, given the values of its operands, and returns its results. The builder keeps
// an error, which names the node.
func (e *Emitter) Node(n *ir.Node, in []Value) []Value {
	for _, t := range n.Types() {
		if _, err := e.Type(t); err != nil {
			e.Fail(n.Fail(err))
		}
	}
	if e.Len() > maxOps {
		e.Fail(n.Fail(ir.Errorf(ir.ErrUnsupported, "the model has more than %d operations; loops are unrolled", maxOps)))
	}
	if e.Err() != nil {
		return make([]Value, n.NumResults())
	}
	out := e.form(n)(e, n, in)
	if err := e.Err(); err != nil {
		e.Rename(n.Fail(err))
		return make([]Value, n.NumResults())
	}
	return out
}

// form returns the MIL form of a node.
func (e *Emitter) form(n *ir.Node) form {
	f, ok := forms[n.Op()]
	if n.Def().IsComposite() && !e.Claims(n) {
		return inline
	}
	switch {
	case ok:
		return f
	case n.Def().Scalar != nil:
		return single(elementwise)
	case len(n.Inputs()) == 0:
		return literal
	}
	return func(e *Emitter, n *ir.Node, _ []Value) []Value {
		e.Fail(ir.Errorf(ir.ErrUnsupported, "MIL has no such operation on %s", n.Types()[0].DType))
		return make([]Value, n.NumResults())
	}
}

// inline adds the body of a composite.
func inline(e *Emitter, n *ir.Node, in []Value) []Value {
	body, err := ir.Inline(n)
	if err != nil {
		e.Fail(err)
		return make([]Value, n.NumResults())
	}
	return e.Graph(body, in)
}

// whole returns the shape of a type, which must be constant.
func whole(t ir.Type) []int {
	dims, _ := t.Shape.Ints()
	return dims
}
