package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpLinearRecurrence is h[i] = a[i]·h[i−1] + b[i] along an axis.
const OpLinearRecurrence ir.Op = "linear_recurrence"

// maxRecurrence is the maximum number of coupled recurrences: the workgroup memory grows
// with its square.
const maxRecurrence = 4

func init() {
	define(&ir.Def{
		Op: OpLinearRecurrence,
		Doc: "h[i] = a[i]·h[i−1] + b[i] along an axis, from h = 0 before the first element, or from the end with reverse; " +
			"h[i−1] instead of h[i] with exclusive. For k coupled recurrences a is the k×k matrix of factors, k·k operands in row-major order, " +
			"and b the k terms. It is computed as a parallel scan.",
		Constraints: numbered("all operands have one type, of float or complex elements", "axis is an axis of them",
			"there are k·k + k operands, with k from 1 to 4"),
		Operands:  []string{"a", "b", "more..."},
		NewAttrs:  func() ir.Attrs { return &CumSumAttrs{} },
		Infer:     inferLinearRecurrence,
		Eval:      evalLinearRecurrence,
		JVP:       jvpLinearRecurrence,
		Transpose: transposeLinearRecurrence,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			in, at := alignBatch(b, in, axes, size)
			a := *cumAttrs(n)
			a.Axis = shifted([]int{a.Axis}, at)[0]
			out := b.Add(n.Op(), &a, in...)
			return out, slices.Repeat([]int{at}, len(out))
		},
		Lower: &ir.PrefixLowering{
			Axis:         func(n *ir.Node) int { return cumAttrs(n).Axis },
			Reverse:      func(n *ir.Node) bool { return cumAttrs(n).Reverse },
			Exclusive:    func(n *ir.Node) bool { return cumAttrs(n).Exclusive },
			Accumulators: recurrenceAccumulators,
			Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
				out := make([]scalar.Expr, len(n.Inputs()))
				for i, v := range n.Inputs() {
					out[i] = scalar.Convert(load(i, at), sumType(v.DType()))
				}
				return out
			},
			Combine: func(n *ir.Node, x, y []scalar.Expr) []scalar.Expr {
				return combineRecurrence(n.NumResults(), x, y, scalar.Mul, scalar.Add)
			},
			Decompose: decomposeRecurrence,
			Finish: func(n *ir.Node, acc []scalar.Expr) []scalar.Expr {
				k := n.NumResults()
				out := make([]scalar.Expr, k)
				for i := range out {
					out[i] = scalar.Convert(acc[k*k+i], n.Input(0).DType())
				}
				return out
			},
		},
	})
}

// LinearRecurrence returns h with h[i] = x[i]·h[i−1] + y[i] along an axis, from h = 0,
// computed as a parallel scan. x and y have one float or complex type. A negative axis
// counts from the last.
func LinearRecurrence(b *ir.Builder, x, y ir.Value, a CumSumAttrs) ir.Value {
	return LinearRecurrences(b, []ir.Value{x}, []ir.Value{y}, a)[0]
}

// LinearRecurrences returns k coupled recurrences h[0], …, h[k−1], for k up to 4: y holds
// their terms, x the k×k matrix of factors in row-major order. A negative axis counts from
// the last.
func LinearRecurrences(b *ir.Builder, x, y []ir.Value, a CumSumAttrs) []ir.Value {
	if len(x) > 0 {
		a.Axis = fromFront([]int{a.Axis}, x[0].Rank())[0]
	}
	return several(len(y), b.Add(OpLinearRecurrence, &a, slices.Concat(x, y)...))
}

func inferLinearRecurrence(n *ir.Node) ([]ir.Type, error) {
	t, err := sameTypes(n, floats|complexes)
	if err != nil {
		return nil, err
	}
	for k := 1; k <= maxRecurrence; k++ {
		if len(n.Inputs()) == k*k+k {
			return slices.Repeat([]ir.Type{t}, k), checkAxes([]int{cumAttrs(n).Axis}, len(t.Shape))
		}
	}
	return nil, ir.Shapef("there are %d operands, which is no k·k + k with k from 1 to %d", len(n.Inputs()), maxRecurrence)
}

// recurrenceAccumulators are the factors and terms of a run of elements, initially the
// identity.
func recurrenceAccumulators(n *ir.Node) []ir.Accumulator {
	k, d := n.NumResults(), sumType(n.Input(0).DType())
	out := make([]ir.Accumulator, k*k+k)
	for i := range out {
		out[i] = ir.Accumulator{DType: d, Init: scalar.Const(d, 0)}
		if i < k*k && i/k == i%k {
			out[i].Init = scalar.Const(d, 1)
		}
	}
	return out
}

