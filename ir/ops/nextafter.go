package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

func defineNextAfter() {
	define(&ir.Def{
		Op: OpNextAfter, Operands: []string{"x", "y"},
		Doc: "The next representable number after x toward y (C's nextafter), y where they are equal, NaN if one is NaN. " +
			"A device that flushes subnormal numbers steps from the least normal number to 0.",
		Constraints: numbered("the operands have one type, whose elements are f32 or f64", "the result has that type"),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, floats)
			if err == nil && t.DType.Size() < 4 {
				err = ir.DTypef("the operands are %s, not f32 or f64", t.DType)
			}
			return []ir.Type{t}, err
		},
		Eval: func(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out, err := resultArray(n, 0)
			if err != nil {
				return nil, err
			}
			for i := range out.F {
				if x, y := in[0].F[i], in[1].F[i]; out.DType == ir.F32 {
					out.F[i] = float64(math.Nextafter32(float32(x), float32(y)))
				} else {
					out.F[i] = math.Nextafter(x, y)
				}
			}
			return []*ir.Array{out}, nil
		},
		NoGrad: "a step between representable numbers has no derivative", NoTranspose: "not linear in any operand",
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return nextAfter(x[0], x[1]) },
	})
}

// nextAfter steps the bits, whose order as integers is that of positive floats.
func nextAfter(x, y scalar.Expr) scalar.Expr {
	bits := ir.I32
	if x.Type == ir.F64 {
		bits = ir.I64
	}
	zero, one := scalar.ConstF(x.Type, 0), scalar.ConstI(bits, 1)
	away := scalar.Eq(scalar.Gt(y, x), scalar.Gt(x, zero))
	at := scalar.Bitcast(x, bits)
	next := scalar.Bitcast(scalar.Select(away, scalar.Add(at, one), scalar.Sub(at, one)), x.Type)
	least := scalar.Bitcast(one, x.Type)
	next = scalar.Select(scalar.Eq(x, zero), scalar.Select(scalar.Gt(y, zero), least, scalar.Neg(least)), next)
	next = scalar.Select(scalar.Eq(x, y), y, next)
	return scalar.Select(scalar.Or(scalar.IsNaN(x), scalar.IsNaN(y)), scalar.ConstF(x.Type, math.NaN()), next)
}

// NextAfter returns the next representable number after x toward y, for f32 or f64,
// broadcast.
func NextAfter(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpNextAfter, nil, x, y) }
