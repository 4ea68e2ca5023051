package loop_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

// In WGSL f16 is an extension that a shader enables; there are no 64-bit types.
func TestWhatATargetComputesWith(t *testing.T) {
	wgsl, half, cuda := loop.DefaultCaps(), loop.DefaultCaps(), loop.DefaultCaps()
	half.F16 = true
	cuda.Dialect = dtype.CUDA
	for _, c := range []struct {
		name string
		caps loop.Caps
		d    dtype.DType
		want bool
	}{
		{"f32 in WGSL", wgsl, dtype.F32, true},
		{"f16 in WGSL", wgsl, dtype.F16, false},
		{"f16 in WGSL with the feature", half, dtype.F16, true},
		{"f64 in WGSL with f16", half, dtype.F64, false},
		{"i64 in WGSL", wgsl, dtype.I64, false},
		{"f64 in CUDA", cuda, dtype.F64, true},
	} {
		if got := c.caps.Computes(c.d); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
