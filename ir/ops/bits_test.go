package ops_test

import (
	"errors"
	"math"
	"math/bits"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// computed returns the elements of a value that f makes of arrays.
func computed(t *testing.T, f func(b *ir.Builder) ir.Value) *ir.Array {
	t.Helper()
	g, err := ir.Build("computed", func(b *ir.Builder) { b.Output("y", f(b)) })
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestBitsAreCounted(t *testing.T) {
	for d, list := range map[ir.DType][]int64{
		ir.U8: {0, 1, 7, 128, 255}, ir.I8: {0, -1, -128, 127, 5}, ir.U16: {0, 65535, 256}, ir.I16: {-2, 1024},
		ir.I32: {0, -1, 1 << 30, 12345}, ir.U32: {0, 1<<32 - 1, 77}, ir.I64: {0, -1, 1 << 62, 0x123456789abcdef}, ir.U64: {-1, 1},
	} {
		width := 8 * d.Size()
		mask := uint64(1)<<width - 1
		if width == 64 {
			mask = ^uint64(0)
		}
		ones := computed(t, func(b *ir.Builder) ir.Value { return ops.PopCount(b, ops.Literal(b, ir.Ints(d, list))) })
		zeros := computed(t, func(b *ir.Builder) ir.Value { return ops.CLZ(b, ops.Literal(b, ir.Ints(d, list))) })
		for i, x := range list {
			word := uint64(x) & mask
			if got, want := ones.I[i], int64(bits.OnesCount64(word)); got != want || ones.DType != d {
				t.Errorf("%s %d has %d set bits, not %d", d, x, got, want)
			}
			if got, want := zeros.I[i], int64(bits.LeadingZeros64(word)-64+width); got != want {
				t.Errorf("%s %d has %d leading zeros, not %d", d, x, got, want)
			}
		}
	}
}

// The largest numbers are those of OCP's 8-bit floats.
func TestConversionsToFloat8Saturate(t *testing.T) {
	for d, largest := range map[ir.DType]float64{ir.F8E4M3: 448, ir.F8E5M2: 57344} {
		got := computed(t, func(b *ir.Builder) ir.Value {
			x := ops.Literal(b, ir.Floats(ir.F32, []float64{1e30, -largest - 1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, largest}))
			return ops.Convert(b, ops.ConvertSaturating(b, x, d), ir.F32)
		})
		for i, want := range []float64{largest, -largest, largest, -largest, math.NaN(), 0.5, largest} {
			if x := got.F[i]; x != want && !(math.IsNaN(x) && math.IsNaN(want)) {
				t.Errorf("%s: element %d is %v, not %v", d, i, x, want)
			}
		}
	}
}

// TestSwitchOfNarrowNumbers has more branches than i8 has numbers.
func TestSwitchOfNarrowNumbers(t *testing.T) {
	got := computed(t, func(b *ir.Builder) ir.Value {
		branches := make([]ops.Branch, 200)
		for i := range branches {
			branches[i] = func(b *ir.Builder, _ []ir.Value) []ir.Value {
				return []ir.Value{ops.Const(b, ir.I32, float64(i))}
			}
		}
		return ops.Switch(b, ops.Const(b, ir.I8, 120), nil, branches...)[0]
	})
	if got.I[0] != 120 {
		t.Errorf("branch %d, not 120", got.I[0])
	}
	if _, err := ir.Build("nil", func(b *ir.Builder) { ops.Switch(b, ops.Const(b, ir.I32, 0), nil, nil) }); err == nil {
		t.Error("no error of a branch that is nil")
	}
}

func TestFunctionsOfOpsRefuse(t *testing.T) {
	for name, f := range map[string]func(b *ir.Builder, x, i ir.Value){
		"set bits of floats":         func(b *ir.Builder, x, _ ir.Value) { ops.PopCount(b, x) },
		"saturation to f16":          func(b *ir.Builder, x, _ ir.Value) { ops.ConvertSaturating(b, x, ir.F16) },
		"saturation of integers":     func(b *ir.Builder, _, i ir.Value) { ops.ConvertSaturating(b, i, ir.F8E5M2) },
		"interpolation of integers":  func(b *ir.Builder, x, i ir.Value) { ops.Lerp(b, i, i, x) },
		"a branch of a float number": func(b *ir.Builder, x, _ ir.Value) { ops.Switch(b, x, nil, nil, nil) },
	} {
		_, err := ir.Build("refused", func(b *ir.Builder) {
			f(b, b.Input("x", ir.F32), b.Input("i", ir.I32))
		})
		if !errors.Is(err, ir.ErrDType) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
