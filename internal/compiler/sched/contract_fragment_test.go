package sched_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// apple has fragments, and the workgroup memory of Apple's GPUs.
func apple() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers, l.BindingBytes, l.BufferBytes, l.SharedBytes = 29, 1<<30, 1<<30, 32<<10
	return plan.Target{Name: "apple", Caps: loop.Caps{
		Dialect: dtype.MSL, Limits: l, F16: true, Subgroups: true, Subgroup: [2]int{32, 32}, Shuffles: true, Fragments: true, HalfFragments: true, BFloat: true,
	}}
}

// dawn has fragments of f32 alone, as WGSL.
func dawn() plan.Target {
	t := plan.WebGPU().WithFragments()
	t.SharedBytes = 32 << 10
	return t
}

func TestProductsOfFragmentsInEveryTile(t *testing.T) {
	for i, s := range sched.FragmentSchedules(1) {
		for j, size := range []struct{ m, n, k, parts int }{{70, 130, 33, 1}, {64, 64, 64, 1}, {96, 40, 300, 3}} {
			for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
				for _, layout := range []string{"nn", "tn", "nt", "tt"} {
					t.Run(fmt.Sprintf("tile %d, %s %dx%dx%d/%d %s", i, d, size.m, size.n, size.k, size.parts, layout), func(t *testing.T) {
						s.Split = size.parts
						g := build(t, func(b *ir.Builder) { matmulOf(b, d, size.m, size.n, size.k, layout, j > 0) })
						runOn(t, g, contractionsBy(t, g, apple(), s), wholes)
						if d == ir.F32 {
							runOn(t, g, contractionsBy(t, g, dawn(), s), wholes)
						}
					})
				}
			}
		}
	}
}

// TestFragmentsAreChosenForWideProducts expects fragments in place of wide tiles. Operands of 16
// bits stay so if both are.
func TestFragmentsAreChosenForWideProducts(t *testing.T) {
	for _, c := range []struct {
		m, n, k   int
		d         ir.DType
		fragments bool
	}{
		{512, 512, 512, ir.F32, true},
		{300, 200, 1000, ir.F16, true},
		{300, 200, 1000, ir.BF16, true},
		{4096, 16, 512, ir.F32, false},
		{1, 512, 512, ir.F32, false},
	} {
		g := build(t, func(b *ir.Builder) { matmulOf(b, c.d, c.m, c.n, c.k, "nn", false) })
		kernels := kernelsOf(t, g, apple())
		has := false
		for _, k := range kernels {
			if err := apple().Check(k); err != nil {
				t.Error(err)
			}
			if !k.HasFragments() {
				continue
			}
			has = true
			if plan.WebGPU().Check(k) == nil {
				t.Errorf("WebGPU takes %s", k.Name)
			}
			for _, a := range k.Arrays {
				if a.Space == loop.Shared && a.Name != "sums" && a.DType != c.d {
					t.Errorf("%s of %s holds %s", a.Name, c.d, a.DType)
				}
			}
		}
		if has != c.fragments {
			t.Errorf("%d×%d×%d of %s: fragments %t", c.m, c.n, c.k, c.d, has)
		}
	}
}
