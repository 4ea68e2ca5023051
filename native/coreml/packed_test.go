package coreml_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// TestPackedWeightsAreStoredPacked: stored weights of every format of blocks are whole
// numbers with scales in the package, and as bytes as many as that takes; those of other
// formats are unpacked. Values are compared with the reference of the op.
func TestPackedWeightsAreStoredPacked(t *testing.T) {
	d, _ := ir.Lookup(ops.OpDequantize)
	constants := map[string]int{} // by format, the bits of whole numbers
	for _, s := range d.Samples() {
		format := s.Attrs.(*ops.PackedAttrs).Format
		if s.In[0].Len() == 0 {
			continue
		}
		// A number minus an offset is as exact as the largest one of its group;
		// fp16 has 11 bits, and no number smaller than 6e-8.
		for name, c := range map[string]struct {
			options coreml.Options
			rel     float64
			abs     float64
		}{"": {coreml.Options{}, 1e-6, 0}, " in fp16": {coreml.Options{Half: true}, 1e-3, 6e-8}} {
			t.Run(s.Name+name, func(t *testing.T) {
				f, want := packedFunction(t, s, c.options)
				if bits := packedBits(t, f); bits > 0 {
					constants[format] = bits
				}
				largest := 0.0
				for _, x := range want {
					largest = max(largest, math.Abs(x))
				}
				sameNumbers(t, f, want, c.abs+c.rel*largest)
			})
		}
	}
	for format, bits := range map[string]int{
		"q4_0": 4, "q4_1": 4, "q5_0": 8, "q5_1": 8, "q8_0": 8, "q2_k": 4, "q3_k": 4, "q4_k": 4, "q5_k": 8, "q6_k": 8, "q8_k": 8,
		"iq4_nl": 8, "iq4_xs": 8, "mxfp4": 8, "nvfp4": 8, "f8_e4m3": 0, "f8_e5m2": 0,
	} {
		if constants[format] != bits {
			t.Errorf("%s has numbers of %d bits in the package, not of %d", format, constants[format], bits)
		}
	}
}

// packedFunction returns the function that unpacks the stored bytes of a sample, and the expected
// result.
func packedFunction(t *testing.T, s ir.Sample, o coreml.Options) (*mil.Function, []float64) {
	t.Helper()
	a := s.Attrs.(*ops.PackedAttrs)
	m := module(t, func(b *ir.Builder) {
		w := ops.Dequantize(b, b.Port(ir.ParamPort, "w", s.In[0].Type()), a.Format, ir.F32)
		x := b.Input("x", ir.F32)
		b.Output("y", ops.Mul(b, w, ops.BroadcastTo(b, x, w.Shape())))
	})
	o.Weights = map[string]native.Tensor{"w": native.FromArray(s.In[0])}
	p, err := coreml.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ir.Eval(m.Entries[0].Graph, map[string]*ir.Array{"w": s.In[0], "x": ir.Float(ir.F32, 1)}, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	return p.Program.Functions[0], want[0].F
}

// packedBits returns the bits of the whole numbers of a function, 0 without.
func packedBits(t *testing.T, f *mil.Function) int {
	t.Helper()
	for _, op := range f.Ops {
		if strings.HasPrefix(op.Kind, "constexpr_") {
			data := op.Inputs[slices.IndexFunc(op.Inputs, func(a mil.Argument) bool { return a.Parameter == "data" })].Values[0]
			v := f.Ops[slices.IndexFunc(f.Ops, func(o *mil.Op) bool { return o.Name == data })].Value
			return 8 * len(v.Data) / v.Type.Len()
		}
	}
	return 0
}

// sameNumbers compares the results of a function for an x of 1 with the wanted numbers.
func sameNumbers(t *testing.T, f *mil.Function, want []float64, off float64) {
	t.Helper()
	g, err := software.Graph(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{1})}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range want {
		if got := out[0].Float(i); !(math.Abs(got-x) <= off) && got != x && !(math.IsNaN(got) && math.IsNaN(x)) {
			t.Fatalf("element %d is %v, not %v", i, got, x)
		}
	}
}
