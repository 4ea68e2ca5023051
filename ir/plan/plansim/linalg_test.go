package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// TestLaunchesOfLinearAlgebra counts the kernels of factorisations and transforms
// and how often they are launched: what they cost a GPU while matrices are small.
func TestLaunchesOfLinearAlgebra(t *testing.T) {
	first := func(f func(b *ir.Builder, x ir.Value) []ir.Value) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x)[0] }
	}
	for _, c := range []struct {
		name              string
		dims              []int
		build             func(b *ir.Builder, x ir.Value) ir.Value
		kernels, launches int // at most; more than eight maps side by side are two kernels
	}{
		{"cholesky 64", []int{1024, 64, 64}, ops.Cholesky, 1, 1},
		{"cholesky 512", []int{512, 512}, ops.Cholesky, 11, 564},
		{"solve 64", []int{1024, 64, 64}, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Solve(b, x, x, ops.SolveAttrs{}) }, 25, 236},
		{"triangular_solve 64", []int{64, 64}, lowerSolve, 3, 14},
		{"triangular_solve 512", []int{512, 512}, lowerSolve, 11, 49},
		{"qr 64", []int{64, 64}, func(b *ir.Builder, x ir.Value) ir.Value { q, _ := ops.QR(b, x, false); return q }, 12, 212},
		{"eigenvalues 16", []int{16, 16}, func(b *ir.Builder, x ir.Value) ir.Value { w, _ := ops.Eigh(b, x); return w }, 11, 593},
		{"svd 16", []int{16, 16}, first(func(b *ir.Builder, x ir.Value) []ir.Value { return b.Add(ops.OpSVD, &ops.FullAttrs{}, x) }), 23, 655},
		{"dft 4096", []int{16, 4096}, transform, 9, 9},
		{"dft 1048576", []int{1 << 20}, transform, 14, 14},
		{"dft of a prime", []int{16, 1009}, transform, 14, 19},
	} {
		g, err := ir.Build(c.name, func(b *ir.Builder) {
			b.Output("y", c.build(b, b.Input("x", ir.F32, ir.Dims(c.dims...)...)))
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
		if err != nil {
			t.Fatal(err)
		}
		launches := launchesOf(p.Entries[0].Steps)
		t.Logf("%s: %d kernels and %d launches", c.name, len(p.Kernels), launches)
		if len(p.Kernels) > c.kernels || launches > c.launches {
			t.Errorf("%s: %d kernels and %d launches, more than %d and %d", c.name, len(p.Kernels), launches, c.kernels, c.launches)
		}
	}
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
				n += launchesOf(r.Round(i))
			}
			continue
		}
		n++
	}
	return n
}
