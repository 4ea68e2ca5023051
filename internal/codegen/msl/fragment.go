package msl

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// fragments are Metal's matrices of SIMD-groups, since MSL 2.3 (Metal Shading Language
// Specification, "SIMD-group Matrix Functions"). How their elements lie in the threads is
// not used. Those of bfloat are of MSL 3.1.
func fragmentsOf(names types) *clike.Fragments {
	return &clike.Fragments{
		Zero: func(name string) string {
			return "simdgroup_float8x8 " + name + " = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);"
		},
		Load: func(name string, t dtype.DType, array, at string, load *loop.FragmentLoad) []string {
			rows := ""
			if load.Turned {
				rows = ", ulong2(0, 0), true"
			}
			return []string{
				fmt.Sprintf("simdgroup_%s8x8 %s;", names.of(t), name),
				fmt.Sprintf("simdgroup_load(%s, &%s[%s], %d%s);", name, array, at, load.Stride, rows),
			}
		},
		MulAdd: func(sum, a, b string) string {
			return fmt.Sprintf("simdgroup_multiply_accumulate(%s, %s, %s, %s);", sum, a, b, sum)
		},
		Store: func(name, array, at string, stride int) string {
			return fmt.Sprintf("simdgroup_store(%s, &%s[%s], %d);", name, array, at, stride)
		},
	}
}
