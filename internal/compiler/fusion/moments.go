package fusion

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// A mean and a variance as graphs have them, Σx/n and Σ (x − Σx/n)²/n, are two passes over x where rows are split over
// workgroups, as those of the channels of a batch are. One pass is enough with deviations from any other number s:
//
//	Σx = Σ(x−s) + n·s        Σ (x − Σx/n)² = Σ(x−s)² − (Σ(x−s))²/n
//
// The difference cancels digits where s is far from the mean, by a factor of 1 + (s − Σx/n)²/σ². s is the mean of K elements
// in even steps through the row: the factor is about 1 + 1/K, at most 1 + n/K², by an outlier among them, and n/K if all of
// them are (Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance: Analysis and Recommendations).

// sampledElements is the least K where rows have as many elements: one short kernel sums so few.
const sampledElements = 256

// squares is a sum of squared deviations from the mean.
type squares struct {
	sum  *ir.Node // Σx
	axes []int    // of the rows
	n    int      // elements of a row
}

// onePass rewrites sums of squared deviations whose rows are split, so that they take one pass over their elements.
func onePass(g *ir.Graph, o Options) (*ir.Graph, error) {
	found, sums := map[*ir.Node]squares{}, map[*ir.Node]bool{}
	for _, n := range g.Nodes() {
		if s, ok := squaresOf(n); ok && s.split(o.Policy) {
			found[n], sums[s.sum] = s, true
		}
	}
	if len(found) == 0 {
		return g, nil
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		shifted := map[*ir.Node]shiftedSum{}
		for _, n := range g.Nodes() {
			b.Label(n.Label())
			b.At(n.Pos())
			s, ok := found[n]
			switch {
			case n.Op() == ir.OpPort:
			case ok:
				m.Set(n.Result(0), shifted[s.sum].squares(b))
			case sums[n]:
				shifted[n] = shiftedSumOf(b, m.Get(n.Input(0)), n.Attrs().(*ops.AxesAttrs).Axes)
				m.Set(n.Result(0), shifted[n].whole(b))
			default:
				b.CopyNode(n, m)
			}
		}
		b.CopyOutputs(g, m)
	})
}

// squaresOf matches a sum of squared deviations from the mean.
func squaresOf(n *ir.Node) (s squares, ok bool) {
	axes, ok := sumAxes(n)
	if !ok {
		return s, false
	}
	square := n.Input(0).Node()
	if square.Op() != ops.OpMul || square.Input(0) != square.Input(1) || square.Input(0).Node().Op() != ops.OpSub {
		return s, false
	}
	x, mean := square.Input(0).Node().Input(0), square.Input(0).Node().Input(1)
	s = squares{axes: axes, n: sizeOf(x.Type()) / max(sizeOf(n.Types()[0]), 1)}
	s.sum = s.sumOf(mean)
	return s, s.sum != nil && s.sum.Input(0) == x
}

// sumAxes returns the axes of a sum of f32, and false for other nodes.
func sumAxes(n *ir.Node) (axes []int, ok bool) {
	if n.Op() != ops.OpReduceSum || n.Types()[0].DType != ir.F32 {
		return nil, false
	}
	return n.Attrs().(*ops.AxesAttrs).Axes, true
}

// sumOf returns the sum that a mean, broadcast along the rows, is computed from, or nil.
func (s squares) sumOf(mean ir.Value) *ir.Node {
	divided := false
	for n := mean.Node(); len(n.Inputs()) > 0; n = n.Input(0).Node() {
		axes, sum := sumAxes(n)
		switch {
		case sum && divided && slices.Equal(axes, s.axes):
			return n
		case n.Op() == ops.OpReshape || n.Op() == ops.OpBroadcastInDim && s.alongRows(n):
		case !divided && s.divides(n):
			divided = true
		default:
			return nil
		}
	}
	return nil
}

