package ops

import (
	"math"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Scans (cumulative reductions) along an axis.
const (
	OpCumSum       ir.Op = "cumsum"
	OpCumProd      ir.Op = "cumprod"
	OpCumMax       ir.Op = "cummax"
	OpCumMin       ir.Op = "cummin"
	OpCumLogSumExp ir.Op = "cumlogsumexp"
)

// CumSumAttrs describe a scan: its axis, its direction, and whether it is exclusive.
type CumSumAttrs struct {
	Axis               int
	Reverse, Exclusive bool
}

// Visit shows the attributes.
func (a *CumSumAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Bool("reverse", &a.Reverse)
	v.Bool("exclusive", &a.Exclusive)
}

// cumulative describes a scan of one operand.
type cumulative struct {
	op        ir.Op
	what, doc string
	types     domain
	// identity is the identity element, and add the operator: it combines element j of src into
	// element i of dst.
	identity func(d ir.DType) *ir.Array
	add      func(dst *ir.Array, i int, src *ir.Array, j int)
	lower    func() *ir.PrefixLowering
	jvp      jvpRule
	// transpose is nil for a nonlinear scan.
	transpose transposeRule
}

func cumAttrs(n *ir.Node) *CumSumAttrs { return n.Attrs().(*CumSumAttrs) }

func init() {
	defineCumulative(cumulative{
		op: OpCumSum, what: "sum", doc: " Integers wrap.", types: numbers,
		identity: filledWith(0), add: addElement, lower: combining(0, scalar.Add), jvp: linearJVP,
		transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			a := *cumAttrs(n)
			a.Reverse = !a.Reverse
			return CumSum(b, ct, a)
		}),
	})
	defineCumulative(cumulative{
		op: OpCumProd, what: "product", doc: " Integers wrap.", types: numbers,
		identity: filledWith(1), add: mulElement, lower: combining(1, scalar.Mul), jvp: jvpCumProd,
	})
	defineCumulative(cumulative{
		op: OpCumMax, what: "largest", doc: " NaN from the first NaN on. Elements that are equal share the derivative as those of max do.", types: reals,
		identity: extreme(-1), add: extremeElement(larger, 1), lower: runningExtremum(-1, scalar.Max), jvp: jvpCumExtremum,
	})
	defineCumulative(cumulative{
		op: OpCumMin, what: "smallest", doc: " NaN from the first NaN on. Elements that are equal share the derivative as those of min do.", types: reals,
		identity: extreme(1), add: extremeElement(smaller, -1), lower: runningExtremum(1, scalar.Min), jvp: jvpCumExtremum,
	})
	defineCumulative(cumulative{
		op: OpCumLogSumExp, what: "logarithm of the sum of the exponentials", types: floats,
		identity: extreme(-1), add: logAddElement, lower: logSums, jvp: jvpCumLogSumExp,
	})
}

func defineCumulative(c cumulative) {
	lower := c.lower()
	lower.Axis = func(n *ir.Node) int { return cumAttrs(n).Axis }
	lower.Reverse = func(n *ir.Node) bool { return cumAttrs(n).Reverse }
	lower.Exclusive = func(n *ir.Node) bool { return cumAttrs(n).Exclusive }
	d := &ir.Def{
		Op: c.op,
		Doc: "The " + c.what + " of all elements up to each element along an axis, or from it to the end with reverse; " +
			"not including the element itself with exclusive." + c.doc,
		Constraints: numbered("the element type of x is "+c.types.String(), "axis is an axis of x"),
		Operands:    []string{"x"},
		NewAttrs:    func() ir.Attrs { return &CumSumAttrs{} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0).Type()
			if err := c.types.check(x.DType); err != nil {
				return nil, err
			}
			return []ir.Type{x}, checkAxes([]int{cumAttrs(n).Axis}, len(x.Shape))
		},
		Eval: evalResult(c.eval), JVP: c.jvp, Transpose: c.transpose,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			a := *cumAttrs(n)
			a.Axis = shifted([]int{a.Axis}, axes[0])[0]
			return []ir.Value{cumulated(b, n.Op(), in[0], a)}, axes
		},
		Lower: lower,
	}
	define(d)
}

