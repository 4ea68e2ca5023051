package ops

import "github.com/rlx-go/rlx/ir"

// OpMean is the mean over axes.
const OpMean ir.Op = "mean"

func init() {
	define(&ir.Def{
		Op: OpMean, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &AxesAttrs{} },
		Doc: "The mean of the elements along some axes, NaN for no elements. f16 and bf16 accumulate in f32.",
		Constraints: numbered(
			"the element type is "+(floats|complexes).String(),
			"the axes are distinct axes of x; the result has the others, in order",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0)
			if err := (floats | complexes).check(x.DType()); err != nil {
				return nil, err
			}
			return []ir.Type{{DType: x.DType(), Shape: pick(x.Shape(), keptAxes(n))}}, checkAxes(axesOf(n), x.Rank())
		},
		Reduces: namedAxes,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			d := in[0].DType()
			x := Convert(b, in[0], sumType(d))
			count := DimSize(b, x.DType(), pick(x.Shape(), axesOf(n))...)
			return []ir.Value{Convert(b, Div(b, sumOver(b, x, axesOf(n)), count), d)}
		},
	})
}

// Mean returns the mean of the elements of x, of a float or complex type, along the given
// axes, which the result lacks, or along all axes if none is given. The mean of no
// elements is NaN; f16 and bf16 accumulate in f32.
func Mean(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return reduced(b, OpMean, x, axes) }
