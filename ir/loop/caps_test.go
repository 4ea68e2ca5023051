package loop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// In WGSL f16 is an extension that a shader enables; there are no 64-bit types.
func TestTypeSupportOfTargets(t *testing.T) {
	wgsl, half, cuda := loop.DefaultCaps(), loop.DefaultCaps(), loop.DefaultCaps()
	half.F16 = true
	cuda.Dialect = dtype.CUDA
	for _, c := range []struct {
		name string
		caps loop.Caps
		d    dtype.DType
		want dtype.Support
	}{
		{"f32 in WGSL", wgsl, dtype.F32, dtype.Arithmetic},
		{"f16 in WGSL", wgsl, dtype.F16, dtype.Storage},
		{"f16 in WGSL with the feature", half, dtype.F16, dtype.Arithmetic},
		{"f64 in WGSL with f16", half, dtype.F64, dtype.Unsupported},
		{"i64 in WGSL", wgsl, dtype.I64, dtype.Unsupported},
		{"f64 in CUDA", cuda, dtype.F64, dtype.Arithmetic},
		{"bf16 in CUDA", cuda, dtype.BF16, dtype.Storage},
		{"u8 in WGSL", wgsl, dtype.U8, dtype.Storage},
	} {
		if got := c.caps.Support(c.d); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A kernel with atomic additions of floats needs a target that supports them.
func TestAtomicFloatsNeedTheTarget(t *testing.T) {
	for _, c := range kerneltest.AtomicFloats() {
		caps := loop.DefaultCaps()
		if err := caps.Check(c.Kernel); err != nil {
			t.Error(err)
		}
		caps.AtomicFloats = loop.NoAtomicFloats
		var refused *loop.CheckError
		if err := caps.Check(c.Kernel); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "atomic") {
			t.Errorf("%s without atomic floats: error %v", c.Kernel.Name, err)
		}
	}
}
