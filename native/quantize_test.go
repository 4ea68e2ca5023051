package native_test

import (
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// weights are the inputs of the golden blocks.
func weights() []float32 {
	x := make([]float32, 64)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*i))*3 - 0.25*float64(i%3))
	}
	return x
}

// The blocks that the Python package gguf 0.19.0 makes of weights: the bytes of
// gguf.quants.quantize(x.reshape(2, 32), Q8_0), and Q4_0. largest is the greatest
// error of its dequantize.
var golden = map[ir.DType]struct {
	blocks  string
	largest float64
}{
	dtype.Q8_0: {"8c2600599430d4dd8c8658b6bb62c6b05b9381e9d117896c0d5a980bae12838d75d1" +
		"da26dc66ebd570ac88339dd290653c6d88bc9749a4e54f1b3f1d353f3afae3648199", 0.01329946517944336},
	dtype.Q4_0: {"7f36087e519b05f691e01e93349e0413fe51cc3616de2765dfa3c0abb2c5c18e6cef0024", 0.2116396427154541},
}

func TestQuantizeMakesTheBlocksOfGGUF(t *testing.T) {
	for d, want := range golden {
		x, err := native.Quantize(d, weights(), 2, 32)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(x.Data); got != want.blocks {
			t.Errorf("%s:\n%s\nnot\n%s", d, got, want.blocks)
		}
	}
}

func TestQuantizedNumbersRoundTrip(t *testing.T) {
	for d, want := range golden {
		x, err := native.Quantize(d, weights(), 2, 32)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := x.Array()
		if err != nil {
			t.Fatal(err)
		}
		g, err := ir.Build("g", func(b *ir.Builder) {
			b.Output("x", ops.Dequantize(b, b.Input("w", ir.U8, ir.Dims(x.Dims...)...), d.String(), ir.F32))
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := ir.Eval(g, map[string]*ir.Array{"w": packed}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, x := range weights() {
			worst = max(worst, math.Abs(out[0].F[i]-float64(x)))
		}
		if !(math.Abs(worst-want.largest) <= 1e-6) {
			t.Errorf("%s: the largest error is %v, want %v", d, worst, want.largest)
		}
	}
}

func TestQuantizeRefusesPartialBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		d    ir.DType
		n    int
		dims []int
		want error
	}{
		"a part of a block": {dtype.Q8_0, 33, nil, ir.ErrShape},
		"rows of a half":    {dtype.Q4_0, 64, []int{4, 16}, ir.ErrShape},
		"other dims":        {dtype.Q8_0, 64, []int{2, 64}, ir.ErrShape},
		"another type":      {ir.F16, 64, nil, ir.ErrDType},
		"other blocks":      {dtype.Q5_0, 64, nil, ir.ErrDType},
	} {
		if _, err := native.Quantize(c.d, make([]float32, c.n), c.dims...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	zeros, err := native.Quantize(dtype.Q4_0, make([]float32, 32))
	if err != nil || zeros.Data[5] != 0x88 {
		t.Errorf("zeros are % x, %v", zeros.Data, err)
	}
}
