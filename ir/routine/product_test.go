package routine_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// odd is a batch of products with every unusual layout: a transposed factor, a shared factor,
// gaps between rows, and interleaved results.
var odd = routine.Product{
	Operand: dtype.F32, Result: dtype.F32, Batch: 2, M: 2, N: 2, K: 3,
	Left: routine.Layout{Transposed: true, Row: 3, Step: 9}, Right: routine.Layout{Row: 2}, Out: routine.Layout{Row: 5, Step: 2},
	Workspace: 8,
}

func floats(x ...float32) []byte {
	var out []byte
	for _, v := range x {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// The products are [1 4 7; 2 5 8]·r and [10 13 16; 11 14 17]·r with r = [1 2; 3 4;
// 5 6], by hand.
func TestTheReferenceOfAProduct(t *testing.T) {
	left := floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
	out := floats(make([]float32, 9)...)
	odd.Reference([][]byte{left, floats(1, 2, 3, 4, 5, 6), make([]byte, 8), out})
	want := floats(48, 60, 129, 168, 0, 57, 72, 138, 180)
	if string(out) != string(want) {
		t.Errorf("the results are % x, not % x", out, want)
	}
	half := routine.Product{Operand: dtype.BF16, Result: dtype.BF16, Batch: 1, M: 1, N: 1, K: 2, Left: routine.Layout{Row: 2}, Right: routine.Layout{Row: 1}, Out: routine.Layout{Row: 1}}
	bf16 := func(x ...float64) (out []byte) {
		for _, v := range x {
			out = binary.LittleEndian.AppendUint16(out, uint16(dtype.BF16.FloatBits(v)))
		}
		return out
	}
	product := bf16(0)
	if half.Reference([][]byte{bf16(3, 5), bf16(7, 11), nil, product}); string(product) != string(bf16(76)) {
		t.Errorf("3·7 + 5·11 is % x, not % x", product, bf16(76))
	}
}

// The product is [1 2; 3 4]·[1 −3; −1 1] = [−1 −1; −1 −5].
func TestTheReferenceOfAnEpilogue(t *testing.T) {
	square := routine.Layout{Row: 2}
	p := routine.Product{
		Operand: dtype.F32, Result: dtype.F32, Batch: 1, M: 2, N: 2, K: 2, Left: square, Right: square, Out: square,
		Bias: true, Adds: true, Added: routine.Layout{Row: 3},
	}
	out := floats(9, 9, 9, 9)
	p.Reference([][]byte{floats(1, 2, 3, 4), floats(1, -3, -1, 1), nil, out, floats(10, 20), floats(-1, -30, 0, 5, -6)})
	if want := floats(8, -11, 14, 9); string(out) != string(want) {
		t.Errorf("the results are % x, not % x", out, want)
	}
	if a := p.Arrays(); len(a) != 6 || a[4] != (routine.Array{Bytes: 8}) || a[5] != (routine.Array{Bytes: 20}) {
		t.Errorf("the arrays are %v", a)
	}
}

func TestWordsRoundTrip(t *testing.T) {
	for _, p := range []routine.Product{odd, {
		Operand: dtype.BF16, Result: dtype.F32, Batch: 1, M: 5, N: 6, K: 7,
		Left: routine.Layout{Row: 7}, Right: routine.Layout{Transposed: true, Row: 7}, Out: routine.Layout{Row: 6},
	}, {
		Operand: dtype.F32, Result: dtype.F32, TF32: true, Batch: 1, M: 5, N: 6, K: 7,
		Left: routine.Layout{Row: 7}, Right: routine.Layout{Row: 6}, Out: routine.Layout{Row: 6},
		Bias: true, Adds: true, Added: routine.Layout{Row: 8},
	}} {
		if got, err := routine.Of(p.Name(), p.Words()); err != nil || got != routine.Routine(p) {
			t.Errorf("%+v becomes %+v, %v", p, got, err)
		}
	}
	if a := odd.Arrays(); a[0] != (routine.Array{Bytes: 4 * 17}) || a[1] != (routine.Array{Bytes: 4 * 6}) || a[2] != (routine.Array{Bytes: 8, Written: true}) || a[3] != (routine.Array{Bytes: 4 * 9, Written: true}) {
		t.Errorf("the arrays are %v", a)
	}
}

func TestInvalidProductsAreRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(p *routine.Product)
		words  string
	}{
		"no rows":           {func(p *routine.Product) { p.M = 0 }, "2 products of 0×3"},
		"a type":            {func(p *routine.Product) { p.Operand, p.Result = dtype.F64, dtype.F64 }, "a product of f64"},
		"a result":          {func(p *routine.Product) { p.Result = dtype.F16 }, "cannot have results of f16"},
		"tf32 of bf16":      {func(p *routine.Product) { p.Operand, p.TF32 = dtype.BF16, true }, "a product of bf16 has a transposed result or tf32 without f32"},
		"a turned result":   {func(p *routine.Product) { p.Out.Transposed = true }, "has a transposed result"},
		"rows that overlap": {func(p *routine.Product) { p.Right.Row = 1 }, "rows of 2 elements have the stride 1"},
		"results in others": {func(p *routine.Product) { p.Out.Row = 3 }, "results of the batch overlap"},
		"a huge step":       {func(p *routine.Product) { p.Left.Step = min(math.MaxInt32, math.MaxInt/8) }, "elements"},
		"nothing to add":    {func(p *routine.Product) { p.Added.Row = 2 }, "the matrix to add is missing or transposed"},
		"a turned addend":   {func(p *routine.Product) { p.Adds, p.Added = true, routine.Layout{Transposed: true, Row: 2} }, "the matrix to add is missing or transposed"},
		"addends overlap":   {func(p *routine.Product) { p.Adds, p.Added.Row = true, 1 }, "rows of 2 elements have the stride 1"},
		"a negative number": {func(p *routine.Product) { p.Workspace = -1 }, "is -1"},
	} {
		p := odd
		c.change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, words := range [][]int{nil, {9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0}, {0, 0, 2, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0}} {
		if r, err := routine.Of("product", words); err == nil {
			t.Errorf("%v makes %+v", words, r)
		}
	}
	if _, err := routine.Of("solve", nil); err == nil {
		t.Error("an unknown routine")
	}
}
