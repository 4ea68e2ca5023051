package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestUnsupportedOpsAreRefused compiles graphs that are right in
// themselves. The error has a kind and names the reason.
func TestUnsupportedOpsAreRefused(t *testing.T) {
	sineOf := func(d ir.DType, dims ...ir.Dim) func(*ir.Builder) {
		return func(b *ir.Builder) { b.Output("y", ops.Sin(b, b.Input("x", d, dims...))) }
	}
	tooLarge := "3600000000 bytes"
	if narrow {
		tooLarge = "the size overflows"
	}
	for name, c := range map[string]struct {
		make func(b *ir.Builder)
		kind error
		says string
	}{
		"64-bit floats":                    {sineOf(ir.F64, ir.N(4)), ir.ErrUnsupported, "f64"},
		"complex numbers of 64-bit floats": {func(b *ir.Builder) { b.Output("y", b.Input("x", ir.C128)) }, ir.ErrUnsupported, "c128"},
		"several devices": {func(b *ir.Builder) {
			b.Output("y", ops.AllReduce(b, b.Input("x", ir.F32), ops.MeshAttrs{MeshAxis: "data", Devices: 2}, ops.AllReduceSum))
		}, ir.ErrUnsupported, `all_reduce(f32[]): unsupported: 2 devices along "data"`},
		"64-bit integers": {func(b *ir.Builder) {
			b.Output("y", ops.Convert(b, b.Input("x", ir.U64, ir.N(4)), ir.F32))
		}, ir.ErrUnsupported, "u64"},
		"64-bit floats in a loop": {func(b *ir.Builder) {
			_, ys := ops.Scan(b, ops.Loop{Xs: []ir.Value{b.Input("x", ir.F32, ir.N(3))}, Body: func(b *ir.Builder, _, _, x []ir.Value) (next, ys []ir.Value) {
				return nil, []ir.Value{ops.Convert(b, ops.Sin(b, ops.Convert(b, x[0], ir.F64)), ir.F32)}
			}})
			b.Output("y", ys[0])
		}, ir.ErrUnsupported, "f64"},
		"an output with the name of a parameter": {func(b *ir.Builder) {
			b.Output("w", ops.Sin(b, b.Param("w", ir.F32, ir.N(4))))
		}, ir.ErrName, `output "w" has the name of a parameter or state`},
		"a transform of a prime length with too large sums": {func(b *ir.Builder) {
			re, _ := ops.DFT(b, b.Input("x", ir.F32, ir.N(33_554_467)), ir.Value{}, false)
			b.Output("y", re)
		}, ir.ErrUnsupported, "the length 33554467 has a large prime factor: up to 33554432 are supported"},
		"symbolic sizes":                 {sineOf(ir.F32, ir.Sym("n")), ir.ErrShape, "bind it first"},
		"a tensor larger than a binding": {sineOf(ir.F32, ir.N(64<<20)), ir.ErrUnsupported, "268435456 bytes"},
		"a result larger than a binding": {func(b *ir.Builder) {
			x := ops.BroadcastTo(b, b.Input("x", ir.F32, ir.N(30000)), ir.Dims(30000, 30000))
			b.Output("y", ops.Softmax(b, x, 0))
		}, ir.ErrUnsupported, tooLarge},
		"more elements than can be counted": {func(b *ir.Builder) {
			x := ops.BroadcastTo(b, b.Input("x", ir.F32, ir.N(70000)), ir.Dims(70000, 70000))
			b.Output("y", ops.ReduceSum(b, ops.Sin(b, x)))
		}, ir.ErrUnsupported, "too many elements"},
		"more steps than a plan repeats": {func(b *ir.Builder) {
			c, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{b.Input("x", ir.F32)}, Length: ir.N(1 << 20), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Sin(b, c[0])}, nil
			}})
			b.Output("y", c[0])
		}, ir.ErrUnsupported, "1048576 steps"},
		"more dispatches than a plan has": {func(b *ir.Builder) {
			twice := func(b *ir.Builder, x ir.Value, n int, body func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
				c, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{x}, Length: ir.N(n), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
					return []ir.Value{body(b, c[0])}, nil
				}})
				return c[0]
			}
			b.Output("y", twice(b, b.Input("x", ir.F32, ir.Dims(300, 300)...), 2048, func(b *ir.Builder, x ir.Value) ir.Value {
				return twice(b, x, 2048, func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, x) })
			}))
		}, ir.ErrUnsupported, "dispatches; a plan makes up to 1048576"},
	} {
		if narrow && name == "more elements than can be counted" {
			continue // a graph of such a tensor is refused already, see TestBuilderRefuses
		}
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, c.make, plan.WebGPU())
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one of kind %q that says %q", err, c.kind, c.says)
			}
		})
	}
}

// TestTransformOfALargePrimeIsSmall asserts that the plan computes the factors of a convolution, which would be 24 MB.
func TestTransformOfALargePrimeIsSmall(t *testing.T) {
	p, err := compile(t, func(b *ir.Builder) {
		re, im := ops.DFT(b, b.Input("x", ir.F32, ir.N(1_000_003)), ir.Value{}, false)
		b.Output("re", re)
		b.Output("im", im)
	}, plan.WebGPU())
	if err != nil {
		t.Fatal(err)
	}
	if file, err := plan.Encode(p); err != nil || len(file) > 1<<18 {
		t.Errorf("the plan has %d bytes, %v", len(file), err)
	}
}

func TestPlanOfHalfFloatsRequiresTheFeature(t *testing.T) {
	target := plan.WebGPU()
	target.F16 = true
	p, err := compile(t, func(b *ir.Builder) { b.Output("y", ops.Sin(b, b.Input("x", ir.F16, ir.N(4)))) }, target)
	if err != nil {
		t.Fatal(err)
	}
	if f := p.Requires.Features; len(f) != 1 || f[0] != "shader-f16" {
		t.Errorf("the plan requires %q", f)
	}
}

// TestHalfFloatsAreStoredWithoutTheFeature has a device without f16.
func TestHalfFloatsAreStoredWithoutTheFeature(t *testing.T) {
	p, err := compile(t, func(b *ir.Builder) { b.Output("y", ops.Sin(b, b.Input("x", ir.F16, ir.N(4)))) }, plan.WebGPU())
	if err != nil {
		t.Fatal(err)
	}
	if f := p.Requires.Features; len(f) != 0 {
		t.Errorf("the plan requires %q", f)
	}
	for _, k := range p.Kernels {
		if strings.Contains(k.Source, "f16") {
			t.Errorf("kernel %s has f16:\n%s", k.Name, k.Source)
		}
	}
}

func compile(t *testing.T, make func(b *ir.Builder), target plan.Target) (*plan.Plan, error) {
	t.Helper()
	return compileFor(t, make, target, wgsl.Printer{})
}
