package irtest

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	_ "github.com/rlx-go/rlx/ir/ops/samples" // of all ops, for whoever imports this package
	"github.com/rlx-go/rlx/ir/scalar"
)

// Tolerance bounds the error of a result: |result − reference| ≤ Abs + Rel·|reference|. It
// is zero for exact results.
type Tolerance struct{ Abs, Rel float64 }

// Allows reports whether got is within the tolerance of want. NaN matches NaN only, and an
// infinity itself only.
func (t Tolerance) Allows(got, want float64) bool {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return true
	}
	return !math.IsInf(want, 0) && math.Abs(got-want) <= t.Abs+t.Rel*math.Abs(want)
}

// floats is the table for everything that rounds more than once: sums,
// products of matrices, composites. Integers and booleans are exact, and so are
// 8-bit floats, which are converted to and moved only.
var floats = map[ir.DType]float64{ir.F64: 1e-12, ir.F32: 2e-5, ir.BF16: 2e-2, ir.F16: 2e-3}

// loose is the factor of the tolerance for gradients and results of several steps.
const loose = 5

// deviceULP is the error that a device adds to an expanded function, by fused products and
// inexact quotients and roots.
const deviceULP = 4

// ToleranceFor returns the tolerance for results of element type d on any
// device, where no more is known of what computed them.
func ToleranceFor(d ir.DType) Tolerance { return Tolerance{Abs: floats[d], Rel: floats[d]} }

// LooseToleranceFor is [ToleranceFor] for gradients, for training steps and for
// models as a whole.
func LooseToleranceFor(d ir.DType) Tolerance {
	return Tolerance{Abs: loose * floats[d], Rel: loose * floats[d]}
}

// SampleTolerance returns the tolerance for results of the node of a sample. A
// function of its own, such as tanh, keeps its error bound everywhere
// ([scalar.ErrorBound]), but for subnormal results, which a device may flush to
// zero.
func SampleTolerance(n *ir.Node, s ir.Sample, d ir.DType) Tolerance {
	switch ulp, ok := functionULP(n); {
	case !d.IsFloat():
		return Tolerance{}
	case s.Tol != 0:
		return Tolerance{Abs: s.Tol, Rel: s.Tol}
	case ok && d == ir.F32:
		const smallestNormal = 0x1p-126
		return Tolerance{Abs: smallestNormal, Rel: ulp * 0x1p-23}
	}
	return ToleranceFor(d)
}

// functionULP returns the greatest error, in units in the last place, of a node
// that is one function applied to its operands.
func functionULP(n *ir.Node) (ulp float64, ok bool) {
	d := n.Def()
	if d.Scalar == nil {
		return 0, false
	}
	args := make([]scalar.Expr, len(n.Inputs()))
	for i, v := range n.Inputs() {
		args[i] = scalar.Arg(i, v.DType())
		if v.DType() != dtype.F32 {
			return 0, false
		}
	}
	e := d.Scalar(n, args)
	bound := scalar.ErrorBound(e.Op)
	for _, a := range e.Args {
		if a.Op != scalar.OpArg {
			return 0, false
		}
	}
	return bound + deviceULP, bound > 0
}

// SampleGraph returns the graph of a single node of an op: a sample with
// inputs "0", "1", … for its operands and outputs for its results.
func SampleGraph(op ir.Op, s ir.Sample) (*ir.Graph, *ir.Node, error) {
	var n *ir.Node
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Port(ir.InputPort, fmt.Sprint(i), a.Type())
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output(fmt.Sprint(i), v)
			n = v.Node()
		}
	})
	return g, n, err
}

// SampleInputs returns the operands of a sample under the names of [SampleGraph].
func SampleInputs(s ir.Sample) map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for i, a := range s.In {
		in[fmt.Sprint(i)] = a
	}
	return in
}