// CumSum returns the cumulative sum of x along a.Axis, which may count from the last: an
// inclusive or exclusive scan, from the end with a.Reverse.
func CumSum(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value { return cumulated(b, OpCumSum, x, a) }

// CumProd returns the cumulative product of x: see [CumSum].
func CumProd(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value { return cumulated(b, OpCumProd, x, a) }

// CumMax returns the cumulative maximum of x: see [CumSum].
func CumMax(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value { return cumulated(b, OpCumMax, x, a) }

// CumMin returns the cumulative minimum of x: see [CumSum].
func CumMin(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value { return cumulated(b, OpCumMin, x, a) }

// CumLogSumExp returns the logarithm of the cumulative sum of the exponentials of x,
// computed stably: see [CumSum].
func CumLogSumExp(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value {
	return cumulated(b, OpCumLogSumExp, x, a)
}

func cumulated(b *ir.Builder, op ir.Op, x ir.Value, a CumSumAttrs) ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return b.Add1(op, &a, x)
}

func filledWith(x float64) func(d ir.DType) *ir.Array {
	return func(d ir.DType) *ir.Array {
		a := ir.NewArray(d)
		a.SetElement(0, scalar.Value{F: x, I: int64(x), C: complex(x, 0)})
		return a
	}
}

func extreme(sign int) func(d ir.DType) *ir.Array {
	return func(d ir.DType) *ir.Array {
		a, v := ir.NewArray(d, 1), scalar.Value{}
		if v, _ = scalar.Extreme(d, sign).Value(); a.F != nil {
			a.F[0] = v.F
		} else {
			a.I[0] = v.I
		}
		return a
	}
}

// logAddElement is log(exp x + exp y), relative to the larger of the two.
func logAddElement(dst *ir.Array, i int, src *ir.Array, j int) {
	x, y := dst.F[i], src.F[j]
	m := larger(x, y)
	if !math.IsInf(m, 0) {
		m += math.Log(math.Exp(x-m) + math.Exp(y-m))
	}
	dst.F[i] = m
}

func (c cumulative) eval(n *ir.Node, in []*ir.Array, out *ir.Array) {
	a, x := cumAttrs(n), in[0]
	step, length := strides(x.Dims)[a.Axis], x.Dims[a.Axis]
	for _, base := range offsets(x.Dims, permute.Others(len(x.Dims), []int{a.Axis})) {
		running := c.identity(x.DType)
		for i := range length {
			if a.Reverse {
				i = length - 1 - i
			}
			at := base + i*step
			if a.Exclusive {
				copyElement(out, at, running, 0)
			}
			c.add(running, 0, x, at)
			if !a.Exclusive {
				copyElement(out, at, running, 0)
			}
		}
	}
}

// before returns the exclusive scan.
func before(b *ir.Builder, n *ir.Node, in, out []ir.Value) ir.Value {
	a := *cumAttrs(n)
	if a.Exclusive {
		return out[0]
	}
	a.Exclusive = true
	return cumulated(b, n.Op(), in[0], a)
}

// jvpCumProd differentiates y = x·before: the tangent is x·before' + before·x', a linear
// recurrence.
func jvpCumProd(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	return []ir.Value{LinearRecurrence(b, in[0], scale(b, t[0], before(b, n, in, out)), *cumAttrs(n))}
}

// jvpCumExtremum differentiates y = max(before, x).
func jvpCumExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	x, y := in[0], before(b, n, in, out)
	if n.Op() == OpCumMin {
		x, y = Neg(b, x), Neg(b, y)
	}
	byX := share(b, x, y)
	return []ir.Value{LinearRecurrence(b, Sub(b, OnesLike(b, byX), byX), scale(b, t[0], byX), *cumAttrs(n))}
}

// jvpCumLogSumExp differentiates y = log(exp before + exp x); where y is -Inf the tangent
// is 0.
func jvpCumLogSumExp(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a := *cumAttrs(n)
	a.Exclusive = false
	rest, all := before(b, n, in, out), out[0]
	if cumAttrs(n).Exclusive {
		all = cumulated(b, n.Op(), in[0], a)
	}
	nothing := Eq(b, all, ConstLike(b, all, math.Inf(-1)))
	part := func(x ir.Value) ir.Value { return Select(b, nothing, ZerosLike(b, all), Exp(b, Sub(b, x, all))) }
	return []ir.Value{LinearRecurrence(b, part(rest), scale(b, t[0], part(in[0])), *cumAttrs(n))}
}

// running is the lowering of a scan with one accumulator.
func running(typeOf func(d ir.DType) ir.DType, init func(d ir.DType) scalar.Expr, combine func(x, y scalar.Expr) scalar.Expr) *ir.PrefixLowering {
	own := func(n *ir.Node) ir.DType { return typeOf(n.Input(0).DType()) }
	return &ir.PrefixLowering{
		Accumulators: func(n *ir.Node) []ir.Accumulator { return []ir.Accumulator{{DType: own(n), Init: init(own(n))}} },
		Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(load(0, at), own(n))}
		},
		Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr { return []scalar.Expr{combine(x[0], y[0])} },
		Finish: func(n *ir.Node, acc []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(acc[0], n.Input(0).DType())}
		},
	}
}

