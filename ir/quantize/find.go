package quantize

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// weightProduct is a product with a weight: the name of that, and which operand is the other one.
type weightProduct struct {
	weight string
	other  int
}

// layers are the composites whose products are those of their bodies.
var layers = []ir.Op{ops.OpLinear, ops.OpConv2D}

// inlineLayers copies a graph, with bodies in place of layers.
func inlineLayers(b *ir.Builder, g *ir.Graph) {
	m := ir.NewMapping(g)
	b.CopyPorts(g, m)
	for _, n := range g.Nodes() {
		switch {
		case n.Op() == ir.OpPort:
		case slices.Contains(layers, n.Op()):
			body, err := ir.Inline(n)
			if err != nil {
				b.Fail(err)
				return
			}
			m.SetAll(n, b.Splice(body, m.Inputs(n)))
		default:
			b.CopyNode(n, m)
		}
	}
	b.CopyOutputs(g, m)
}

// find fills in the products, the weights and the points.
func (q *Int8) find(skip func(name string) bool) {
	uses, returned := q.g.Uses(), map[*ir.Node]bool{}
	for _, o := range q.g.Outputs() {
		returned[o.Value.Node()] = true
	}
	for _, n := range q.g.Nodes() {
		p, port, axis, ok := productOf(n)
		if !ok || skip != nil && skip(p.weight) || !onlyMultiplied(port, uses, returned) {
			continue
		}
		if before, known := q.weights[p.weight]; known && before != axis {
			axis = -1 // products disagree about the channels
		}
		q.weights[p.weight], q.products[n] = axis, p
		if v := n.Input(p.other); !slices.Contains(q.points, v) {
			q.points = append(q.points, v)
		}
	}
}

// productOf returns the product of a node with a weight, the port of that, and the axis of the port that has the
// channels of the result, -1 for none.
func productOf(n *ir.Node) (p weightProduct, port *ir.Node, axis int, ok bool) {
	if n.Op() != ops.OpDotGeneral && n.Op() != ops.OpConvGeneral || n.Types()[0].DType != ir.F32 {
		return p, nil, -1, false
	}
	for i := range 2 {
		if n.Op() == ops.OpConvGeneral && i == 0 {
			continue // an image that is a parameter
		}
		port, axis := source(n.Input(i), channelAxis(n, i))
		if port == nil {
			continue
		}
		if other, _ := source(n.Input(1-i), -1); other != nil {
			continue // known before any input is
		}
		return weightProduct{port.Attrs().(*ir.PortAttrs).Name, 1 - i}, port, axis, true
	}
	return p, nil, -1, false
}

// channelAxis returns the axis of operand i of a product that the result has and that is not one of a batch, -1 if there are several.
func channelAxis(n *ir.Node, i int) int {
	if a, ok := n.Attrs().(*ops.ConvAttrs); ok {
		return a.Rhs[0]
	}
	a := n.Attrs().(*ops.DotAttrs)
	batch, contract := a.RhsBatch, a.RhsContract
	if i == 0 {
		batch, contract = a.LhsBatch, a.LhsContract
	}
	free := permute.Others(n.Input(i).Rank(), batch, contract)
	if len(free) != 1 {
		return -1
	}
	return free[0]
}

// source returns the parameter that v is, transposed or reshaped, with its axis that is the given one of v, or nil.
func source(v ir.Value, axis int) (*ir.Node, int) {
	for {
		n := v.Node()
		switch a := n.Attrs().(type) {
		case *ir.PortAttrs:
			if _, constant := n.Types()[0].Shape.Ints(); a.Kind != ir.ParamPort || !constant || n.Types()[0].DType != ir.F32 {
				return nil, -1
			}
			return n, axis
		case *ops.TransposeAttrs:
			if axis >= 0 {
				axis = a.Perm[axis]
			}
		default:
			if n.Op() != ops.OpReshape {
				return nil, -1
			}
			axis = beforeReshape(n.Input(0).Shape(), v.Shape(), axis)
		}
		v = n.Input(0)
	}
}

// beforeReshape returns the axis that became an axis by a reshape: the first or last of the same size, else -1.
func beforeReshape(from, to ir.Shape, axis int) int {
	switch {
	case axis < 0 || len(from) == 0:
	case axis == 0 && from[0] == to[0]:
		return 0
	case axis == len(to)-1 && from[len(from)-1] == to[axis]:
		return len(from) - 1
	}
	return -1
}

// onlyMultiplied reports whether products alone read what a node computes, maybe transposed or reshaped.
func onlyMultiplied(n *ir.Node, uses [][]*ir.Node, returned map[*ir.Node]bool) bool {
	if returned[n] {
		return false
	}
	return !slices.ContainsFunc(uses[n.ID()], func(u *ir.Node) bool {
		switch u.Op() {
		case ops.OpTranspose, ops.OpReshape:
			return !onlyMultiplied(u, uses, returned)
		}
		_, _, _, ok := productOf(u)
		return !ok
	})
}
