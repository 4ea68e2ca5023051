package padding

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

func keys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

func compareDims(x, y ir.Dim) int { return cmp.Compare(x.String(), y.String()) }

// Graph returns the padded graph with its symbols bound: the ports and outputs of the graph, and an
// input for each true size that it reads ([padded.SizeOf]). The errors are those of [ir.Dim.Bind] and
// [ir.Graph.Bind].
func (a *Analysis) Graph(bound map[string]int) (*ir.Graph, error) {
	for _, d := range a.fit.Sizes {
		if _, err := d.Bind(bound); err != nil {
			return nil, err
		}
	}
	return ir.Transform(a.graph.Name(), func(b *ir.Builder) {
		sizes := map[ir.Dim]ir.Value{}
		e := &emitter{b: b, bound: bound, open: a.open, size: func(d ir.Dim) ir.Value {
			if _, known := sizes[d]; !known {
				sizes[d] = b.Input(padded.SizeInput(d), ir.I32)
			}
			return sizes[d]
		}}
		in := make([]ir.Value, len(a.graph.Ports()))
		for i, p := range a.graph.Ports() {
			in[i] = b.PortLike(p, e.shape(p.Value.Shape()))
		}
		for i, v := range e.graph(a, in) {
			b.CopyOutput(a.graph.Outputs()[i], v)
		}
	})
}

// emitter adds the nodes of a padded graph.
type emitter struct {
	b     *ir.Builder
	bound map[string]int
	open  func(d ir.Dim) bool
	size  func(d ir.Dim) ir.Value
}

// graph adds the nodes of an analysed graph and returns its outputs.
func (e *emitter) graph(a *Analysis, in []ir.Value) []ir.Value {
	m := ir.NewMapping(a.graph)
	m.SetPorts(a.graph, in)
	for _, n := range a.graph.Nodes() {
		if n.Op() != ir.OpPort && e.b.Err() == nil {
			out := e.node(n, &a.nodes[n.ID()], m.Inputs(n))
			e.check(n, out)
			m.SetAll(n, out)
		}
	}
	return m.Outputs(a.graph)
}

// check records an error if the results of a node do not have its shapes: a size that is rounded, such
// as a number of windows, is another one for constant sizes.
func (e *emitter) check(n *ir.Node, out []ir.Value) {
	for i, v := range out {
		if want := e.shape(n.Types()[i].Shape); e.b.Err() == nil && !v.Shape().Equal(want) {
			e.b.Fail(n.Fail(ir.Shapef("result %d is %s where %s is compiled for", i, v.Type(), want)))
		}
	}
}

// node adds a node as it was decided.
func (e *emitter) node(n *ir.Node, d *decision, in []ir.Value) []ir.Value {
	label, at := e.b.Origin()
	e.b.Label(n.Label())
	e.b.At(n.Pos())
	defer func() { e.b.Label(label); e.b.At(at) }()
	for _, f := range d.fills {
		in[f.Operand] = e.Mask(in[f.Operand], f.Axis, f.Extent, literal(e.b, f.Value))
	}
	switch {
	case d.emit != nil:
		return d.emit(nodeEmitter{e, n}, in)
	case d.body != nil:
		return e.graph(d.body, in)
	case d.subs != nil:
		return e.control(n, d.subs, in)
	}
	return nodeEmitter{e, n}.Copy(in...)
}

func literal(b *ir.Builder, x scalar.Expr) ir.Value {
	v, _ := x.Value()
	a := ir.NewArray(x.Type)
	a.SetElement(0, v)
	return ops.Literal(b, a)
}

// Bound returns the number that a size is bound to.
func (e *emitter) Bound(d ir.Dim) int {
	n, err := d.Bind(e.bound)
	if err != nil {
		e.b.Fail(err)
	}
	return n
}

func (e *emitter) shape(s ir.Shape) ir.Shape {
	out := make(ir.Shape, len(s))
	for i, d := range s {
		out[i] = ir.N(e.Bound(d))
	}
	return out
}

// Builder returns the builder of the padded graph.
func (e *emitter) Builder() *ir.Builder { return e.b }

// Size returns the true size, an i32 of rank 0.
func (e *emitter) Size(d ir.Dim) ir.Value {
	if !e.open(d) {
		return ops.Const(e.b, ir.I32, float64(e.Bound(d)))
	}
	return e.size(d)
}

// Mask replaces padding along an axis by a value.
func (e *emitter) Mask(x ir.Value, axis int, extent ir.Extent, value ir.Value) ir.Value {
	if e.b.Err() != nil {
		return ir.Value{}
	}
	parts := e.shape(ir.Shape(extent))
	var valid ir.Value
	for i, d := range extent {
		if !e.open(d) {
			continue
		}
		place := ops.Iota(e.b, ir.I32, i, parts...)
		inside := ops.Lt(e.b, place, ops.BroadcastTo(e.b, e.Size(d), parts))
		if valid.Valid() {
			inside = ops.And(e.b, valid, inside)
		}
		valid = inside
	}
	if !valid.Valid() {
		return x
	}
	along := ops.Reshape(e.b, valid, parts.Size())
	return ops.Select(e.b, ops.BroadcastInDim(e.b, along, x.Shape(), []int{axis}), x, ops.BroadcastTo(e.b, value, x.Shape()))
}

// nodeEmitter adds one node.
type nodeEmitter struct {
	*emitter
	n *ir.Node
}

// Copy adds the node with its attributes bound.
func (e nodeEmitter) Copy(in ...ir.Value) []ir.Value { return e.with(e.attrs(), e.bindSubs(), in) }

