package ir

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTypes(t *testing.T) {
	n := Sym("n")
	tests := []struct {
		t     Type
		text  string
		bytes int // -1: none
	}{
		{TypeOf(F32), "f32[]", 4},
		{TypeOf(F16, N(3), N(2)), "f16[3,2]", 12},
		{TypeOf(F32, N(0), N(maxDim), N(maxDim)), fmt.Sprintf("f32[0,%d,%d]", maxDim, maxDim), 0},
		{TypeOf(F32, N(maxDim), N(maxDim), N(0)), fmt.Sprintf("f32[%d,%d,0]", maxDim, maxDim), 0},
		{TypeOf(F32, N(maxDim), N(maxDim)), fmt.Sprintf("f32[%d,%d]", maxDim, maxDim), -1},
		{TypeOf(F32, n.Mul(N(2))), "f32[2*n]", -1},
		{TypeOf(F32, n, N(0)), "f32[n,0]", -1},
		{TypeOf(Bool, N(-1)), "bool[-1]", -1},
	}
	for _, tt := range tests {
		if tt.t.String() != tt.text {
			t.Errorf("printed as %s, want %s", tt.t, tt.text)
		}
		got, err := tt.t.Bytes()
		if tt.bytes < 0 && err == nil || tt.bytes >= 0 && (err != nil || got != tt.bytes) {
			t.Errorf("%s takes %d bytes, %v; want %d", tt.t, got, err, tt.bytes)
		}
	}
	if TypeOf(F32, n).Equal(TypeOf(F32, Sym("m"))) || !TypeOf(F32, n).Equal(TypeOf(F32, n.Add(n).Sub(n))) {
		t.Error("symbolic shapes are not compared by normal form")
	}
}

func TestArraysGoToBytesAndBack(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		a    *Array
		want []byte
	}{
		{Floats(F32, []float64{1, -0.5}), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf}},
		{Floats(F32, []float64{0.1}), []byte{0xcd, 0xcc, 0xcc, 0x3d}},
		{Floats(F16, []float64{1, inf, 65504}), []byte{0, 0x3c, 0, 0x7c, 0xff, 0x7b}},
		{Floats(F16, []float64{65520}), []byte{0, 0x7c}},
		{Floats(BF16, []float64{1, -2}), []byte{0x80, 0x3f, 0, 0xc0}},
		{Floats(F64, []float64{math.Copysign(0, -1)}), []byte{0, 0, 0, 0, 0, 0, 0, 0x80}},
		{Ints(I32, []int64{-2}), []byte{0xfe, 0xff, 0xff, 0xff}},
		{Ints(U8, []int64{255, 256, -1}), []byte{255, 0, 255}},
		{Ints(Bool, []int64{0, 5}), []byte{0, 1}},
		{Ints(U64, []int64{-1}), bytes.Repeat([]byte{255}, 8)},
		{&Array{C64, nil, nil, nil, []complex128{1 - 2i}}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{Floats(F32, nil), []byte{}},
		{Floats(F32, []float64{1, 2}, 1, 2, 1), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
	}
	for _, tt := range tests {
		got := tt.a.Bytes()
		if !bytes.Equal(got, tt.want) {
			t.Errorf("%s is stored as % x, want % x", tt.a.Type(), got, tt.want)
		}
		again, err := ArrayOf(tt.a.Type(), got)
		if err != nil {
			t.Fatal(err)
		}
		if !again.Type().Equal(tt.a.Type()) || !bytes.Equal(again.Bytes(), got) {
			t.Errorf("%s comes back as %v", tt.a.Type(), again)
		}
	}
}

func TestArrayOfPackedBlocksIsTheirBytes(t *testing.T) {
	q4, err := parseType("q4_0[2,32]")
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 36)
	data[35] = 200
	a, err := ArrayOf(q4, data)
	if err != nil {
		t.Fatal(err)
	}
	if a.DType != U8 || !slices.Equal(a.Dims, []int{36}) || a.I[35] != 200 {
		t.Errorf("got %v", a)
	}
	if _, err := ArrayOf(q4, data[1:]); !errors.Is(err, ErrShape) {
		t.Errorf("got %v", err)
	}
}

