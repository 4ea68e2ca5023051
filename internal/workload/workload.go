// Package workload estimates how much work a graph is, whatever the device: operations of products, bytes that
// kernels read and write, kernels, and bytes that go between host and device.
//
// Its input is a graph of constant sizes, before it is compiled; its output is a [Work], by which devices are compared
// for a model. It knows nothing of schedules: package sched has the costs of those, package sim/tally those of kernels.
package workload

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Work is the work of a run of a graph.
type Work struct {
	// Operations are the multiplications and additions of products, convolutions and attention.
	Operations float64
	// Bytes are the operands and results of what has a kernel of its own: elementwise ops and moves
	// are taken as fused.
	Bytes float64
	// Kernels is the number of kernels.
	Kernels float64
	// Transfer are the bytes of inputs and outputs.
	Transfer float64
}

// Of returns the work of a graph whose sizes are constants: a size that is open counts as 1. A loop
// counts its body once for each step; of a branch the more expensive side counts.
func Of(g *ir.Graph) Work {
	w := inside(g)
	for _, p := range g.Ports() {
		if p.Kind == ir.InputPort {
			w.Transfer += bytesOf(p.Value)
		}
	}
	for _, o := range g.Outputs() {
		if !o.State {
			w.Transfer += bytesOf(o.Value)
		}
	}
	return w
}

// inside returns the work of the nodes of a graph.
func inside(g *ir.Graph) (w Work) {
	for _, n := range g.Nodes() {
		w = w.plus(ofNode(n), 1)
	}
	return w
}

// plus returns the work of w and some times that of v.
func (w Work) plus(v Work, times float64) Work {
	return Work{w.Operations + times*v.Operations, w.Bytes + times*v.Bytes, w.Kernels + times*v.Kernels, w.Transfer + times*v.Transfer}
}

func ofNode(n *ir.Node) Work {
	if _, ok := n.Attrs().(*ops.PackedProductAttrs); ok {
		return ofPacked(n)
	}
	switch l := n.Def().Lower.(type) {
	case *ir.ContractLowering:
		c := l.Spec(n)
		return kernel(n, 2*size(c.Batch)*size(c.M)*size(c.N)*size(c.K))
	case *ir.AttendLowering:
		a := l.Spec(n)
		products := 2 * size(a.Heads) * float64(a.Queries) * float64(a.Keys) * float64(a.Depth+a.Width)
		if a.Backward {
			products *= 2.5 // five products in place of two
		}
		return kernel(n, products)
	case nil, *ir.MapLowering, *ir.ControlLowering: // elementwise, a composite, or a loop
	default:
		return kernel(n, 0)
	}
	if n.Def().IsComposite() {
		body, err := ir.Body(n)
		if err != nil {
			return Work{}
		}
		return inside(body)
	}
	return ofSubgraphs(n)
}

func ofSubgraphs(n *ir.Node) Work {
	var most, all Work
	for _, sub := range n.Subgraphs() {
		w := inside(sub)
		if all = all.plus(w, 1); w.Operations >= most.Operations {
			most = w
		}
	}
	if a, ok := n.Attrs().(*ops.ScanAttrs); ok {
		steps, _ := a.Length.Const()
		return Work{}.plus(all, float64(steps))
	}
	return most
}

// ofPacked returns the work of a product with packed weights. Of groups, one matrix is read for each row at most.
func ofPacked(n *ir.Node) Work {
	x, w := n.Input(0), n.Input(1)
	k, _ := x.Dim(-1).Const()
	work := kernel(n, 2*bytesOf(n.Result(0))/float64(x.DType().Size())*float64(k))
	if n.Op() == ops.OpQuantizedGroupedMatMul {
		m, _ := x.Dim(0).Const()
		g, _ := w.Dim(0).Const()
		work.Bytes -= bytesOf(w) * max(0, 1-float64(m)/float64(max(g, 1)))
	}
	return work
}

// kernel returns the work of a node with a kernel of its own.
func kernel(n *ir.Node, operations float64) Work {
	w := Work{Operations: operations, Kernels: 1}
	for _, x := range n.Inputs() {
		w.Bytes += bytesOf(x)
	}
	for _, y := range n.Results() {
		w.Bytes += bytesOf(y)
	}
	return w
}

func bytesOf(v ir.Value) float64 {
	total := float64(v.DType().Size())
	for _, d := range v.Shape() {
		if n, constant := d.Const(); constant {
			total *= float64(n)
		}
	}
	return total
}

// size returns the number of points of a space.
func size(dims []int) float64 {
	n := 1.
	for _, d := range dims {
		n *= float64(d)
	}
	return n
}
