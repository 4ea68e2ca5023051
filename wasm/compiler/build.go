package compiler

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
)

// builder is a graph under construction, with its values by number.
type builder struct {
	b      *ir.Builder
	values []ir.Value
	// finish ends the construction and returns the graph.
	finish func() (*ir.Graph, error)
}

// newBuilder (name) → handle.
func newBuilder(c *Compiler, r *request, w *response) error {
	b, finish := ir.NewBuilder(r.text())
	w.u32(c.add(&builder{b: b, finish: finish}))
	return nil
}

// keep numbers values and writes number and type of each.
func (b *builder) keep(w *response, values ...ir.Value) error {
	if err := b.b.Err(); err != nil {
		return err
	}
	w.u32(len(values))
	for _, v := range values {
		w.u32(len(b.values))
		w.valueType(v.Type())
		b.values = append(b.values, v)
	}
	return nil
}

// value reads a value by its number.
func (b *builder) value(r *request) ir.Value {
	i := r.u32()
	if i >= len(b.values) {
		b.b.Fail(ir.Errorf(ir.ErrGraph, "value %d does not belong to this graph", i))
		return ir.Value{}
	}
	return b.values[i]
}

func (b *builder) valueList(r *request) []ir.Value {
	var out []ir.Value
	r.list(func() { out = append(out, b.value(r)) })
	return out
}

func readType(r *request) (ir.Type, error) {
	d, err := dtype.Parse(r.text())
	if err != nil {
		return ir.Type{}, ir.DTypef("%v", err)
	}
	t := ir.Type{DType: d}
	for _, s := range r.texts() {
		n, err := ir.ParseDim(s)
		if err != nil {
			return ir.Type{}, ir.Shapef("%q is not a size", s)
		}
		t.Shape = append(t.Shape, n)
	}
	return t, r.err
}

var portKinds = map[string]ir.PortKind{"input": ir.InputPort, "param": ir.ParamPort, "state": ir.StatePort}

// addPort (builder, kind, name, type) → value.
func addPort(c *Compiler, r *request, w *response) error {
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	kind, ok := portKinds[r.text()]
	if !ok {
		return ir.Errorf(ir.ErrName, "a port is an input, a param or a state")
	}
	name := r.text()
	t, err := readType(r)
	if err != nil {
		return err
	}
	return b.keep(w, b.b.Port(kind, name, t))
}

// addConstant (builder, type, data) → value.
func addConstant(c *Compiler, r *request, w *response) error {
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	t, err := readType(r)
	if err != nil {
		return err
	}
	return b.keep(w, b.b.Constant(t, append([]byte(nil), r.bytes()...)))
}

// addFull (builder, type, number) → value with the number in every place.
func addFull(c *Compiler, r *request, w *response) error {
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	t, err := readType(r)
	if err != nil {
		return err
	}
	return b.keep(w, ops.Const(b.b, t.DType, r.f64(), t.Shape...))
}

// setLabel (builder, label).
func setLabel(c *Compiler, r *request, _ *response) error {
	b, err := get[*builder](c, r)
	if err == nil {
		b.b.Label(r.text())
	}
	return err
}

// addOp (builder, op, operands, attributes, subgraphs) → values. The operands
// of elementwise ops are broadcast against each other.
func addOp(c *Compiler, r *request, w *response) error {
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	op := ir.Op(r.text())
	d, ok := ir.Lookup(op)
	if !ok {
		return ir.Errorf(ir.ErrName, "there is no op %q", string(op))
	}
	in := b.valueList(r)
	attrs, err := readAttrs(r, d, in)
	if err != nil {
		return &ir.OpError{Op: op, In: typesOf(in), Err: err}
	}
	var subs []*ir.Graph
	r.list(func() {
		g, e := get[*ir.Graph](c, r)
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
	return b.keep(w, b.b.AddNode(op, attrs, subs, in...)...)
}

func typesOf(in []ir.Value) []ir.Type {
	out := make([]ir.Type, len(in))
	for i, v := range in {
		out[i] = v.Type()
	}
	return out
}

// addOutput (builder, name, value).
func addOutput(c *Compiler, r *request, _ *response) error {
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	name := r.text()
	b.b.Output(name, b.value(r))
	return b.b.Err()
}

// setState (builder, name, value).
func setState(c *Compiler, r *request, _ *response) error {
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	name := r.text()
	b.b.SetState(name, b.value(r))
	return b.b.Err()
}

// build (builder) → graph. The builder is gone.
func build(c *Compiler, r *request, w *response) error {
	h := (&request{data: r.data}).u32()
	b, err := get[*builder](c, r)
	if err != nil {
		return err
	}
	delete(c.objects, h)
	g, err := b.finish()
	if err != nil {
		return err
	}
	w.u32(c.add(g))
	return nil
}
