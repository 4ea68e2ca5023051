package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpLinearRecurrence is h[i] = a[i]·h[i−1] + b[i] along an axis.
const OpLinearRecurrence ir.Op = "linear_recurrence"

func init() {
	define(&ir.Def{
		Op: OpLinearRecurrence,
		Doc: "h[i] = a[i]·h[i−1] + b[i] along an axis, from h = 0 before the first element, or from the end with reverse; " +
			"h[i−1] in place of h[i] with exclusive. It is computed as a running combination, all elements at once.",
		Constraints: numbered("a and b have one type, of float or complex elements", "axis is an axis of them"),
		Operands:    []string{"a", "b"},
		NewAttrs:    func() ir.Attrs { return &CumSumAttrs{} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, floats|complexes)
			if err != nil {
				return nil, err
			}
			return []ir.Type{t}, checkAxes([]int{cumAttrs(n).Axis}, len(t.Shape))
		},
		Eval:      evalLinearRecurrence,
		JVP:       jvpLinearRecurrence,
		Transpose: transposeLinearRecurrence,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			in, at := alignBatch(b, in, axes, size)
			a := *cumAttrs(n)
			a.Axis = shifted([]int{a.Axis}, at)[0]
			return []ir.Value{LinearRecurrence(b, in[0], in[1], a)}, []int{at}
		},
		Lower: &ir.PrefixLowering{
			Axis:      func(n *ir.Node) int { return cumAttrs(n).Axis },
			Reverse:   func(n *ir.Node) bool { return cumAttrs(n).Reverse },
			Exclusive: func(n *ir.Node) bool { return cumAttrs(n).Exclusive },
			Accumulators: func(n *ir.Node) []ir.Accumulator {
				d := sumType(n.Input(0).DType())
				return []ir.Accumulator{{DType: d, Init: scalar.Const(d, 1)}, {DType: d, Init: scalar.Const(d, 0)}}
			},
			Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
				d := sumType(n.Input(0).DType())
				return []scalar.Expr{scalar.Convert(load(0, at), d), scalar.Convert(load(1, at), d)}
			},
			Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr {
				return []scalar.Expr{scalar.Mul(y[0], x[0]), scalar.Add(scalar.Mul(y[0], x[1]), y[1])}
			},
			Finish: func(n *ir.Node, acc []scalar.Expr) []scalar.Expr {
				return []scalar.Expr{scalar.Convert(acc[1], n.Input(0).DType())}
			},
		},
		Samples: recurrenceSamples,
	})
}

// LinearRecurrence returns h with h[i] = x[i]·h[i−1] + y[i] along an axis; a
// negative axis counts from the last.
func LinearRecurrence(b *ir.Builder, x, y ir.Value, a CumSumAttrs) ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return b.Add1(OpLinearRecurrence, &a, x, y)
}

func evalLinearRecurrence(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, x := cumAttrs(n), in[0]
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	step, length := strides(x.Dims)[a.Axis], x.Dims[a.Axis]
	for _, base := range offsets(x.Dims, otherAxes(len(x.Dims), []int{a.Axis})) {
		h := ir.NewArray(x.DType, 1)
		for i := range length {
			if a.Reverse {
				i = length - 1 - i
			}
			at := base + i*step
			if a.Exclusive {
				copyElement(out, at, h, 0)
			}
			mulElement(h, 0, x, at)
			addElement(h, 0, in[1], at)
			if !a.Exclusive {
				copyElement(out, at, h, 0)
			}
		}
	}
	return []*ir.Array{c.Round(out)}, nil
}

// jvpLinearRecurrence follows h = a·before + b.
func jvpLinearRecurrence(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() && !t[1].Valid() {
		return []ir.Value{{}}
	}
	moved := t[1]
	if t[0].Valid() {
		a, h := *cumAttrs(n), out[0]
		if !a.Exclusive {
			a.Exclusive = true
			h = LinearRecurrence(b, in[0], in[1], a)
		}
		moved = addTangents(b, moved, scale(b, t[0], h))
	}
	return []ir.Value{LinearRecurrence(b, in[0], moved, *cumAttrs(n))}
}

// transposeLinearRecurrence runs the other way: what comes to an element goes on
// to the one before it times the element's own factor.
func transposeLinearRecurrence(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, 2)
	if !ct[0].Valid() || !onlyLinear(b, n, linear, 1) {
		return out
	}
	a, x := *cumAttrs(n), in[0]
	if !a.Exclusive {
		x = ahead(b, x, a)
	}
	a.Reverse = !a.Reverse
	out[1] = LinearRecurrence(b, x, ct[0], a)
	return out
}

// ahead returns for each element the one after it in the direction of a running
// combination, 0 for the last.
func ahead(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value {
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

func recurrenceSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	add := func(name string, d ir.DType, a CumSumAttrs, dims ...int) {
		x, y := draw(3, d, -0.9, 1, dims...), draw(4, d, -1, 1, dims...)
		out = append(out, ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x, y}})
	}
	add("rows", ir.F32, CumSumAttrs{Axis: 1}, 3, 5)
	add("columns from the end", ir.F32, CumSumAttrs{Axis: 0, Reverse: true}, 7, 3)
	add("exclusive", ir.F32, CumSumAttrs{Exclusive: true}, 9)
	add("exclusive from the end", ir.F32, CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, 2, 4, 9)
	add("beyond a block", ir.F32, CumSumAttrs{Axis: 1}, 2, 1031)
	add("one element", ir.F32, CumSumAttrs{}, 1)
	add("empty", ir.F32, CumSumAttrs{Axis: 1}, 2, 0)
	for _, d := range typesIn(floats | complexes)[1:] {
		add(d.String(), d, CumSumAttrs{}, 6)
	}
	zero := ir.Sample{Name: "zeros", Attrs: &CumSumAttrs{}, In: []*ir.Array{ir.Floats(ir.F32, []float64{0, 1, 0, 2}, 4), ir.Floats(ir.F32, []float64{1, 0, 2, 0}, 4)}}
	return append(out, zero)
}
