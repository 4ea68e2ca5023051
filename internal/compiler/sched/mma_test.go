package sched_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// hopper has the multiply-adds of an H200.
func hopper() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers, l.BindingBytes, l.BufferBytes = 64, 1<<30, 1<<30
	return plan.Target{Name: "hopper", Caps: loop.Caps{
		Dialect: dtype.CUDA, Limits: l, Mma: true, TensorMaps: true, TF32: true, Shuffles: true, MmaBytes: 227 << 10, Multiprocessors: 132,
	}}
}

// ampere has the warp multiply-adds and the shared memory of an A100.
func ampere() plan.Target {
	t := hopper()
	t.Name, t.MmaByWarps, t.TensorMaps, t.MmaBytes, t.Multiprocessors = "ampere", true, false, 163<<10, 108
	return t
}

// ada has the shared memory of compute capability 8.6 and 8.9.
func ada() plan.Target {
	t := ampere()
	t.Name, t.MmaBytes, t.Multiprocessors = "ada", 99<<10, 128
	return t
}

// wholes limits inputs to small integers, which are exact in all types.
const wholes = 2

// matmulOf is a product of operands as they are stored, with an epilogue.
func matmulOf(b *ir.Builder, d ir.DType, m, n, k int, layout string, behind bool) {
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

func TestProductsOfMultiplyAddsInEveryTile(t *testing.T) {
	copying := hopper()
	copying.Name, copying.TensorMaps = "copying", false
	for _, target := range []plan.Target{hopper(), copying, ampere(), ada()} {
		t.Run(target.Name, func(t *testing.T) { productsInEveryTile(t, target) })
	}
}

func productsInEveryTile(t *testing.T, target plan.Target) {
	shapes := []struct{ m, n, k, parts int }{{136, 72, 200, 1}, {130, 70, 33, 1}, {128, 264, 576, 2}}
	for i := range sched.MmaSchedules(1, target.Caps) {
		for j, s := range shapes {
			for _, d := range []ir.DType{[]ir.DType{ir.BF16, ir.F16, ir.BF16}[j], ir.F32} {
				for _, layout := range []string{"nn", "tn", "nt", "tt"} {
					t.Run(fmt.Sprintf("tile %d, %s %dx%dx%d/%d %s", i, d, s.m, s.n, s.k, s.parts, layout), func(t *testing.T) {
						g := build(t, func(b *ir.Builder) { matmulOf(b, d, s.m, s.n, s.k, layout, layout[0] == 't') })
						runOn(t, g, contractionsBy(t, g, target, sched.MmaSchedules(s.parts, target.Caps)[i]), wholes)
					})
				}
			}
		}
	}
}

// TestTilesOfMultiplyAddsAreChosenByCost tests the estimates of mma.go: large products have
// large tiles, those of few tiles have smaller ones or split-K, and small ones no multiply-adds.
func TestTilesOfMultiplyAddsAreChosenByCost(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		d       ir.DType
		columns int // of the tile, 0 for no multiply-adds
		kernels int
	}{
		{8192, 8192, 8192, ir.BF16, 256, 1},
		{4096, 4096, 4096, ir.F32, 256, 1},
		{1024, 1024, 1024, ir.F16, 64, 1},
		{512, 512, 4096, ir.BF16, 64, 2},
		{64, 64, 64, ir.BF16, 0, 1},
		{4096, 8, 128, ir.F32, 0, 1},
		{1024, 1024, 1024, ir.F64, 0, 1},
	} {
		g := build(t, func(b *ir.Builder) { matmulOf(b, c.d, c.m, c.n, c.k, "nn", false) })
		kernels := kernelsOf(t, g, hopper())
		columns := 0
		for _, k := range kernels {
			if err := hopper().Check(k); err != nil {
				t.Error(err)
			}
			if k.HasMma() && plan.WebGPU().Check(k) == nil {
				t.Errorf("WebGPU takes %s", k.Name)
			}
			loop.Walk(k.Body, func(s loop.Stmt) {
				if s, ok := s.(*loop.Mma); ok {
					columns = s.Shape.N
				}
			})
		}
		if columns != c.columns || len(kernels) != c.kernels {
			t.Errorf("%dx%dx%d of %s: %d kernels, %d columns, want %d and %d", c.m, c.n, c.k, c.d, len(kernels), columns, c.kernels, c.columns)
		}
	}
}
