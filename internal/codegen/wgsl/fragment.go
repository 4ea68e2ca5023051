//go:build !js

package wgsl

import (
	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// fragments are Dawn's subgroup matrices, an experimental extension of WGSL
// (docs/tint/extensions/chromium_experimental_subgroup_matrix.md of Dawn).
var fragments = &clike.Fragments{
	Zero: func(name string) string { return "var " + name + " = " + matrixType("result", dtype.F32) + "();" },
	Load: func(name string, t dtype.DType, array, at string, load *loop.FragmentLoad) []string {
		side, major := "left", "row_major"
		if load.Right {
			side = "right"
		}
		if load.Transposed {
			major = "col_major"
		}
		return []string{format.Sprintf("let %s = subgroupMatrixLoad<%s, %s>(&%s, u32(%s), %du);", name, matrixType(side, t), major, array, at, load.Stride)}
	},
	MulAdd: func(sum, a, b string) string {
		return format.Sprintf("%s = subgroupMatrixMultiplyAccumulate(%s, %s, %s);", sum, a, b, sum)
	},
	Store: func(name, array, at string, stride int) string {
		return format.Sprintf("subgroupMatrixStore<row_major>(&%s, u32(%s), %s, %du);", array, at, name, stride)
	},
}

func matrixType(role string, t dtype.DType) string {
	return format.Sprintf("subgroup_matrix_%s<%s, %d, %d>", role, typeNames[t], loop.FragmentSize, loop.FragmentSize)
}
