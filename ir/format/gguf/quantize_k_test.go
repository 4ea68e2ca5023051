package gguf_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/format/gguf"
)

// roundTrip packs and unpacks floats.
func roundTrip(t *testing.T, typ gguf.Type, x []float32) []float32 {
	t.Helper()
	packed, err := gguf.Quantize(typ, x)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(x))
	if err := gguf.Dequantize(typ, out, packed); err != nil {
		t.Fatal(err)
	}
	return out
}

// The mean square error of normal numbers is at most that of even steps over the range of each
// part, step²/12 (Bennett, Spectra of quantized signals). The search for a scale makes it smaller,
// and the few bits of scales larger.
func TestQuantizeInPartsHasSmallErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 256*64)
	for i := range x {
		x[i] = float32(rng.NormFloat64()) * 0.02
	}
	for _, c := range []struct {
		typ         gguf.Type
		part        int
		steps       float64
		symmetrical bool
	}{{gguf.Q4_K, 32, 15, false}, {gguf.Q5_K, 32, 31, false}, {gguf.Q6_K, 16, 32, true}} {
		var bound, sum float64
		got := roundTrip(t, c.typ, x)
		for part := range slices.Chunk(x, c.part) {
			step := float64(slices.Max(part)-slices.Min(part)) / c.steps
			if c.symmetrical {
				step = float64(max(slices.Max(part), -slices.Min(part))) / c.steps
			}
			bound += step * step / 12 * float64(c.part)
		}
		for i := range x {
			e := float64(got[i] - x[i])
			sum += e * e
		}
		if ratio := math.Sqrt(sum / bound); !(ratio < 1.03) {
			t.Errorf("%v: the error is %.3f of that of even steps", c.typ, ratio)
		}
	}
}

// Numbers that a block can hold come back: multiples of a step from 0 to the largest, zeros, and one number.
func TestQuantizeInPartsKeepsWhatItCanHold(t *testing.T) {
	x := make([]float32, 256)
	for _, typ := range []gguf.Type{gguf.Q4_K, gguf.Q5_K, gguf.Q6_K} {
		if got := roundTrip(t, typ, x); !slices.Equal(got, x) {
			t.Errorf("%v: zeros are %v", typ, got[:4])
		}
	}
	for i := range x {
		x[i] = float32(i%16) * 63 / 64
	}
	if got := roundTrip(t, gguf.Q4_K, x); !slices.Equal(got, x) {
		t.Errorf("multiples of a step are %v", got[:16])
	}
	for i := range x {
		x[i] = -float32(17+i%16) * 128 / 1024
	}
	if got := roundTrip(t, gguf.Q6_K, x); !slices.Equal(got, x) {
		t.Errorf("multiples of a step are %v", got[:16])
	}
}
