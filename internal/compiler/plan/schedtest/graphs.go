package schedtest

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MatmulBias is a matrix product with a bias and a function. Either operand may be stored
// transposed. The epilogue of relu is stored from registers, that of gelu through workgroup
// memory.
func MatmulBias(b *ir.Builder, m, n, k int, layout string, behind func(*ir.Builder, ir.Value) ir.Value) {
	dims := func(t byte, r, c int) []ir.Dim {
		if t == 't' {
			r, c = c, r
		}
		return ir.Dims(r, c)
	}
	x := b.Input("x", ir.F32, dims(layout[0], m, k)...)
	y := b.Input("y", ir.F32, dims(layout[1], k, n)...)
	if layout[0] == 't' {
		x = ops.Transpose(b, x, 1, 0)
	}
	if layout[1] == 't' {
		y = ops.Transpose(b, y, 1, 0)
	}
	bias := b.Param("bias", ir.F32, ir.N(n))
	b.Output("z", behind(b, ops.Add(b, ops.MatMul(b, x, y), bias)))
}

// MatmulOf is a product of operands as they are stored, with an epilogue.
func MatmulOf(b *ir.Builder, d ir.DType, m, n, k int, layout string, behind bool) {
	dims := func(t byte, r, c int) []ir.Dim {
		if t == 't' {
			r, c = c, r
		}
		return ir.Dims(r, c)
	}
	x := b.Input("x", d, dims(layout[0], m, k)...)
	y := b.Input("y", d, dims(layout[1], k, n)...)
	if layout[0] == 't' {
		x = ops.Transpose(b, x, 1, 0)
	}
	if layout[1] == 't' {
		y = ops.Transpose(b, y, 1, 0)
	}
	z := ops.MatMul(b, x, y)
	if behind {
		z = ops.Relu(b, ops.Add(b, z, b.Param("bias", d, ir.N(n))))
	}
	b.Output("z", z)
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
