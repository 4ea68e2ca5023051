package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Pairs returns a graph that computes with the real and the imaginary part of
// complex values, for devices that have real arithmetic only. A complex port or
// output becomes a real one of the same name with a last axis of 2, which lies in
// memory as the complex one does. g must be free of composites. The error is of kind
// [ir.ErrUnsupported] and names the first node that [Pairable] refuses.
func Pairs(g *ir.Graph) (*ir.Graph, error) {
	if err := g.Given(); err != nil {
		return nil, err
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		p := newComplexCopier(b, g)
		if p.nodes(g); b.Err() != nil {
			return
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, p.packed(o.Value))
		}
	})
}

// HasType reports whether a graph, or one that a node of it runs, has values of an
// element type.
func HasType(g *ir.Graph, d ir.DType) bool {
	has := func(t ir.Type) bool { return t.DType == d }
	inside := func(g *ir.Graph) bool { return HasType(g, d) }
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Types(), has) || slices.ContainsFunc(n.Subgraphs(), inside)
	})
}

func hasComplex(g *ir.Graph) bool { return HasType(g, ir.C64) || HasType(g, ir.C128) }

// Pairable reports whether [Pairs] has a rule for a node, or for all that it is made
// of.
func Pairable(n *ir.Node) bool {
	unable := func(g *ir.Graph) bool {
		return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return !Pairable(n) })
	}
	if slices.ContainsFunc(n.Subgraphs(), unable) {
		return false
	}
	if !isComplex(n) {
		return true
	}
	if n.Def().IsComposite() {
		body, err := ir.Inline(n)
		return err == nil && !unable(body)
	}
	return len(n.Subgraphs()) > 0 || rulesFor(n.Op()) != nil
}

// isComplex reports whether a node takes or gives complex values.
func isComplex(n *ir.Node) bool {
	complex := func(t ir.Type) bool { return t.DType.IsComplex() }
	return slices.ContainsFunc(n.Types(), complex) || slices.ContainsFunc(n.InTypes(), complex)
}

// pair is a complex value.
type pair struct{ re, im ir.Value }

// complexCopier copies a graph.
type complexCopier struct {
	b     *ir.Builder
	to    *ir.Mapping       // real values
	parts map[ir.Value]pair // complex ones, by those of the old graph
}

func newComplexCopier(b *ir.Builder, g *ir.Graph) *complexCopier {
	return &complexCopier{b: b, to: ir.NewMapping(g), parts: map[ir.Value]pair{}}
}

// nodes copies all nodes, but ports that have been given values.
func (p *complexCopier) nodes(g *ir.Graph) {
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort && p.has(n.Result(0)) {
			continue
		}
		p.b.Label(n.Label())
		p.b.At(n.Pos())
		if p.node(n); p.b.Err() != nil {
			return
		}
	}
}

func (p *complexCopier) has(v ir.Value) bool {
	_, ok := p.parts[v]
	return ok || p.to.Get(v).Valid()
}

// packed returns a value of the old graph as one value, with the parts of a complex
// one along a last axis of 2.
func (p *complexCopier) packed(v ir.Value) ir.Value {
	if x, ok := p.parts[v]; ok {
		return ops.Stack(p.b, -1, x.re, x.im)
	}
	return p.to.Get(v)
}

// setPacked takes a value of the old graph to one that [pairing.whole] would give.
func (p *complexCopier) setPacked(v, w ir.Value) {
	if !v.DType().IsComplex() || !w.Valid() {
		p.to.Set(v, w)
		return
	}
	shape := v.Shape()
	part := func(i int) ir.Value {
		return ops.Reshape(p.b, ops.SliceAxis(p.b, w, len(shape), ir.N(i), ir.N(1)), shape...)
	}
	p.parts[v] = pair{part(0), part(1)}
}

// partsOf returns a value of the old graph as a pair, one of its own type twice
// where it is real: then each half of a rule sees it.
func (p *complexCopier) partsOf(v ir.Value) pair {
	if x, ok := p.parts[v]; ok {
		return x
	}
	return pair{p.to.Get(v), p.to.Get(v)}
}

func (p *complexCopier) node(n *ir.Node) {
	switch rule := rulesFor(n.Op()); {
	case n.Op() == ops.OpAssociativeScan && isComplex(n):
		p.associativeScan(n)
	case slices.ContainsFunc(n.Subgraphs(), hasComplex):
		p.control(n)
	case !isComplex(n):
		if a, ok := n.Attrs().(*ir.PortAttrs); ok {
			p.to.Set(n.Result(0), p.b.CopyPort(ir.Port{Name: a.Name, Kind: a.Kind, Value: n.Result(0)}))
			return
		}
		p.to.SetAll(n, p.b.Copy(n, p.to.Inputs(n)))
	case n.Op() == ir.OpPort:
		p.port(n)
	case n.Op() == ir.OpConstant:
		p.constant(n)
	case rule == nil:
		p.b.Fail(n.Fail(ir.Errorf(ir.ErrUnsupported, "%s of complex numbers has no rule for their parts", n.Op())))
	default:
		in := make([]pair, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = p.partsOf(v)
		}
		for i, out := range rule(p.b, n, in) {
			if n.Types()[i].DType.IsComplex() {
				p.parts[n.Result(i)] = out
			} else {
				p.to.Set(n.Result(i), out.re)
			}
		}
	}
}

func (p *complexCopier) port(n *ir.Node) {
	a, t := n.Attrs().(*ir.PortAttrs), n.Types()[0]
	t = ir.Type{DType: t.DType.Real(), Shape: append(t.Shape.Clone(), ir.N(2))}
	p.setPacked(n.Result(0), p.b.Port(a.Kind, a.Name, t))
}

func (p *complexCopier) constant(n *ir.Node) {
	a, t := n.Attrs().(*ir.ConstantAttrs), n.Types()[0]
	half := t.DType.Real().Size()
	part := func(from int) ir.Value {
		var data []byte
		for at := from; at < len(a.Data); at += 2 * half {
			data = append(data, a.Data[at:at+half]...)
		}
		return p.b.Constant(ir.Type{DType: t.DType.Real(), Shape: t.Shape}, data)
	}
	p.parts[n.Result(0)] = pair{part(0), part(half)}
}
