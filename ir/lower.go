package ir

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Lowering defines the elements of an op's results in terms of the elements of its operands, as
// scalar expressions without a schedule. Package sched chooses the schedule for each target. A
// Lowering is one of [*MapLowering], [*ReduceLowering], [*ContractLowering], [*ScatterLowering],
// [*SortLowering], [*PrefixLowering], [*AttendLowering], [*TotalLowering], [*RoutineLowering],
// [*KernelsLowering] and [*ControlLowering].
type Lowering interface{ lowering() }

// Index is the position of an element: one I32 expression for each axis.
type Index []scalar.Expr

// Load returns the element of an operand at a position. The result need not be a load: producer
// fusion substitutes the expression of the operand.
type Load func(operand int, at Index) scalar.Expr

// MapLowering is an op whose result elements are computed independently: views, gather, iota,
// random bits. Elementwise ops use [Def.Scalar] instead.
type MapLowering struct {
	// Element returns the element of a result at a position. Loads whose position may be out of
	// range must be guarded with scalar.Select.
	Element func(n *Node, result int, at Index, load Load) scalar.Expr
}

// Accumulator is one running value of a reduction or scan.
type Accumulator struct {
	DType DType
	// Init is the neutral element.
	Init scalar.Expr
}

// ReduceLowering is an op that reduces a space of elements for each result element: sums over axes,
// arg max, overlap-add.
type ReduceLowering struct {
	// Space returns the sizes of the reduced space. All shapes of n are constant.
	Space func(n *Node) []int
	// Accumulators returns the running values.
	Accumulators func(n *Node) []Accumulator
	// Element returns the contribution of the point r of the reduced space to the result element at
	// a position: one expression for each accumulator.
	Element func(n *Node, at, r Index, load Load) []scalar.Expr
	// Combine merges two partial results. It must be associative and commutative up to rounding.
	Combine func(n *Node, a, b []scalar.Expr) []scalar.Expr
	// Finish returns the element of each result from the accumulators; nil if they are the results.
	Finish func(n *Node, at Index, acc []scalar.Expr) []scalar.Expr
}

// ContractLowering is a sum of products over a contracted space, as in matrix products and
// convolutions. It is separate from [ReduceLowering] because it has its own tiled schedules.
type ContractLowering struct {
	Spec func(n *Node) Contraction
	// Phase, if not nil, returns contraction i of the returned number of phases, which together compute the same with
	// fewer products, each some of the results. A single one is no different. If i is [Undivided], it returns the
	// contraction with all products, in which factors between elements of an operand are zeros.
	Phase func(n *Node, i int) (phase Contraction, phases int)
}

// Numbers of the forms of a contraction that have all results, see [ContractLowering]: not divided into phases, and with
// phases as axes of its batch, as Spec returns it.
const (
	Undivided     = -1
	PhasesInBatch = -2
)

// Contraction describes result[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n]. Each of the four
// spaces has any number of axes, including none.
type Contraction struct {
	Batch, M, N, K []int
	// A and B return the position of the element of operand 0 and 1, and the condition under which
	// it is inside (nil: always). If the condition is false, the factor is zero, and the position
	// is still in range.
	A, B func(batch, free, k Index) (at Index, valid scalar.Expr)
	// Out returns the position of the result element, which determines the coordinates: along each
	// axis it is one coordinate, or a sum of coordinates in mixed radix, each multiplied by the
	// product of the sizes of the following ones.
	Out func(batch, m, n Index) Index
	// Ends are the sizes of the result where some positions of Out are past its end along an axis, those of a point of the
	// batch and of M for all points of N: what is computed for them is not stored. It is nil if there are none.
	Ends []int
	// Acc is the element type of the accumulator.
	Acc DType
	// Windows, of one entry for each axis of operand 0, says how A reads it where that is by windows, as in a
	// convolution. It is nil for other contractions.
	Windows []Window
}