func combining(init float64, combine func(x, y scalar.Expr) scalar.Expr) func() *ir.PrefixLowering {
	return func() *ir.PrefixLowering {
		return running(sumType, func(d ir.DType) scalar.Expr { return scalar.Const(d, init) }, combine)
	}
}

func runningExtremum(sign int, combine func(x, y scalar.Expr) scalar.Expr) func() *ir.PrefixLowering {
	return func() *ir.PrefixLowering {
		same := func(d ir.DType) ir.DType { return d }
		return running(same, func(d ir.DType) scalar.Expr { return scalar.Extreme(d, sign) }, combine)
	}
}

// logSums carries the maximum and the sum of the exponentials relative to it, which
// neither overflows nor underflows.
func logSums() *ir.PrefixLowering {
	return &ir.PrefixLowering{
		Accumulators: func(n *ir.Node) []ir.Accumulator {
			d := sumType(n.Input(0).DType())
			return []ir.Accumulator{{DType: d, Init: scalar.Extreme(d, -1)}, {DType: d, Init: scalar.Const(d, 0)}}
		},
		Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
			d := sumType(n.Input(0).DType())
			return []scalar.Expr{scalar.Convert(load(0, at), d), scalar.Const(d, 1)}
		},
		Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr {
			m := scalar.Max(x[0], y[0])
			part := func(v []scalar.Expr) scalar.Expr {
				return scalar.Select(scalar.Eq(v[0], m), v[1], scalar.Mul(v[1], scalar.Exp(scalar.Sub(v[0], m))))
			}
			return []scalar.Expr{m, scalar.Add(part(x), part(y))}
		},
		Finish: func(n *ir.Node, acc []scalar.Expr) []scalar.Expr {
			// The sum is 0 only for no elements, whose maximum is -Inf.
			sum := scalar.Max(acc[1], scalar.Const(acc[1].Type, 1))
			return []scalar.Expr{scalar.Convert(scalar.Add(acc[0], scalar.Log(sum)), n.Input(0).DType())}
		},
	}
}

// doublingScan returns the inclusive scan along an axis by recursive doubling (Hillis and
// Steele, Data Parallel Algorithms, 1986): after step k each element combines the last 2^k
// elements. No node has more than two operands, and a device makes one pass over the
// values for each doubling.
func doublingScan(b *ir.Builder, a CumSumAttrs, x []ir.Value, combine func(b *ir.Builder, x, y []ir.Value) []ir.Value) []ir.Value {
	if len(x) == 0 || b.Err() != nil {
		return x
	}
	size := x[0].Dim(a.Axis)
	length, _ := size.Const()
	part := func(v ir.Value, from, size int) ir.Value { return SliceAxis(b, v, a.Axis, ir.N(from), ir.N(size)) }
	for run := 1; run < length; run *= 2 {
		early, late := make([]ir.Value, len(x)), make([]ir.Value, len(x))
		for i, v := range x {
			early[i], late[i] = part(v, 0, length-run), part(v, run, length-run)
		}
		if a.Reverse {
			early, late = late, early
		}
		next := make([]ir.Value, len(x))
		for i, v := range combine(b, early, late) {
			if a.Reverse {
				next[i] = Concatenate(b, a.Axis, v, part(x[i], length-run, run))
			} else {
				next[i] = Concatenate(b, a.Axis, part(x[i], 0, run), v)
			}
		}
		x = next
	}
	return x
}