// parseType reads a type as the text form has it.
func parseType(s string) (Type, error) {
	p := &parser{text: s}
	t := p.typ()
	if p.err != nil {
		return t, p.err
	}
	return t, nil
}

func TestArraysOfAnotherSizeAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		a    *Array
		kind error
		text string
	}{
		"too few":                     {Floats(F32, []float64{1, 2, 3}, 2, 2), ErrShape, "the array has 3 elements; f32[2,2] needs 4"},
		"too many":                    {Ints(I32, []int64{1, 2, 3, 4, 5}, 2, 2), ErrShape, "the array has 5 elements; i32[2,2] needs 4"},
		"more than one":               {Floats(F32, []float64{1, 2}, []int{}...), ErrShape, "the array has 2 elements; f32[] needs 1"},
		"negative dim":                {NewArray(F32, -1), ErrShape, "negative"},
		"overflowing dims":            {Floats(F32, nil, math.MaxInt, math.MaxInt), ErrShape, "too "},
		"floats as i32":               {Floats(I32, []float64{1}), ErrDType, "i32[1]"},
		"the element type is missing": {&Array{}, ErrDType, "the element type is missing"},
		"none":                        {nil, ErrShape, "no array"},
	} {
		if err := c.a.Check(); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v that says %q", name, err, c.kind, c.text)
		}
	}
	for _, a := range []*Array{Floats(F32, []float64{1}), Float(F32, 1), Ints(I8, nil), Floats(F32, nil, 0, math.MaxInt32), Int(Bool, 1)} {
		if err := a.Check(); err != nil {
			t.Errorf("%s: %v", a.Type(), err)
		}
	}
}

// The rule is that of package native's makers: a slice is a vector unless dims
// say otherwise.
func TestOneElementSliceIsAVectorAndNumberIsAScalar(t *testing.T) {
	for _, c := range []struct {
		a    *Array
		text string
	}{
		{Floats(F32, []float64{1}), "f32[1]"},
		{Ints(I8, []int64{1}), "i8[1]"},
		{Float(F32, 1), "f32[]"},
		{Int(I8, 1), "i8[]"},
	} {
		if got := c.a.Type().String(); got != c.text {
			t.Errorf("%s, want %s", got, c.text)
		}
	}
}

func TestArraysDoNotShareMemory(t *testing.T) {
	dims := []int{2}
	a := NewArray(F32, dims...)
	c := a.Clone()
	dims[0], c.F[0] = 9, 1
	if a.Dims[0] != 2 || a.F[0] != 0 {
		t.Errorf("got %v", a)
	}
	if empty := NewArray(F32, 0).Clone(); empty.F == nil {
		t.Error("a copy of no floats holds no floats")
	}
}

func TestFloatReadsEveryType(t *testing.T) {
	if x := Ints(U64, []int64{-1}).Float(0); x != 1<<64 {
		t.Errorf("u64: %v", x)
	}
	if x := Ints(I8, []int64{-1}).Float(0); x != -1 {
		t.Errorf("i8: %v", x)
	}
	if x := (&Array{C128, nil, nil, nil, []complex128{3 + 4i}}).Float(0); x != 3 {
		t.Errorf("c128: %v", x)
	}
}

// TestArraysPrintTheirElements compares texts with fmt's of slices of the same numbers.
func TestArraysPrintTheirElements(t *testing.T) {
	for want, a := range map[string]*Array{
		"f32[2,2] " + fmt.Sprint([]float32{0.1, -2, 3e20, 0}): Floats(F32, []float64{0.1, -2, 3e20, 0}, 2, 2),
		"f64[1] " + fmt.Sprint([]float64{0.1}):                Floats(F64, []float64{0.1}),
		"u64[] [18446744073709551615]":                        Int(U64, -1),
		"i8[2] " + fmt.Sprint([]int8{-1, 2}):                  Ints(I8, []int64{-1, 2}),
		"c64[1] " + fmt.Sprint([]complex64{0.1 + 2i}):         {C64, []int{1}, nil, nil, []complex128{complex(float64(float32(0.1)), 2)}},
		"bool[17] [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ...]":      NewArray(Bool, 17),
		"f32[0] []": NewArray(F32, 0),
		"<nil>":     nil,
	} {
		if got := a.String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