// Stored returns the condition under which the result has the position of a point: see Ends.
func (c *Contraction) Stored(batch, m, n Index) scalar.Expr {
	stored := scalar.ConstBool(true)
	for axis, size := range c.Ends {
		stored = scalar.And(stored, scalar.Lt(c.Out(batch, m, n)[axis], loop.Int(size)))
	}
	return stored
}

// Window is how a contraction reads an axis of an operand: at position m·StepM + k·StepK − Lo, where m and k are coordinates
// M and K of the free and of the contracted space, and −1 stands for none. A factor outside of the axis is zero.
type Window struct {
	M, StepM int
	K, StepK int
	Lo       int
}

// ScatterMode is how an update is combined with the element at its target.
type ScatterMode uint8

// The scatter modes.
const (
	// ScatterAdd adds the update.
	ScatterAdd ScatterMode = iota
	// ScatterSet replaces the element; the last update of an element wins.
	ScatterSet
	// ScatterMul multiplies by the update.
	ScatterMul
	// ScatterMin keeps the minimum, NaN if either is NaN.
	ScatterMin
	// ScatterMax keeps the maximum, NaN if either is NaN.
	ScatterMax
)

// Neutral returns the neutral element of the combination.
func (m ScatterMode) Neutral(d DType) scalar.Expr {
	switch m {
	case ScatterMul:
		return scalar.Const(d, 1)
	case ScatterMin:
		return scalar.Extreme(d, 1)
	case ScatterMax:
		return scalar.Extreme(d, -1)
	}
	return scalar.Const(d, 0)
}

// Combine returns x, an element or a combination of updates, combined with a later update u.
func (m ScatterMode) Combine(x, u scalar.Expr) scalar.Expr {
	switch m {
	case ScatterSet:
		return u
	case ScatterMul:
		return scalar.Mul(x, u)
	case ScatterMin:
		return scalar.Min(x, u)
	case ScatterMax:
		return scalar.Max(x, u)
	}
	return scalar.Add(x, u)
}

// ScatterLowering is an op that writes updates to computed positions. The result is operand 0 with
// the updates of operand 2 combined at the positions of operand 1. The order of combination depends
// on the shapes only, so that results are reproducible, unless the op is unordered.
type ScatterLowering struct {
	Mode ScatterMode
	// Unique reports that all targets are different, so that the order is irrelevant; nil if that
	// is never known.
	Unique func(n *Node) bool
	// Sorted reports that the rows of the result that the positions target do not decrease in
	// row-major order, but for positions without a target, which come first or last; nil if that is
	// never known.
	Sorted func(n *Node) bool
	// Unordered reports that floating sums may be computed in any order, even a different one in
	// each run; nil if never.
	Unordered func(n *Node) bool
	// Space returns the sizes of the space of scatter positions, each with one index tuple, and of
	// the window that each position writes.
	Space func(n *Node) (positions, window []int)
	// Target returns the position in the result of window element w of scatter position p, and the
	// condition under which it is inside. Each coordinate of the window is a coordinate of the
	// result; the others depend on p only.
	Target func(n *Node, p, w Index, load Load) (at Index, inside scalar.Expr)
	// Update returns the position in the updates operand.
	Update func(n *Node, p, w Index) Index
}

// SortLowering is an op whose I32 result holds, for each place along an axis of the sorted operand,
// the position of the element that belongs there. The order is stable. Where the result is shorter along
// the axis, it holds the first places.
type SortLowering struct {
	Axis func(n *Node) int
	// Key returns the sort key of an element, an unsigned integer of type U32 or U64.
	Key func(n *Node, x scalar.Expr) scalar.Expr
	// Bits returns the number of low bits of the keys that may be set.
	Bits func(n *Node) int
}

