package msl

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/clike"
)

// fragments are Metal's matrices of SIMD-groups, since MSL 2.3 (Metal Shading Language
// Specification, "SIMD-group Matrix Functions"). How their elements lie in the threads is
// not used. Those of bfloat are of MSL 3.1.
func fragmentsOf(names types) *clike.Fragments {
	return &clike.Fragments{
		Zero: func(name string) string {
			return "simdgroup_float8x8 " + name + " = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);"
		},
		Load: func(name string, t dtype.DType, address string, stride int, turned bool) []string {
			rows := ""
			if turned {
				rows = ", ulong2(0, 0), true"
			}
			return []string{
				fmt.Sprintf("simdgroup_%s8x8 %s;", names.of(t), name),
				fmt.Sprintf("simdgroup_load(%s, %s, %d%s);", name, address, stride, rows),
			}
		},
		MulAdd: func(sum, a, b string) string {
			return fmt.Sprintf("simdgroup_multiply_accumulate(%s, %s, %s, %s);", sum, a, b, sum)
		},
		Store: func(name, address string, stride int) string {
			return fmt.Sprintf("simdgroup_store(%s, %s, %d);", name, address, stride)
		},
	}
}
