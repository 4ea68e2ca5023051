package rlx_test

import (
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
)

func TestTensorMakersGiveTypeAndRank(t *testing.T) {
	half, err := rlx.Of(ir.F16, []uint16{0x3c00})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    rlx.Tensor
		text string
	}{
		{rlx.Float32s([]float32{1}), "f32[1]"},
		{rlx.Float64s([]float64{1}), "f64[1]"},
		{rlx.Int32s([]int32{1}), "i32[1]"},
		{rlx.Int64s([]int64{1}), "i64[1]"},
		{rlx.Uint32s([]uint32{1}), "u32[1]"},
		{rlx.Bools([]bool{true}, 1, 1), "bool[1,1]"},
		{rlx.Float32(1), "f32[]"},
		{rlx.Float64(1), "f64[]"},
		{rlx.Int32(1), "i32[]"},
		{rlx.Int64(1), "i64[]"},
		{rlx.Uint32(1), "u32[]"},
		{rlx.Bool(true), "bool[]"},
		{half, "f16[1]"},
		{rlx.Zeros(ir.F32, 2, 3), "f32[2,3]"},
	} {
		if err := c.x.Check(); err != nil || c.x.String() != c.text {
			t.Errorf("%s, %v, want %s", c.x, err, c.text)
		}
	}
	if bits, err := rlx.Elements[uint16](half); err != nil || bits[0] != 0x3c00 {
		t.Errorf("f16 as %v, %v", bits, err)
	}
}