// combineRecurrence composes h → x·h + x' and then h → y·h + y', for k values h.
func combineRecurrence[T any](k int, x, y []T, mul, add func(x, y T) T) []T {
	out := make([]T, k*k+k)
	// product is a row of y times a column of x.
	product := func(row, first, step int) T {
		sum := mul(y[row*k], x[first])
		for j := 1; j < k; j++ {
			sum = add(sum, mul(y[row*k+j], x[first+j*step]))
		}
		return sum
	}
	for i := range k {
		for j := range k {
			out[i*k+j] = product(i, j, k)
		}
		out[k*k+i] = add(product(i, k*k, 1), y[k*k+i])
	}
	return out
}

// decomposeRecurrence decomposes the recurrence into nodes of few operands.
func decomposeRecurrence(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	k, d, a := n.NumResults(), n.Input(0).DType(), *cumAttrs(n)
	x := make([]ir.Value, len(in))
	for i, v := range in {
		x[i] = Convert(b, v, sumType(d))
	}
	out := doublingScan(b, a, x, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		of := func(op func(b *ir.Builder, x, y ir.Value) ir.Value) func(x, y ir.Value) ir.Value {
			return func(x, y ir.Value) ir.Value { return op(b, x, y) }
		}
		return combineRecurrence(k, x, y, of(Mul), of(Add))
	})[k*k:]
	before := a
	before.Reverse = !a.Reverse
	for i, v := range out {
		if a.Exclusive {
			v = nextInScan(b, v, before)
		}
		out[i] = Convert(b, v, d)
	}
	return out
}

func evalLinearRecurrence(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, x, k := cumAttrs(n), in[0], n.NumResults()
	out := make([]*ir.Array, k)
	for i := range out {
		var err error
		if out[i], err = resultArray(n, i); err != nil {
			return nil, err
		}
	}
	step, length := strides(x.Dims)[a.Axis], x.Dims[a.Axis]
	for _, base := range offsets(x.Dims, permute.Others(len(x.Dims), []int{a.Axis})) {
		h := ir.NewArray(x.DType, k)
		for i := range length {
			if a.Reverse {
				i = length - 1 - i
			}
			at := base + i*step
			next := ir.NewArray(x.DType, k)
			for r := range k {
				for j := range k {
					part := ir.NewArray(x.DType, 1)
					copyElement(part, 0, h, j)
					mulElement(part, 0, in[r*k+j], at)
					addElement(next, r, part, 0)
				}
				addElement(next, r, in[k*k+r], at)
				if a.Exclusive {
					copyElement(out[r], at, h, r)
				} else {
					copyElement(out[r], at, next, r)
				}
			}
			h = next
		}
	}
	for i := range out {
		out[i] = c.Round(out[i])
	}
	return out, nil
}

// jvpLinearRecurrence differentiates h[i] = a[i]·h[i−1] + b[i].
func jvpLinearRecurrence(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	k := n.NumResults()
	last := out
	if a := *cumAttrs(n); !a.Exclusive && slices.ContainsFunc(t[:k*k], ir.Value.Valid) {
		a.Exclusive = true
		last = LinearRecurrences(b, in[:k*k], in[k*k:], a)
	}
	moved := make([]ir.Value, k)
	for i := range moved {
		moved[i] = t[k*k+i]
		for j := range k {
			if by := t[i*k+j]; by.Valid() {
				moved[i] = addTangents(b, moved[i], scale(b, by, last[j]))
			}
		}
		moved[i] = orZeros(b, moved[i], in[0])
	}
	return LinearRecurrences(b, in[:k*k], moved, *cumAttrs(n))
}

// transposeLinearRecurrence is a recurrence in the other direction with the transposed
// factors of the next element.
func transposeLinearRecurrence(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	k := n.NumResults()
	out := make([]ir.Value, k*k+k)
	if !slices.ContainsFunc(ct, ir.Value.Valid) || !onlyLinear(b, n, linear[:k*k]) {
		return out
	}
	a := *cumAttrs(n)
	x, y := make([]ir.Value, k*k), make([]ir.Value, k)
	for i := range k {
		y[i] = ct[i]
		if !y[i].Valid() {
			y[i] = Zeros(b, n.Types()[i].DType, n.Types()[i].Shape...)
		}
		for j := range k {
			x[j*k+i] = in[i*k+j]
			if !a.Exclusive {
				x[j*k+i] = nextInScan(b, in[i*k+j], a)
			}
		}
	}
	a.Reverse = !a.Reverse
	copy(out[k*k:], LinearRecurrences(b, x, y, a))
	return out
}

// nextInScan returns for each element the next one in scan order, 0 for the last.
func nextInScan(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	low, high := repeatInt(0, x.Rank()), repeatInt(0, x.Rank())
	low[a.Axis], high[a.Axis] = -1, 1
	if a.Reverse {
		low[a.Axis], high[a.Axis] = 1, -1
	}
	return Pad(b, x, Zeros(b, x.DType()), low, high, nil)
}