// PrefixLowering is a scan along one axis: cumulative sums, linear recurrences. Results have the
// shape of the first operand.
type PrefixLowering struct {
	Axis func(n *Node) int
	// Reverse reports that the scan starts at the end.
	Reverse func(n *Node) bool
	// Exclusive reports an exclusive scan: an element does not contribute to its own result.
	Exclusive func(n *Node) bool
	// Accumulators returns the running values.
	Accumulators func(n *Node) []Accumulator
	// Element returns the contribution of the elements at a position: one expression for each
	// accumulator.
	Element func(n *Node, at Index, load Load) []scalar.Expr
	// Combine merges the results of two adjacent ranges of elements, a before b. It must be
	// associative up to rounding and need not be commutative.
	Combine func(n *Node, a, b []scalar.Expr) []scalar.Expr
	// Finish returns the element of each result from the accumulators; nil if they are the results.
	Finish func(n *Node, acc []scalar.Expr) []scalar.Expr
	// Decompose builds the scan from elementwise ops and views, for targets that cannot bind all
	// operands and results in one kernel. Sizes are constant. It may be nil for an op with one
	// operand.
	Decompose func(b *Builder, n *Node, in []Value) []Value
}

// TotalLowering is the sum of all elements of any number of operands. It comes with a Body, for
// backends with a multi-tensor reduction.
type TotalLowering struct {
	// Sum returns the element type of the accumulator.
	Sum func(n *Node) DType
}

// RoutineLowering is an op that libraries implement as a whole, such as a matrix factorisation. It
// comes with a Body for backends without the library. A backend that claims the op gets complete
// operands and returns complete results.
type RoutineLowering struct {
	// Calls returns the library calls of a plan that compute a node of constant shapes on a target,
	// as [KernelsLowering] does; nil, or a nil result, means that there are none. It must be a pure
	// function.
	Calls func(n *Node, caps loop.Caps) *Algorithm
}

// AttendLowering is attention that does not store the matrix of scores (flash attention). It comes
// with a Body, which is used if the matrix is small.
//
// Operands 0, 1 and 2 are queries, keys and values. The forward results are the attention output
// and the logarithm of the sum of exponentials of each row. In the backward form, operand 3 is that
// logarithm, operand 4 the row values subtracted from the cotangents of the weights, and operand 5
// the cotangents of the attention output. Results 0, 1 and 2 are the cotangents of queries, keys
// and values; result 3, if there is one, is that of the mask.
type AttendLowering struct {
	Spec func(n *Node) Attend
}

// Attend describes softmax(scores)·v with scores[i, j] = mask(cap(scale·q[i]·k[j])).
type Attend struct {
	// Heads are the sizes of the leading axes of the queries, the heads last. Share is the number
	// of consecutive query heads that share one head of keys and values.
	Heads []int
	Share int
	// Queries and Keys are the numbers of queries and keys for each head. Depth is the length of a
	// query or key vector, Width that of a value vector.
	Queries, Keys, Depth, Width int
	Scale                       float64
	// Softcap c, if not 0, replaces each score s with c·tanh(s/c).
	Softcap float64
	// Causal masks keys after the query, aligned so that the last query belongs to the last key.
	Causal bool
	// Window, if not 0, limits attention to recent keys: a query at i attends to keys j with i − j
	// < Window.
	Window int
	// Mask is the index of the mask operand, which broadcasts to the scores. A boolean mask hides
	// scores, any other is added to them. It is -1 without a mask.
	Mask int
	// Backward selects the cotangents of attention instead of attention.
	Backward bool
}

// ControlLowering marks ops that run subgraphs; package fusion handles them by name.
type ControlLowering struct{}

func (*MapLowering) lowering()      {}
func (*ReduceLowering) lowering()   {}
func (*ContractLowering) lowering() {}
func (*ScatterLowering) lowering()  {}
func (*SortLowering) lowering()     {}
func (*PrefixLowering) lowering()   {}
func (*AttendLowering) lowering()   {}
func (*TotalLowering) lowering()    {}
func (*RoutineLowering) lowering()  {}
func (*ControlLowering) lowering()  {}
