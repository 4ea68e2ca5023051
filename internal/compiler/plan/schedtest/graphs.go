package schedtest

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MatmulBias is a matrix product with a bias and a function. Either operand may be stored
// transposed. The epilogue of relu is stored from registers, that of gelu through workgroup
// memory.
func MatmulBias(b *ir.Builder, m, n, k int, layout string, behind func(*ir.Builder, ir.Value) ir.Value) {
	x, y := operands(b, ir.F32, m, n, k, layout)
	bias := b.Param("bias", ir.F32, ir.N(n))
	b.Output("z", behind(b, ops.Add(b, ops.MatMul(b, x, y), bias)))
}

// MatmulOf is a product of operands as they are stored, with an epilogue.
func MatmulOf(b *ir.Builder, d ir.DType, m, n, k int, layout string, behind bool) {
	x, y := operands(b, d, m, n, k, layout)
	z := ops.MatMul(b, x, y)
	if behind {
		z = ops.Relu(b, ops.Add(b, z, b.Param("bias", d, ir.N(n))))
	}
	b.Output("z", z)
}

// operands returns inputs of m×k and of k×n elements. layout has a letter for each: n as it is, or t
// for one that is stored transposed.
func operands(b *ir.Builder, d ir.DType, m, n, k int, layout string) (x, y ir.Value) {
	stored := func(name string, transposed bool, rows, columns int) ir.Value {
		if transposed {
			return ops.Transpose(b, b.Input(name, d, ir.Dims(columns, rows)...), 1, 0)
		}
		return b.Input(name, d, ir.Dims(rows, columns)...)
	}
	x = stored("x", layout[0] == 't', m, k)
	return x, stored("y", layout[1] == 't', k, n)
}

// RunningOf is a cumulative sum along the last axis, or along the one before if the last has
// size 1.
func RunningOf(b *ir.Builder, exclusive bool, dims ...int) {
	axis := 1
	if len(dims) > 2 {
		axis, dims = 0, dims[:2]
	}
	b.Output("y", ops.CumSum(b, b.Input("x", ir.F32, ir.Dims(dims...)...), ops.CumSumAttrs{Axis: axis, Exclusive: exclusive}))
}

// Matrix is an f32 input.
func Matrix(b *ir.Builder, rows, columns int) ir.Value {
	return b.Input("x", ir.F32, ir.Dims(rows, columns)...)
}
