//go:build !js

package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// routines are blocked by matrix products, in the type of the matrix.
var routines = map[ir.Op]routine{
	ops.OpCholesky:        {cholesky[float32], cholesky[float64]},
	ops.OpTriangularSolve: {triangularSolve[float32], triangularSolve[float64]},
	ops.OpLU:              {lu[float32], lu[float64]},
	ops.OpQR:              {qr[float32], qr[float64]},
	ops.OpEigh:            {eigh[float32], eigh[float64]},
	ops.OpSVD:             {svd[float32], svd[float64]},
}

func finite[T simd.Float](x []T) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// hasWrongSign reports whether a vector of n numbers with the given stride has the opposite of
// the sign that the ops choose.
func hasWrongSign[T simd.Float](x []T, n, step int) bool {
	sum := 0.0
	for i := range n {
		sum += float64(x[i*step]) / (float64(i) + math.Sqrt2)
	}
	return sum < 0
}
