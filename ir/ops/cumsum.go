package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpCumSum is the running sum along an axis.
const OpCumSum ir.Op = "cumsum"

// CumSumAttrs say along which axis a sum runs, whether it does so from the end,
// and whether an element is left out of its own sum.
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

func init() {
	attrs := func(n *ir.Node) *CumSumAttrs { return n.Attrs().(*CumSumAttrs) }
	define(&ir.Def{
		Op: OpCumSum,
		Doc: "The sum of all elements up to each element along an axis, or from it to the end with reverse; " +
			"without the element itself with exclusive. Integers wrap.",
		Constraints: numbered("x is of a numeric type", "axis is an axis of x"),
		Operands:    []string{"x"},
		NewAttrs:    func() ir.Attrs { return &CumSumAttrs{} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0).Type()
			if err := numbers.check(x.DType); err != nil {
				return nil, err
			}
			return []ir.Type{x}, checkAxes([]int{attrs(n).Axis}, len(x.Shape))
		},
		Eval: evalCumSum,
		JVP:  linearJVP,
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			a := *attrs(n)
			a.Reverse = !a.Reverse
			return CumSum(b, ct, a)
		}),
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			a := *attrs(n)
			a.Axis = shifted([]int{a.Axis}, axes[0])[0]
			return []ir.Value{CumSum(b, in[0], a)}, axes
		},
		Lower: &ir.PrefixLowering{
			Axis:      func(n *ir.Node) int { return attrs(n).Axis },
			Reverse:   func(n *ir.Node) bool { return attrs(n).Reverse },
			Exclusive: func(n *ir.Node) bool { return attrs(n).Exclusive },
			Init:      func(n *ir.Node) scalar.Expr { return scalar.Const(n.Input(0).DType(), 0) },
			Combine:   func(_ *ir.Node, x, y scalar.Expr) scalar.Expr { return scalar.Add(x, y) },
		},
		Samples: cumSumSamples,
	})
}

// CumSum returns the running sum of x along an axis; a negative axis counts
// from the last.
func CumSum(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return b.Add1(OpCumSum, &a, x)
}

func evalCumSum(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, x := n.Attrs().(*CumSumAttrs), in[0]
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	step, length := strides(x.Dims)[a.Axis], x.Dims[a.Axis]
	for _, base := range offsets(x.Dims, otherAxes(len(x.Dims), []int{a.Axis})) {
		sum := ir.NewArray(x.DType)
		for i := range length {
			if a.Reverse {
				i = length - 1 - i
			}
			at := base + i*step
			if a.Exclusive {
				copyElement(out, at, sum, 0)
			}
			addElement(sum, 0, x, at)
			if !a.Exclusive {
				copyElement(out, at, sum, 0)
			}
		}
	}
	return []*ir.Array{c.Round(out)}, nil
}

func cumSumSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	sample := func(name string, a CumSumAttrs, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("rows", CumSumAttrs{Axis: 1}, drawn(ir.F32, 3, 5)),
		sample("columns from the end", CumSumAttrs{Axis: 0, Reverse: true}, drawn(ir.F32, 7, 3)),
		sample("exclusive", CumSumAttrs{Axis: 0, Exclusive: true}, drawn(ir.F32, 9)),
		sample("exclusive from the end", CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, drawn(ir.F32, 2, 4, 3)),
		sample("beyond a block", CumSumAttrs{Axis: 1}, drawn(ir.F32, 2, 1031)),
		sample("one element", CumSumAttrs{}, drawn(ir.F32, 1)),
		sample("empty", CumSumAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0)),
		sample("integers", CumSumAttrs{}, drawn(ir.I32, 6)),
	}
}
