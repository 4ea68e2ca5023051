package rlx_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/x448/float16"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
)

// dense has the methods of Gonum's mat.Dense that matter here.
type dense struct {
	rows, columns int
	data          []float64
}

func (d dense) Dims() (rows, columns int)  { return d.rows, d.columns }
func (d dense) At(row, column int) float64 { return d.data[row*d.columns+column] }

func TestMatricesAndHalvesComeAndGo(t *testing.T) {
	m := dense{2, 3, []float64{1, -2, 0.5, 4, 5, 65504}}
	for _, d := range []ir.DType{ir.F16, ir.F32, ir.F64, ir.I32} {
		x, err := rlx.OfMatrix(d, m)
		if err != nil {
			t.Fatal(err)
		}
		rows, columns, got, err := rlx.ToMatrix(x)
		want := slices.Clone(m.data)
		if d == ir.I32 {
			want[2] = 0 // towards zero
		}
		if err != nil || rows != 2 || columns != 3 || !slices.Equal(got, want) {
			t.Errorf("%s: [%d, %d] %v, %v; want %v", d, rows, columns, got, err, want)
		}
	}
	if x, err := rlx.OfMatrix(ir.F32, dense{}); err != nil || !slices.Equal(x.Dims, []int{0, 0}) {
		t.Errorf("no elements: %v, %v", x, err)
	}
	halves := []float16.Float16{float16.Fromfloat32(1.5), float16.Fromfloat32(-2)}
	x, err := rlx.Of(ir.F16, halves, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, got, err := rlx.ToMatrix(x); err != nil || !slices.Equal(got, []float64{1.5, -2}) {
		t.Errorf("halves are %v, %v", got, err)
	}
	large, err := rlx.Of(ir.U64, []uint64{1 << 63, 3}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, got, err := rlx.ToMatrix(large); err != nil || !slices.Equal(got, []float64{1 << 63, 3}) {
		t.Errorf("large integers without a sign are %v, %v", got, err)
	}
	if back, err := rlx.Elements[float16.Float16](x); err != nil || !slices.Equal(back, halves) {
		t.Errorf("halves are back as %v, %v", back, err)
	}
	for name, err := range map[string]error{
		"a vector": errorOf(rlx.ToMatrix(rlx.Float32s([]float32{1, 2}))),
		"torn":     errorOf(rlx.ToMatrix(rlx.Tensor{DType: ir.F32, Dims: []int{2, 2}, Data: make([]byte, 3)})),
	} {
		if !errors.Is(err, ir.ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := rlx.OfMatrix(ir.C64, m); !errors.Is(err, ir.ErrDType) {
		t.Errorf("complex numbers: %v", err)
	}
	for _, c := range []struct {
		d    ir.DType
		x    float64
		want int64
		kind error
	}{
		{ir.I32, -1.75, -1, nil},
		{ir.U8, 255.5, 255, nil},
		{ir.Bool, 0.5, 1, nil},
		{ir.I64, -1 << 53, -1 << 53, nil},
		{ir.U8, -0.5, 0, nil},
		{ir.I32, 1 << 31, 0, ir.ErrDType},
		{ir.U8, 256, 0, ir.ErrDType},
		{ir.U64, -1, 0, ir.ErrDType},
		{ir.I64, 1 << 63, 0, ir.ErrDType},
		{ir.I32, math.NaN(), 0, ir.ErrDType},
		{ir.I32, math.Inf(-1), 0, ir.ErrDType},
	} {
		x, err := rlx.OfMatrix(c.d, dense{1, 1, []float64{c.x}})
		if !errors.Is(err, c.kind) {
			t.Errorf("%v as %s: %v", c.x, c.d, err)
		}
		if err != nil {
			continue
		}
		if a, err := x.Array(); err != nil || a.I[0] != c.want {
			t.Errorf("%v as %s is %v, %v", c.x, c.d, a, err)
		}
	}
	if _, err := rlx.OfMatrix(ir.F32, nil); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no matrix: %v", err)
	}
}

func errorOf(_, _ int, _ []float64, err error) error { return err }
