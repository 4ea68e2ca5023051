package passes_test

import (
	"errors"
	"math"
	"math/cmplx"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// inPairs returns a complex array with its parts along a last axis.
func inPairs(a *ir.Array) *ir.Array {
	if !a.DType.IsComplex() {
		return a
	}
	out := ir.NewArray(a.DType.Real(), append(append([]int(nil), a.Dims...), 2)...)
	for i, z := range a.C {
		out.F[2*i], out.F[2*i+1] = real(z), imag(z)
	}
	return out
}

// TestPairsEqualComplexArithmetic takes all samples of ops with complex
// operands or results.
func TestPairsEqualComplexArithmetic(t *testing.T) {
	checked := map[ir.Op]bool{}
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for _, s := range d.Samples() {
			g, n, err := irtest.SampleGraph(op, s)
			if err != nil {
				t.Fatal(err)
			}
			if !passes.HasType(g, ir.C64) && !passes.HasType(g, ir.C128) {
				continue
			}
			plain, err := passes.Run(g, passes.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := passes.LowerComplex(plain)
			if able := passes.HasComplexRule(n); able != (err == nil) || err != nil && !errors.Is(err, ir.ErrUnsupported) {
				t.Errorf("%s, %s: pairable: %t, but %v", op, s.Name, able, err)
			}
			if err == nil {
				checked[op] = true
				samePairs(t, g, p, irtest.SampleInputs(s))
			}
		}
	}
	for _, op := range []ir.Op{"fft", "irfft", "rfft", "mul", "div", "mul_zero", "conj", "complex", "eq", "scatter_add", "vdot", "mean"} {
		if !checked[op] {
			t.Errorf("%s is not computed in pairs", op)
		}
	}
}

func samePairs(t *testing.T, g, p *ir.Graph, in map[string]*ir.Array) {
	t.Helper()
	want, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]*ir.Array{}
	for name, a := range in {
		parts[name] = inPairs(a)
	}
	got, err := ir.Eval(p, parts, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for k, w := range want {
		w = inPairs(w)
		tol := 1e-12
		if w.DType == ir.F32 { // the factors of transforms are f32 then
			tol = 1e-6
		}
		for i, x := range w.F {
			if y := got[k].F[i]; math.Abs(x-y) > tol*max(1, math.Abs(x)) || math.IsNaN(x) != math.IsNaN(y) {
				t.Errorf("%s: element %d is %v, want %v", g.Name(), i, y, x)
				return
			}
		}
		for i, x := range w.I {
			if got[k].I[i] != x {
				t.Errorf("%s: element %d is %v, want %v", g.Name(), i, got[k].I[i], x)
			}
		}
	}
}

// TestQuotientsOfPairsDoNotOverflow divides numbers whose squares are no f64.
func TestQuotientsOfPairsDoNotOverflow(t *testing.T) {
	g, err := ir.Build("quotient", func(b *ir.Builder) {
		b.Output("y", ops.Div(b, b.Input("x", ir.C128), b.Input("z", ir.C128)))
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := passes.LowerComplex(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]complex128{{1e300 + 2e300i, 3e300 - 1e300i}, {1e-300 + 2e-300i, 1e-300 + 5e-300i}, {1, 1i}, {2 - 3i, -4}} {
		in := map[string]*ir.Array{}
		for i, name := range []string{"x", "z"} {
			in[name] = ir.Floats(ir.F64, []float64{real(c[i]), imag(c[i])}, 2)
		}
		out, err := ir.Eval(p, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := complex(out[0].F[0], out[0].F[1]), c[0]/c[1]
		if cmplx.Abs(got-want) > 1e-15*cmplx.Abs(want) {
			t.Errorf("%v / %v is %v, want %v", c[0], c[1], got, want)
		}
	}
}