func (e nodeEmitter) attrs() ir.Attrs {
	a, err := ir.BindAttrs(e.n, e.bound)
	if err != nil {
		e.b.Fail(err)
	}
	return a
}

func (e nodeEmitter) with(attrs ir.Attrs, subs []*ir.Graph, in []ir.Value) []ir.Value {
	return e.b.CopyWith(e.n, attrs, subs, in)
}

func (e nodeEmitter) bindSubs() []*ir.Graph {
	subs := make([]*ir.Graph, len(e.n.Subgraphs()))
	for i, g := range e.n.Subgraphs() {
		bound, err := g.Bind(e.bound)
		if err != nil {
			e.b.Fail(err)
		}
		subs[i] = bound
	}
	return subs
}

// control adds a loop or a branch. Its subgraphs take true sizes as operands after the constants.
func (e *emitter) control(n *ir.Node, subs []*Analysis, in []ir.Value) []ir.Value {
	at := nodeEmitter{e, n}
	switch a := at.attrs().(type) {
	case *ops.ScanAttrs:
		return at.scan(a, subs[0], in)
	case *ops.WhileAttrs:
		sizes := e.sizesOf(subs...)
		graphs := []*ir.Graph{e.subgraph(subs[0], sizes, a.Consts), e.subgraph(subs[1], sizes, a.Consts)}
		in = slices.Insert(in, a.Consts, e.values(sizes)...)
		a.Consts += len(sizes)
		return at.with(a, graphs, in)
	}
	sizes := e.sizesOf(subs...)
	graphs := []*ir.Graph{e.subgraph(subs[0], sizes, 0), e.subgraph(subs[1], sizes, 0)}
	return at.with(nil, graphs, slices.Insert(in, 1, e.values(sizes)...))
}

// sizesOf returns the true sizes that the nodes of subgraphs read, sorted.
func (e *emitter) sizesOf(subs ...*Analysis) []ir.Dim {
	read := map[ir.Dim]bool{}
	for _, a := range subs {
		_, err := ir.Transform(a.graph.Name(), func(b *ir.Builder) {
			sub := &emitter{b: b, bound: e.bound, open: e.open}
			sub.size = func(d ir.Dim) ir.Value {
				read[d] = true
				return b.Constant(ir.TypeOf(ir.I32), make([]byte, 4))
			}
			sub.graph(a, sub.ports(a, 0, len(a.graph.Ports())))
		})
		if err != nil {
			e.b.Fail(err)
		}
	}
	return slices.SortedFunc(keys(read), compareDims)
}

func (e *emitter) values(sizes []ir.Dim) []ir.Value {
	out := make([]ir.Value, len(sizes))
	for i, d := range sizes {
		out[i] = e.Size(d)
	}
	return out
}

// ports declares the ports of a graph from one to another.
func (e *emitter) ports(a *Analysis, from, to int) []ir.Value {
	var out []ir.Value
	for _, p := range a.graph.Ports()[from:to] {
		out = append(out, e.b.PortLike(p, e.shape(p.Value.Shape())))
	}
	return out
}

// subgraph returns the padded graph of a subgraph that takes sizes after its first ports.
func (e *emitter) subgraph(a *Analysis, sizes []ir.Dim, first int) *ir.Graph {
	return e.b.Subgraph(a.graph.Name(), func(b *ir.Builder) {
		sub, in := e.closed(b, a, sizes, first)
		for i, v := range sub.graph(a, in) {
			b.CopyOutput(a.graph.Outputs()[i], v)
		}
	})
}

// closed returns the emitter of a subgraph and its ports but for the sizes.
func (e *emitter) closed(b *ir.Builder, a *Analysis, sizes []ir.Dim, first int) (*emitter, []ir.Value) {
	known := map[ir.Dim]ir.Value{}
	sub := &emitter{b: b, bound: e.bound, open: e.open, size: func(d ir.Dim) ir.Value { return known[d] }}
	in := sub.ports(a, 0, first)
	for _, d := range sizes {
		known[d] = b.Input(padded.SizeInput(d), ir.I32)
	}
	return sub, append(in, sub.ports(a, first, len(a.graph.Ports()))...)
}

// scan adds a scan. If its length is open, steps beyond the true length do not change the carries;
// the number of the step is one more sliced operand.
func (e nodeEmitter) scan(s *ops.ScanAttrs, body *Analysis, in []ir.Value) []ir.Value {
	sizes := e.sizesOf(body)
	length := e.n.Attrs().(*ops.ScanAttrs).Length
	masked := body.open(length) && s.Carries > 0
	if masked && !slices.Contains(sizes, length) {
		sizes = append(sizes, length)
	}
	g := e.b.Subgraph(body.graph.Name(), func(b *ir.Builder) {
		sub, ports := e.closed(b, body, sizes, s.Consts)
		out := sub.graph(body, ports)
		if masked && b.Err() == nil {
			goes := ops.Lt(b, b.Input("step", ir.I32), sub.Size(length))
			for i, before := range ports[s.Consts : s.Consts+s.Carries] {
				out[i] = ops.Select(b, ops.BroadcastTo(b, goes, before.Shape()), out[i], before)
			}
		}
		for i, v := range out {
			b.CopyOutput(body.graph.Outputs()[i], v)
		}
	})
	in = slices.Insert(in, s.Consts, e.values(sizes)...)
	if masked {
		in = append(in, ops.Iota(e.b, ir.I32, 0, s.Length))
	}
	s.Consts += len(sizes)
	return e.with(s, []*ir.Graph{g}, in)
}
