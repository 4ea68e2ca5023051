package ir

import "github.com/rlx-go/rlx/ir/scalar"

// Lowering tells how the elements of an op's results come from the elements of
// its operands, in scalar expressions and without any schedule: which thread
// does what, in which order, is decided by package sched for each target. It
// is one of [*MapLowering], [*ReduceLowering], [*ContractLowering],
// [*ScatterLowering], [*SortLowering], [*PrefixLowering], [*AttendLowering],
// [*TotalLowering], [*RoutineLowering], [*KernelsLowering] and [*ControlLowering].
type Lowering interface{ lowering() }

// Index is the position of an element: one I32 expression for each axis.
type Index []scalar.Expr

// Load gives the element of an operand at a position. What it returns need not
// be a load: fusion puts the operand's own expression there.
type Load func(operand int, at Index) scalar.Expr

// MapLowering is an op of which each result element can be had by itself:
// views of all kinds, gather, iota, random bits. Elementwise ops need none of
// this, see [Def.Scalar].
type MapLowering struct {
	// Element returns the element at a position of the given result. It must
	// guard its loads with scalar.Select where a position may lie outside.
	Element func(n *Node, result int, at Index, load Load) scalar.Expr
}

// Accumulator is one running value of a reduction.
type Accumulator struct {
	DType DType
	// Init is the neutral element.
	Init scalar.Expr
}

// ReduceLowering is an op that combines, for each result element, the
// elements of a space of its own: sums over axes, arg max, overlap-add.
type ReduceLowering struct {
	// Space returns the sizes of the reduced space for a node whose shapes are
	// all constant.
	Space func(n *Node) []int
	// Accumulators returns the running values.
	Accumulators func(n *Node) []Accumulator
	// Element returns what the point r of the reduced space brings to the
	// result element at a position: one expression for each accumulator.
	Element func(n *Node, at, r Index, load Load) []scalar.Expr
	// Combine merges two partial results. It is associative and commutative up
	// to rounding.
	Combine func(n *Node, a, b []scalar.Expr) []scalar.Expr
	// Finish returns the element of each result from the accumulators; nil
	// where they are the results.
	Finish func(n *Node, at Index, acc []scalar.Expr) []scalar.Expr
}

// ContractLowering is a sum of products over a contracted space, the shape of
// matrix products and convolutions, kept apart from [ReduceLowering] because
// it is worth tiling.
type ContractLowering struct {
	Spec func(n *Node) Contraction
}

// Contraction describes result[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n].
// Each of the four spaces has any number of axes, none included.
type Contraction struct {
	Batch, M, N, K []int
	// A and B return the position of the element of operand 0 and operand 1,
	// and the condition under which there is one (nil: always). Elsewhere the
	// factor is zero; the position lies inside the operand all the same.
	A, B func(batch, free, k Index) (at Index, valid scalar.Expr)
	// Out returns the position of the result element. It tells the coordinates
	// that it is made of: along an axis it is one of them, or a sum of them in
	// which each is times the number of values that those after it have.
	Out func(batch, m, n Index) Index
	// Acc is the element type of the sum.
	Acc DType
}

// ScatterMode says how an update meets the element it falls on.
type ScatterMode uint8

// The scatter modes.
const (
	// ScatterAdd adds it.
	ScatterAdd ScatterMode = iota
	// ScatterSet puts it in the element's place: of several the last one stays.
	ScatterSet
	// ScatterMul multiplies the element by it.
	ScatterMul
	// ScatterMin keeps the smaller of the two, NaN where one is.
	ScatterMin
	// ScatterMax keeps the larger of the two, NaN where one is.
	ScatterMax
)

// Neutral returns what changes nothing when it is combined with an element.
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

// Combine returns an element, or some updates of one, after an update that comes
// later.
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

// ScatterLowering is an op whose updates say where they go: the result is
// operand 0 with the updates of operand 2 applied at the positions in operand
// 1, combined in an order that the shapes alone decide, so that results are
// reproducible, unless they are unordered.
type ScatterLowering struct {
	Mode ScatterMode
	// Unique reports that no two positions have one target, so that no order
	// matters; nil where that is never known.
	Unique func(n *Node) bool
	// Unordered reports that sums of floats may be taken in any order, also in another
	// one in each run; nil where they never may.
	Unordered func(n *Node) bool
	// Space returns the sizes of the space of scatter positions (each holds one
	// index tuple), and of the window that each of them moves.
	Space func(n *Node) (positions, window []int)
	// Target returns where the window element w of scatter position p goes in
	// the result, and the condition under which it lies inside. Each coordinate
	// of the window is one of the result's; the others depend on p alone.
	Target func(n *Node, p, w Index, load Load) (at Index, inside scalar.Expr)
	// Update returns the position in the updates operand.
	Update func(n *Node, p, w Index) Index
}

