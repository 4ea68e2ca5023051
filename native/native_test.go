package native_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func TestTensorsAliasTheirSource(t *testing.T) {
	x := []float32{1, 2, 3, 4}
	y, err := native.Float32s(x, 2, 2).Float32s()
	if err != nil {
		t.Fatal(err)
	}
	y[3] = 9
	if x[3] != 9 {
		t.Errorf("x = %v after writing to its view", x)
	}
	if allocations := testing.AllocsPerRun(10, func() {
		z, err := native.Tensor{DType: ir.F32, Dims: []int{4}, Data: native.Float32s(x).Data}.Float32s()
		if err != nil || len(z) != 4 {
			t.Error(err)
		}
	}); allocations > 2 { // the dims, twice
		t.Errorf("%v allocations", allocations)
	}
}

func TestViewsOfUnalignedMemoryAreCopies(t *testing.T) {
	memory := make([]uint64, 3)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), 24)
	x := native.Tensor{DType: ir.I32, Dims: []int{2}, Data: bytes[1:9]}
	copy(x.Data, []byte{1, 0, 0, 0, 2, 0, 0, 0})
	y, err := x.Int32s()
	if err != nil || y[0] != 1 || y[1] != 2 {
		t.Errorf("%v, %v", y, err)
	}
	if x.Aligned() {
		t.Error("the memory counts as aligned")
	}
}

func TestTensorsThatDoNotFitAreRefused(t *testing.T) {
	of := func(x native.Tensor) error { return x.Check() }
	_, wrongType := native.Float32(1).Int32s()
	_, wrongSize := native.Of(ir.F16, []float32{1})
	_, halves := native.Elements[float32](native.Zeros(ir.F16, 2))
	_, bytesAsBools := native.Elements[bool](native.Zeros(ir.U8, 2))
	for name, c := range map[string]struct{ err, kind error }{
		"too few bytes":      {of(native.Float32s([]float32{1}, 2)), ir.ErrShape},
		"negative dimension": {of(native.Float32s(nil, -1)), ir.ErrShape},
		"overflow":           {of(native.Float32s(nil, 1<<30, 1<<30, 1<<30)), ir.ErrShape},
		"no element type":    {of(native.Tensor{}), ir.ErrDType},
		"view as another":    {wrongType, ir.ErrDType},
		"elements too large": {wrongSize, ir.ErrDType},
		"a bool of 2":        {of(native.Tensor{DType: ir.Bool, Dims: []int{3}, Data: []byte{0, 1, 2}}), ir.ErrDType},
		"halves as f32":      {halves, ir.ErrDType},
		"bytes as bools":     {bytesAsBools, ir.ErrDType},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v, want %v", name, c.err, c.kind)
		}
	}
	half, err := native.Of(ir.F16, []uint16{0x3c00})
	if a, arrayErr := half.Array(); err != nil || arrayErr != nil || a.F[0] != 1 {
		t.Errorf("f16 in []uint16: %v, %v", err, arrayErr)
	}
}

func TestSlotsCheckIndicesOfEveryIntegerType(t *testing.T) {
	for _, d := range []ir.DType{ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32} {
		s := native.Slot{Name: "labels", DType: d, Dims: []int{2}, Lo: 0, Hi: 10, Checked: true}
		if err := s.Accept(native.FromArray(ir.Ints(d, []int64{0, 9}))); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if err := s.Accept(native.FromArray(ir.Ints(d, []int64{0, 10}))); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("%s: 10 is accepted: %v", d, err)
		}
		if d.IsSigned() {
			if err := s.Accept(native.FromArray(ir.Ints(d, []int64{-1, 0}))); !errors.Is(err, ir.ErrIndex) {
				t.Errorf("%s: -1 is accepted: %v", d, err)
			}
		}
	}
}

func TestErrorsTellKindAndReason(t *testing.T) {
	reason := ir.Shapef("x is f32[2]")
	var err error = &native.Error{Backend: "cpu", Call: "step", Kind: native.KindOf(reason), Name: "x", Err: reason}
	if !errors.Is(err, ir.ErrShape) || errors.Is(err, ir.ErrName) {
		t.Errorf("kinds of %v", err)
	}
	if want := "cpu: step: shape mismatch: x is f32[2]"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	behind := fmt.Errorf("x: %w", native.Float32s([]float32{1, 2}, 1, 784).Check())
	err = &native.Error{Backend: "cpu", Call: "step", Kind: native.KindOf(behind), Name: "x", Err: behind}
	if want := "cpu: step: x: shape mismatch: f32[1,784] has 2 elements; it must have 784"; err.Error() != want {
		t.Errorf("%q, want %q: the kind must be there once", err, want)
	}
	for _, kind := range []error{context.Canceled, context.DeadlineExceeded} {
		if native.KindOf(fmt.Errorf("waiting: %w", kind)) != kind {
			t.Errorf("%v is not its own kind", kind)
		}
	}
	if native.KindOf(errors.New("odd")) != native.ErrDevice {
		t.Error("an error of no kind has one")
	}
}

func TestMakersGiveTypeAndRank(t *testing.T) {
	for _, c := range []struct {
		x    native.Tensor
		text string
	}{
		{native.Float32s([]float32{1}), "f32[1]"},
		{native.Float64s([]float64{1}), "f64[1]"},
		{native.Int32s([]int32{1}), "i32[1]"},
		{native.Int64s([]int64{1}), "i64[1]"},
		{native.Uint32s([]uint32{1}), "u32[1]"},
		{native.Bools([]bool{true}), "bool[1]"},
		{native.Float32(1), "f32[]"},
		{native.Float64(1), "f64[]"},
		{native.Int32(1), "i32[]"},
		{native.Int64(1), "i64[]"},
		{native.Uint32(1), "u32[]"},
		{native.Bool(true), "bool[]"},
	} {
		a, err := c.x.Array()
		if c.x.String() != c.text || err != nil || a.Float(0) != 1 {
			t.Errorf("%s, %v, want a one as %s", c.x, err, c.text)
		}
	}
	half, err := native.Of(ir.F16, []uint16{0x3c00, 0x4000})
	if err != nil {
		t.Fatal(err)
	}
	if bits, err := native.Elements[uint16](half); err != nil || len(bits) != 2 || bits[1] != 0x4000 {
		t.Errorf("f16 as %v, %v", bits, err)
	}
}
