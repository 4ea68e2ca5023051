package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// scale returns t·c: a plain product if c is a finite nonzero constant, otherwise a
// [MulZero] product. A zero Value stays so.
func scale(b *ir.Builder, t, c ir.Value) ir.Value {
	switch {
	case !t.Valid():
		return ir.Value{}
	case isFinite(c) && isNonzero(c):
		return Mul(b, t, c)
	}
	return MulZero(b, t, c)
}

// isFinite reports whether a value is known to be finite: a constant, also through moves.
func isFinite(v ir.Value) bool {
	return everyElement(v, func(x float64) bool { return x-x == 0 })
}

// isNonzero reports whether a value is known to have no zero element: a constant, also
// through moves, or a size, which divides only values that have elements.
func isNonzero(v ir.Value) bool {
	return everyElement(v, func(x float64) bool { return x != 0 })
}

// everyElement reports whether a predicate is known to hold for all elements.
func everyElement(v ir.Value, holds func(x float64) bool) bool {
	n := v.Node()
	if n == nil {
		return false
	}
	switch n.Op() {
	case ir.OpConstant:
		return everyConstant(n, holds)
	case OpBroadcastInDim, OpReshape, OpTranspose:
		return everyElement(n.Input(0), holds)
	case OpDimSize:
		return holds(1)
	}
	return false
}

// everyConstant checks the elements of a small literal.
func everyConstant(n *ir.Node, holds func(x float64) bool) bool {
	lit := n.Attrs().(*ir.ConstantAttrs)
	if len(lit.Data) > 64 {
		return false
	}
	a, err := ir.ArrayOf(lit.Type, lit.Data)
	if err != nil || a.C != nil {
		return false
	}
	for i := range a.Len() {
		if !holds(a.Float(i)) {
			return false
		}
	}
	return true
}

// addTangents returns x + y, where either may be the zero Value.
func addTangents(b *ir.Builder, x, y ir.Value) ir.Value {
	switch {
	case !x.Valid():
		return y
	case !y.Valid():
		return x
	}
	return Add(b, x, y)
}

// orZeros returns t, or zeros like x if t is the zero Value.
func orZeros(b *ir.Builder, t, x ir.Value) ir.Value {
	if t.Valid() {
		return t
	}
	return ZerosLike(b, x)
}

// linearJVP is the JVP rule of a linear op of one operand: the op applied to the tangent.
func linearJVP(b *ir.Builder, n *ir.Node, _, _, t []ir.Value) []ir.Value {
	return b.Add(n.Op(), n.Attrs(), t[0])
}

// flatJVP is the JVP rule of an op whose derivative is zero wherever it exists.
func flatJVP(_ *ir.Builder, n *ir.Node, _, _, _ []ir.Value) []ir.Value {
	return make([]ir.Value, n.NumResults())
}

// transposeEach makes the Transpose rule of an op with one result from a function that
// returns the cotangent of one linear operand.
func transposeEach(f func(b *ir.Builder, n *ir.Node, operand int, in []ir.Value, ct ir.Value) ir.Value) transposeRule {
	return func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
		out := make([]ir.Value, len(linear))
		for i, lin := range linear {
			if lin && ct[0].Valid() {
				out[i] = f(b, n, i, in, ct[0])
			}
		}
		return out
	}
}

// transposeOperand is the Transpose rule of an op with one result that is linear in operand i alone: f returns
// the operand's cotangent from that of the result.
func transposeOperand(i int, f func(b *ir.Builder, n *ir.Node, in []ir.Value, ct ir.Value) ir.Value) transposeRule {
	return func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
		out := make([]ir.Value, len(in))
		if ct[0].Valid() && onlyLinear(b, n, linear, i) {
			out[i] = f(b, n, in, ct[0])
		}
		return out
	}
}

// batchFirst is the Batch rule of an op whose operands and results may have more leading axes: the batch
// axis becomes the first.
func batchFirst(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	wide := make([]ir.Value, len(in))
	for i, x := range in {
		wide[i] = BatchAt(b, x, axes[i], 0, size)
	}
	out := b.Add(n.Op(), n.Attrs(), wide...)
	return out, make([]int, len(out))
}

// onlyLinear reports an error unless exactly one of the allowed operands is linear.
func onlyLinear(b *ir.Builder, n *ir.Node, linear []bool, allowed ...int) bool {
	count := 0
	for i, lin := range linear {
		if !lin {
			continue
		}
		if count++; !slices.Contains(allowed, i) {
			count = 2
		}
	}
	if count > 1 {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "%s is not linear in these operands together", n.Op())))
		return false
	}
	return true
}

// batchElementwise is the Batch rule of strict elementwise ops: the batch axis of all
// operands is that of the first batched one.
func batchElementwise(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	in, at := alignBatch(b, in, axes, size)
	out := b.Add(n.Op(), n.Attrs(), in...)
	outAxes := make([]int, len(out))
	for i := range outAxes {
		outAxes[i] = at
	}
	return out, outAxes
}

// alignBatch moves the batch axis of all operands, which otherwise have one shape, to that
// of the first batched one, and broadcasts the operands without it.
func alignBatch(b *ir.Builder, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, int) {
	at := 0
	for _, a := range axes {
		if a >= 0 {
			at = a
			break
		}
	}
	out := make([]ir.Value, len(in))
	for i, x := range in {
		out[i] = BatchAt(b, x, axes[i], at, size)
	}
	return out, at
}

// BatchAt returns x with its batch axis moved from one position to another, or broadcast
// along a new one of the given size if it has none (from is -1). Batch rules use it to
// align their operands. An error is recorded in b, of kind [ir.ErrAttr] for a position that x has not.
func BatchAt(b *ir.Builder, x ir.Value, from, to int, size ir.Dim) ir.Value {
	if from >= 0 {
		return MoveAxis(b, x, from, to)
	}
	if to < 0 || to > x.Rank() {
		b.Failf(OpBroadcastInDim, []ir.Value{x}, ir.Attrf("to is %d: it must be in [0, %d]", to, x.Rank()))
		return ir.Value{}
	}
	shape := slices.Insert(x.Shape().Clone(), to, size)
	return BroadcastInDim(b, x, shape, withoutAxis(len(shape), to))
}

// shifted renumbers axes after a batch axis is inserted at position at.
func shifted(axes []int, at int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = a
		if a >= at {
			out[i]++
		}
	}
	return out
}

// withoutAxis returns 0, 1, …, rank-1 without axis.
func withoutAxis(rank, axis int) []int { return permute.Others(rank, []int{axis}) }
