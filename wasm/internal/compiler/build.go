package compiler

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// builder is a graph under construction, with its values by number.
type builder struct {
	b      *ir.Builder
	values []ir.Value
	// finish ends the construction and returns the graph.
	finish func() (*ir.Graph, error)
}

// newBuilder (name) → handle.
func newBuilder(c *wire.Service, r *wire.Request, w *wire.Response) error {
	b, finish := ir.NewBuilder(r.Text())
	w.U32(c.Add(&builder{b: b, finish: finish}))
	return nil
}

// keep numbers values and writes number and type of each.
func (b *builder) keep(w *wire.Response, values ...ir.Value) error {
	if err := b.b.TakeErr(); err != nil {
		return err
	}
	w.U32(len(values))
	for _, v := range values {
		w.U32(len(b.values))
		w.ValueType(v.Type())
		b.values = append(b.values, v)
	}
	return nil
}

// value reads a value by its number.
func (b *builder) value(r *wire.Request) ir.Value {
	i := r.U32()
	if i >= len(b.values) {
		b.b.Fail(ir.Errorf(ir.ErrGraph, "value %d belongs to another graph", i))
		return ir.Value{}
	}
	return b.values[i]
}

func (b *builder) valueList(r *wire.Request) []ir.Value {
	var out []ir.Value
	r.List(func() { out = append(out, b.value(r)) })
	return out
}

func readType(r *wire.Request) (ir.Type, error) {
	d, err := dtype.Parse(r.Text())
	if err != nil {
		return ir.Type{}, ir.DTypef("%v", err)
	}
	t := ir.Type{DType: d}
	for _, s := range r.Texts() {
		n, err := ir.ParseDim(s)
		if err != nil {
			return ir.Type{}, ir.Shapef("%q is not a size", s)
		}
		t.Shape = append(t.Shape, n)
	}
	return t, r.Err()
}

var portKinds = map[string]ir.PortKind{"input": ir.InputPort, "param": ir.ParamPort, "state": ir.StatePort}

// addPort (builder, kind, name, type, initial rule, its numbers, frozen?) → value.
func addPort(b *builder, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	kind, ok := portKinds[r.Text()]
	if !ok {
		return ir.Errorf(ir.ErrName, "unknown port kind: have input, param, state")
	}
	name := r.Text()
	t, err := readType(r)
	if err != nil {
		return err
	}
	o := ir.PortOptions{Initial: ir.Initial{Rule: r.Text()}}
	r.List(func() { o.Initial.Args = append(o.Initial.Args, r.F64()) })
	o.Frozen = r.Bool()
	if err := r.Err(); err != nil {
		return err
	}
	switch kind {
	case ir.ParamPort:
		return b.keep(w, b.b.ParamWith(name, o, t.DType, t.Shape...))
	case ir.StatePort:
		return b.keep(w, b.b.StateWith(name, o, t.DType, t.Shape...))
	}
	return b.keep(w, b.b.Port(kind, name, t))
}

// addConstant (builder, type, data) → value.
func addConstant(b *builder, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	t, err := readType(r)
	if err != nil {
		return err
	}
	return b.keep(w, b.b.Constant(t, append([]byte(nil), r.Bytes()...)))
}

// addFull (builder, type, number) → value with the number in every place.
func addFull(b *builder, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	t, err := readType(r)
	if err != nil {
		return err
	}
	return b.keep(w, ops.Const(b.b, t.DType, r.F64(), t.Shape...))
}

// setLabel (builder, label).
func setLabel(b *builder, _ *wire.Service, r *wire.Request, _ *wire.Response) error {
	b.b.Label(r.Text())
	return nil
}

// addOp (builder, op, operands, attributes, subgraphs) → values. The operands
// of elementwise ops are broadcast against each other.
func addOp(b *builder, c *wire.Service, r *wire.Request, w *wire.Response) error {
	op := ir.Op(r.Text())
	d, ok := ir.Lookup(op)
	if !ok {
		return ir.Errorf(ir.ErrName, "unknown op %q", string(op))
	}
	in := b.valueList(r)
	attrs, keep, err := readAttrs(r, d, in)
	if err != nil {
		return &ir.OpError{Op: op, In: ir.TypesOf(in), Err: err}
	}
	var subs []*ir.Graph
	r.List(func() {
		g, e := wire.Get[*ir.Graph](c, r)
		if e != nil {
			err = e
		}
		subs = append(subs, g)
	})
	if err != nil {
		return err
	}
	if d.Scalar != nil && len(in) > 1 {
		in = ops.Broadcast(b.b, op, in...)
	}
	out := b.b.AddNode(op, attrs, subs, in...)
	if keep && b.b.Err() == nil {
		out[0] = ops.ExpandDims(b.b, out[0], d.Reduces(out[0].Node())...)
	}
	return b.keep(w, out...)
}

// splice (builder, graph, a value for each port) → the values of its outputs, those of states included.
func splice(b *builder, c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := wire.Get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	in := b.valueList(r)
	if len(in) != len(g.Ports()) {
		return ir.Errorf(ir.ErrName, "%d values given for the %d ports of graph %q", len(in), len(g.Ports()), g.Name())
	}
	for i, p := range g.Ports() {
		if t := p.Value.Type(); b.b.Err() == nil && !t.Equal(in[i].Type()) {
			kind := ir.ErrShape
			if t.DType != in[i].DType() {
				kind = ir.ErrDType
			}
			return ir.Errorf(kind, "call: %q is %s: it must be %s, as in graph %q", p.Name, in[i].Type(), t, g.Name())
		}
	}
	return b.keep(w, b.b.Splice(g, in)...)
}

// named returns the handler of (builder, name, value), which add adds to the builder.
func named(add func(b *ir.Builder, name string, v ir.Value)) wire.Method {
	return wire.On(func(b *builder, _ *wire.Service, r *wire.Request, _ *wire.Response) error {
		name := r.Text()
		add(b.b, name, b.value(r))
		return b.b.TakeErr()
	})
}

// updateState is SetState for a state that may have been set before, by a value that follows from the earlier one.
func updateState(b *ir.Builder, name string, v ir.Value) {
	b.UpdateState(name, func(ir.Value) ir.Value { return v })
}

// build (builder, names of ports) → graph, with its ports in that order, or in
// the order they were declared in where no names are given. The builder is gone.
func build(c *wire.Service, r *wire.Request, w *wire.Response) error {
	b, err := wire.Take[*builder](c, r)
	if err != nil {
		return err
	}
	order := r.Texts()
	if r.Err() != nil {
		return r.Err()
	}
	g, err := b.finish()
	if err == nil && len(order) > 0 {
		g, err = arrange(g, order)
	}
	return keepGraph(c, w, g, err)
}

// arrange returns the graph with its ports, which are inputs, in another order.
func arrange(g *ir.Graph, order []string) (*ir.Graph, error) {
	if len(order) != len(g.Ports()) {
		return nil, ir.Errorf(ir.ErrName, "%d ports given; graph %q has %d", len(order), g.Name(), len(g.Ports()))
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		made := map[string]ir.Value{}
		for _, name := range order {
			if p, ok := g.Port(name); ok {
				made[name] = b.Port(p.Kind, name, p.Value.Type())
			}
		}
		in := make([]ir.Value, len(order))
		for i, p := range g.Ports() {
			in[i] = made[p.Name]
		}
		for i, v := range b.Splice(g, in) {
			b.CopyOutput(g.Outputs()[i], v)
		}
	})
}
