package ops

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// OpSumAll is the sum of all elements of any number of values.
const OpSumAll ir.Op = "sum_all"

func init() {
	define(&ir.Def{
		Op: OpSumAll,
		Doc: "The sum of all elements of all operands, which may differ in shape; 0 for no elements. f16 and bf16 accumulate " +
			"in f32. The order of summation depends on the shapes alone.",
		Constraints: numbered("there is at least one operand; all have one element type, which is " + floats.String()),
		Operands:    []string{"operands..."},
		Infer:       inferSumAll,
		NoTranspose: "its body is linear",
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			d := in[0].DType()
			sums := make([]ir.Value, len(in))
			for i, x := range in {
				sums[i] = ReduceSum(b, Convert(b, x, sumType(d)))
			}
			return []ir.Value{Convert(b, derive.Sum(b, sums), d)}
		},
		Lower: &ir.TotalLowering{Sum: func(n *ir.Node) ir.DType { return sumType(n.Input(0).DType()) }},
	})
}

func inferSumAll(n *ir.Node) ([]ir.Type, error) {
	if len(n.Inputs()) == 0 {
		return nil, ir.Shapef("there is nothing to add up")
	}
	d := n.Input(0).DType()
	if err := floats.check(d); err != nil {
		return nil, err
	}
	for i, v := range n.Inputs() {
		if v.DType() != d {
			return nil, ir.DTypef("operand %d is %s, not %s as operand 0 is", i, v.DType(), d)
		}
	}
	return []ir.Type{{DType: d}}, nil
}

// SumAll returns the sum, of rank 0, of all elements of the operands, which have one float
// type and any shapes. At least one operand is required. f16 and bf16 accumulate in f32.
func SumAll(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add1(OpSumAll, nil, in...) }
