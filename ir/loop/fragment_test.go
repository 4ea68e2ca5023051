package loop_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestCheckRefusesWrongFragments(t *testing.T) {
	subgroups := func(body ...loop.Stmt) *loop.Kernel {
		k := kernelOf(body...)
		k.Subgroup = [2]int{8, 8}
		return k
	}
	zero, load := &loop.FragmentZero{Name: "d"}, &loop.FragmentLoad{Name: "a", Array: tile, At: i32(0), Stride: 8}
	for _, c := range []struct {
		name string
		k    *loop.Kernel
		want string
	}{
		{"no one subgroup size", kernelOf(zero), "fragments need a kernel with a single subgroup size"},
		{"divergent control flow; it must be uniform", subgroups(&loop.If{Cond: scalar.Eq(loop.LocalID(0, 8), i32(1)), Then: []loop.Stmt{zero}}), "divergent control flow; it must be uniform"},
		{"device memory", subgroups(&loop.FragmentLoad{Name: "a", Array: in, At: i32(0), Stride: 8}), "fragment in storage memory; it must be shared"},
		{"rows that overlap", subgroups(&loop.FragmentLoad{Name: "a", Array: tile, At: i32(0), Stride: 7}), "fragment with the invalid stride 7"},
		{"a fragment in an expression", subgroups(load, &loop.Let{Name: "x", Value: scalar.FreeVar("a", dtype.F32)}), "a is a fragment"},
		{"a variable as a fragment", subgroups(zero, &loop.Let{Name: "x", Value: f32(0)}, &loop.FragmentMulAdd{Sum: "d", A: "x", B: "x"}), "x is not a fragment of f32"},
		{"sums that are not there", subgroups(load, &loop.FragmentMulAdd{Sum: "d", A: "a", B: "a"}), "d is not a fragment of f32"},
		{"an operand on the wrong side", subgroups(zero, load, &loop.FragmentMulAdd{Sum: "d", A: "a", B: "a"}), "fragment a is not loaded as this operand"},
		{"a store of what is not there", subgroups(&loop.FragmentStore{Array: tile, At: i32(0), Stride: 8, Name: "d"}), "d is not a fragment of f32"},
		{"factors of two types", func() *loop.Kernel {
			k := subgroups(zero, load, &loop.FragmentLoad{Name: "b", Array: own, At: i32(0), Stride: 8}, &loop.FragmentMulAdd{Sum: "d", A: "a", B: "b"})
			k.Arrays[own].Space, k.Arrays[own].DType = loop.Shared, dtype.F16
			return k
		}(), "b is not a fragment of f32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuses(t, c.k, c.want)
		})
	}
}
