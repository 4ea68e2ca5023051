package ops

import "github.com/rlx-go/rlx/ir"

func defineDeterminant() {
	squares := squareConstraints()
	defineComposite(composite{
		op: OpDet, doc: "The determinants of square matrices. The first derivative is right for singular matrices too, of any rank; those of higher order are NaN there.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			lu, pivots, _ := LU(b, in[0])
			return Mul(b, exchangeSign(b, pivots, in[0].DType()), ReduceProd(b, Diagonal(b, lu, 0), -1))
		},
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			return []ir.Value{ReduceSum(b, Mul(b, t[0], Cofactor(b, in[0])), -2, -1)}
		},
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			return loosely(matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 4, 4}))
		},
	})
	defineComposite(composite{
		op: OpCofactor, doc: "The matrices of the cofactors of square matrices x: the determinant times the transposed inverse, where there is one, and the derivative of the determinant by the elements of x. " +
			"Derivatives at a singular matrix are infinite or NaN.",
		types: floats, constraints: squares, check: checkSizedSquare, body: cofactorBody,
		// c·tr(x⁻¹·dx) - c·dxᵀ·x⁻ᵀ, from c = det(x)·x⁻ᵀ
		jvp: func(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
			moved := Solve(b, in[0], t[0], SolveAttrs{})
			trace := row(b, column(b, Trace(b, moved, 0)))
			return []ir.Value{Sub(b, Mul(b, out[0], trace), adjoint(b, MatMul(b, moved, adjoint(b, out[0]))))}
		},
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			singular := ir.Sample{Name: "singular", NoGrad: "a pivot is 0", In: []*ir.Array{ir.Floats(ir.F32, []float64{0, 1, 0, 2}, 2, 2)}}
			return loosely(append(matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 4, 4}), singular))
		},
	})
}

// checkSizedSquare refuses what is not square matrices of constant size.
func checkSizedSquare(n *ir.Node) error {
	if err := checkSquare(n); err != nil {
		return err
	}
	return checkSized(n)
}

// Det returns the determinants [...] of square matrices, f32 or f64 of
// [..., n, n].
func Det(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpDet, nil, x) }

// Cofactor returns the cofactors of the elements of square matrices: the
// derivatives of their determinants.
func Cofactor(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCofactor, nil, x) }

// cofactorBody is det(u)·det(vᵀ)·u·p·vᵀ for x = u·s·vᵀ, where p has for each
// singular value the product of all others: nothing is divided by.
func cofactorBody(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	if rows, _ := matrixDims(in[0]); rows == 0 {
		return in[0]
	}
	u, s, vt := SVD(b, in[0], false)
	before := CumProd(b, s, CumSumAttrs{Axis: -1, Exclusive: true})
	after := CumProd(b, s, CumSumAttrs{Axis: -1, Exclusive: true, Reverse: true})
	sign := row(b, column(b, Mul(b, Det(b, u), Det(b, vt))))
	return Mul(b, sign, MatMul(b, Mul(b, u, row(b, Mul(b, before, after))), vt))
}