// SortLowering is an op whose result, of I32, has for each place along an axis
// of its operand where the element stands that belongs there. Equal elements
// stay in their order.
type SortLowering struct {
	Axis func(n *Node) int
	// Key returns an unsigned integer, U32 or U64, for an element; the integers
	// are in order where the elements are to be.
	Key func(n *Node, x scalar.Expr) scalar.Expr
	// Bits is how many of the low bits of keys may be set.
	Bits func(n *Node) int
}

// PrefixLowering is a running combination along one axis: cumulative sums,
// linear recurrences. Results have the shape of the first operand.
type PrefixLowering struct {
	Axis func(n *Node) int
	// Reverse reports that the combination runs from the end.
	Reverse func(n *Node) bool
	// Exclusive reports that an element is not part of its own result.
	Exclusive func(n *Node) bool
	// Accumulators returns the running values.
	Accumulators func(n *Node) []Accumulator
	// Element returns what the elements at a position bring: one expression for
	// each accumulator.
	Element func(n *Node, at Index, load Load) []scalar.Expr
	// Combine merges what neighbouring runs of elements come to; those of a are
	// gone through before those of b. It is associative up to rounding and need
	// not be commutative.
	Combine func(n *Node, a, b []scalar.Expr) []scalar.Expr
	// Finish returns the element of each result from the running values; nil
	// where they are the results.
	Finish func(n *Node, acc []scalar.Expr) []scalar.Expr
	// Apart builds the same from elementwise ops and moves, for targets that cannot bind all
	// operands and results in one kernel. Sizes are constant. It may be nil where an op has
	// one operand.
	Apart func(b *Builder, n *Node, in []Value) []Value
}

// TotalLowering is the sum of all elements of all operands, any number of them. It
// stands beside a body, for backends that do better than to add up one by one.
type TotalLowering struct {
	// Sum is the element type in which elements are added up.
	Sum func(n *Node) DType
}

// RoutineLowering is an op that libraries have as a whole, such as a
// factorisation of matrices. It stands beside a body, which is what a backend
// computes that has no such library. A backend that claims the op gets all
// elements of its operands and gives all of its results.
type RoutineLowering struct{}

// AttendLowering is attention without the matrix of its scores. It stands beside
// a body, which is what is computed wherever that matrix is no burden.
//
// Operands 0, 1 and 2 are the queries, keys and values. Forward, the results are
// those of the queries and the logarithms of the sums of exponentials. Backward,
// operands 3, 4 and 5 are those logarithms, what to take off the cotangents of
// the weights in each row, and the cotangents of the forward result; results 0,
// 1 and 2 are the cotangents of queries, keys and values, and result 3, where
// there is one, that of the mask.
type AttendLowering struct {
	Spec func(n *Node) Attend
}

// Attend describes softmax(scores)·v with scores[i, j] = mask(cap(scale·q[i]·k[j])).
type Attend struct {
	// Heads are the sizes of the axes of the queries before the last two, the
	// heads last. Share neighbouring heads of queries have one of keys and values.
	Heads []int
	Share int
	// Queries and Keys are how many there are for each head, Depth is the length
	// of a query and of a key, Width that of a value.
	Queries, Keys, Depth, Width int
	Scale                       float64
	// Softcap c, where not 0, makes c·tanh(s/c) of each score s.
	Softcap float64
	// Causal hides from a query the keys after its own, where the last query
	// belongs to the last key.
	Causal bool
	// Window, where not 0, hides from a query the keys that many and more places
	// before its own.
	Window int
	// Mask is the number of the operand that hides scores, where it is boolean,
	// or is added to them. It broadcasts to them. It is -1 where there is none.
	Mask int
	// Backward tells the cotangents of attention from attention.
	Backward bool
}

// ControlLowering marks ops that run their subgraphs; package fusion knows
// them by name.
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