// alongRows reports whether a broadcast repeats its operand along the axes of rows, and the others are in order.
func (s squares) alongRows(n *ir.Node) bool {
	last := -1
	for i, axis := range n.Attrs().(*ops.BroadcastAttrs).Axes {
		if dimsOf(n.Input(0))[i] == 1 {
			continue
		}
		if axis < last || slices.Contains(s.axes, axis) {
			return false
		}
		last = axis
	}
	return true
}

// divides reports whether a node divides by the number of elements of a row.
func (s squares) divides(n *ir.Node) bool {
	if n.Op() != ops.OpDiv && n.Op() != ops.OpMul {
		return false
	}
	c := n.Input(1).Node()
	if c.Op() == ops.OpBroadcastInDim {
		c = c.Input(0).Node()
	}
	a, ok := c.Attrs().(*ir.ConstantAttrs)
	if !ok || len(a.Data) != 4 || a.Type.DType != ir.F32 {
		return false
	}
	count := float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data)))
	if n.Op() == ops.OpMul {
		count = 1 / count
	}
	return math.Abs(count-float64(s.n)) <= 1e-6*float64(s.n)
}

// split reports whether rows take several workgroups, so that each sum is a pass over memory.
func (s squares) split(policy Policy) bool {
	x := s.sum.Input(0)
	contiguous := !slices.Contains(s.axes, x.Rank()-1)
	return !policy.AllowsStages(sizeOf(s.sum.Types()[0]), s.n, contiguous)
}

// shiftedSum is Σ(x−s) over rows, and what it is computed from.
type shiftedSum struct {
	shift      ir.Value // s
	deviations ir.Value // x−s
	sum        ir.Value
	axes       []int
	n          float64 // elements of a row
}

// shiftedSumOf returns the sum of the deviations of x from the mean of some elements of each row.
func shiftedSumOf(b *ir.Builder, x ir.Value, axes []int) shiftedSum {
	some := sampled(b, x, axes)
	s := shiftedSum{axes: axes}
	s.shift = ops.Div(b, ops.ReduceSum(b, some, axes...), ops.Const(b, ir.F32, float64(rowLength(some, axes))))
	kept := permute.Others(x.Rank(), axes)
	s.deviations = ops.Sub(b, x, ops.BroadcastInDim(b, s.shift, x.Shape(), kept))
	s.sum = ops.ReduceSum(b, s.deviations, axes...)
	s.n = float64(rowLength(x, axes))
	return s
}

// rowLength returns the number of elements of a row along axes.
func rowLength(x ir.Value, axes []int) int {
	n := 1
	for _, axis := range axes {
		n *= dimsOf(x)[axis]
	}
	return n
}

// sampled returns elements of each row of x in even steps along its axes, at least sampledElements.
func sampled(b *ir.Builder, x ir.Value, axes []int) ir.Value {
	stride, size := make([]int, x.Rank()), slices.Clone(dimsOf(x))
	for i := range stride {
		stride[i] = 1
	}
	for left, halved := rowLength(x, axes), true; halved; {
		halved = false
		for _, axis := range axes {
			if size[axis] > 1 && left/2 >= sampledElements {
				stride[axis], size[axis], left, halved = 2*stride[axis], size[axis]/2, left/2, true
			}
		}
	}
	start := make([]int, x.Rank())
	for i, n := range dimsOf(x) {
		start[i] = (n - (size[i]-1)*stride[i]) / 2
	}
	return ops.Slice(b, x, ir.Dims(start...), ir.Dims(size...), stride)
}

// whole returns Σx.
func (s shiftedSum) whole(b *ir.Builder) ir.Value {
	return ops.Add(b, s.sum, ops.Mul(b, s.shift, ops.Const(b, ir.F32, s.n)))
}

// squares returns the sum of squared deviations from the mean, at least 0 in spite of rounding.
func (s shiftedSum) squares(b *ir.Builder) ir.Value {
	sum := ops.ReduceSum(b, ops.Mul(b, s.deviations, s.deviations), s.axes...)
	beyond := ops.Div(b, ops.Mul(b, s.sum, s.sum), ops.Const(b, ir.F32, s.n))
	return ops.Max(b, ops.Sub(b, sum, beyond), ops.Const(b, ir.F32, 0))
}
