package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestLaunchesOfLinearAlgebra counts the kernels and launches of factorisations and transforms,
// which determine their cost on a GPU for small matrices.
func TestLaunchesOfLinearAlgebra(t *testing.T) {
	for _, c := range []struct {
		name              string
		dims              []int
		build             func(b *ir.Builder, x ir.Value) ir.Value
		kernels, launches int // at most; more than eight maps side by side are two kernels
	}{
		{"cholesky 64", []int{1024, 64, 64}, ops.Cholesky, 1, 1},
		{"cholesky 512", []int{512, 512}, ops.Cholesky, 11, 60},
		{"lu 64", []int{1024, 64, 64}, firstOf(ops.OpLU, nil), 1, 1},
		{"lu 512", []int{512, 512}, firstOf(ops.OpLU, nil), 10, 98},
		{"solve 64", []int{1024, 64, 64}, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Solve(b, x, x, ops.SolveAttrs{}) }, 4, 4},
		{"triangular_solve 64", []int{64, 64}, lowerSolve, 1, 1},
		{"triangular_solve 512", []int{512, 512}, lowerSolve, 14, 15},
		{"qr 64", []int{64, 64}, firstOf(ops.OpQR, &ops.FullAttrs{}), 7, 7},
		{"qr 512", []int{512, 512}, firstOf(ops.OpQR, &ops.FullAttrs{}), 34, 216},
		{"eigh 64", []int{64, 64, 64}, firstOf(ops.OpEigh, nil), 7, 7},
		{"eigh 512", []int{512, 512}, firstOf(ops.OpEigh, nil), 19, 1633},
		{"svd 64", []int{64, 64, 64}, firstOf(ops.OpSVD, &ops.FullAttrs{}), 14, 14},
		{"svd 512", []int{512, 512}, firstOf(ops.OpSVD, &ops.FullAttrs{}), 46, 1843},
		{"dft 4096", []int{16, 4096}, transform, 3, 3},
		{"dft 1048576", []int{1 << 20}, transform, 4, 4},
		{"dft of a prime", []int{16, 1009}, transform, 7, 7},
	} {
		g, err := ir.Build(c.name, func(b *ir.Builder) {
			b.Output("y", c.build(b, b.Input("x", ir.F32, ir.Dims(c.dims...)...)))
		})
		if err != nil {
			t.Fatal(err)
		}
		p := compiled(t, g)
		launches := launchesOf(p.Entries[0].Steps)
		t.Logf("%s: %d kernels and %d launches", c.name, len(p.Kernels), launches)
		if len(p.Kernels) > c.kernels || launches > c.launches {
			t.Errorf("%s: %d kernels and %d launches, more than %d and %d", c.name, len(p.Kernels), launches, c.kernels, c.launches)
		}
	}
}

// TestAPageFactorsByColumns counts the kernels of matrices of two blocks in a page without a GPU: as
// many as of one block, by whose size they are not padded.
func TestAPageFactorsByColumns(t *testing.T) {
	for name, build := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"cholesky": ops.Cholesky, "lu": firstOf(ops.OpLU, nil), "householder": firstOf(ops.OpHouseholder, nil),
	} {
		kernels := map[int]int{}
		for _, size := range []int{64, 65, 128} {
			g, err := ir.Build(name, func(b *ir.Builder) { b.Output("y", build(b, b.Input("x", ir.F32, ir.Dims(size, size)...))) })
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Compile(moduleOf(t, g), plan.WebAssembly(false), wasmsimd.Printer{})
			if err != nil {
				t.Fatal(err)
			}
			kernels[size] = len(p.Kernels)
		}
		if kernels[65] != kernels[64] || kernels[128] != kernels[64] {
			t.Errorf("%s has kernels by size %v", name, kernels)
		}
	}
}

// firstOf returns the first result of an op.
func firstOf(op ir.Op, a ir.Attrs) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return b.Add(op, a, x)[0] }
}

func lowerSolve(b *ir.Builder, x ir.Value) ir.Value {
	return ops.TriangularSolve(b, x, x, ops.TriangularAttrs{LeftSide: true, Lower: true})
}

func transform(b *ir.Builder, x ir.Value) ir.Value {
	re, im := ops.DFT(b, x, x, false)
	return ops.Add(b, re, im)
}

// launchesOf counts dispatches and copies, those of repeats as often as they run.
func launchesOf(steps []plan.Step) int {
	n := 0
	for _, s := range steps {
		if r, ok := s.(*plan.Repeat); ok {
			for i := range r.Count {
				n += launchesOf(r.Iteration(i))
			}
			continue
		}
		n++
	}
	return n
}
