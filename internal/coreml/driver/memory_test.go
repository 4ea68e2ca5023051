//go:build cgo && linux

package driver_test

import (
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// TestInputsAreReadInPlace: Core ML is given the memory of the caller, not a copy.
func TestInputsAreReadInPlace(t *testing.T) {
	rt := runtime(t)
	m, err := coreml.Load(rt, written(t, coreml.Options{}, func(b *ir.Builder) {
		b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.Dims(3, 5)...)))
	}), "step", driver.AllUnits)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := native.Zeros(ir.F32, 3, 5)
	if _, err := m.Predict(map[string]native.Tensor{"x": x}); err != nil {
		t.Fatal(err)
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(x.Data))); software.Input(library) != at {
		t.Errorf("the input lay at %#x, and was given at %#x", at, software.Input(library))
	}
}
