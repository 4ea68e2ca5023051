package special_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
	_ "github.com/rlx-go/rlx/native/cpu"
)

type function func(b *ir.Builder, in []ir.Value) ir.Value

func one(f func(b *ir.Builder, x ir.Value) ir.Value) function {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0]) }
}

func two(f func(b *ir.Builder, x, y ir.Value) ir.Value) function {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], in[1]) }
}

// functions have bounds of the error: in ulp, and where that is larger in units of the precision.
var functions = map[string]struct {
	f              function
	ulp, absolute  float64
	slope, distant float64 // likewise of the derivatives
}{
	"entr":                   {one(special.Entr), 8, 0, 8, 4},
	"relEntr":                {two(special.RelEntr), 8, 0, 8, 4},
	"klDiv":                  {two(special.KLDiv), 16, 0, 8, 0},
	"erfcx":                  {one(special.Erfcx), 8, 0, 64, 0},
	"logNdtr":                {one(special.LogNdtr), 8, 0, 16, 0},
	"ndtri":                  {one(special.Ndtri), 8, 0, 256, 0},
	"e1":                     {one(special.E1), 8, 0, 8, 0},
	"ei":                     {one(special.Ei), 8, 2, 8, 0},
	"j0":                     {one(special.J0), 8, 4, 8, 4},
	"j1":                     {one(special.J1), 8, 4, 8, 4},
	"logBeta":                {two(special.LogBeta), 16, 8, 64, 8},
	"gammaEntropy":           {one(special.GammaEntropy), 32, 0, 64, 0},
	"stirlingRemainder":      {one(special.StirlingRemainder), 8, 4, 8, 4},
	"stirlingRemainderSlope": {one(special.StirlingRemainderSlope), 8, 4, 16, 4},
	"zeta":                   {two(special.Zeta), 16, 0, 64, 0},
	"gammainc":               {two(special.Gammainc), 64, 0, 256, 64},
	"gammaincc":              {two(special.Gammaincc), 64, 0, 256, 64},
	"betainc":                {func(b *ir.Builder, in []ir.Value) ir.Value { return special.Betainc(b, in[0], in[1], in[2]) }, 1024, 0, 1024, 64},
}

type values struct {
	In     [][]float64
	Out    []float64
	Slopes [][]float64
}

func read(t *testing.T) (of map[string]values) {
	t.Helper()
	data, err := os.ReadFile("testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &of); err != nil {
		t.Fatal(err)
	}
	return of
}

// graph computes the functions of all inputs, and their derivatives.
func graph(t *testing.T, d ir.DType, of map[string]values) (*ir.Graph, map[string]*ir.Array) {
	t.Helper()
	in := map[string]*ir.Array{}
	g, err := ir.Build("special", func(b *ir.Builder) {
		for name, v := range of {
			var operands []ir.Value
			for i, column := range v.In {
				port := fmt.Sprint(name, i)
				in[port] = ir.Floats(d, column, len(column))
				operands = append(operands, b.Input(port, d, ir.N(len(column))))
			}
			b.Output(name, functions[name].f(b, operands))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, in
}

func ulps(d ir.DType, got, want float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	_, exp := math.Frexp(want)
	e := math.Abs(got-want) / math.Ldexp(d.Epsilon(), exp-1)
	if math.IsNaN(e) {
		return math.Inf(1)
	}
	return e
}

// worst returns the largest error in ulp of those that are more than absolute units of the precision.
func worst(d ir.DType, got, want []float64, absolute float64) (most float64, at int) {
	for i := range want {
		if math.Abs(got[i]-want[i]) <= absolute*d.Epsilon() {
			continue
		}
		if e := ulps(d, got[i], want[i]); e > most {
			most, at = e, i
		}
	}
	return most, at
}

func TestValuesAgreeWithMpmath(t *testing.T) {
	of := read(t)
	for _, d := range []ir.DType{ir.F32, ir.F64} {
		g, in := graph(t, d, of)
		compare(t, d.String(), d, evaluated(t, g, in), of)
	}
}

// TestValuesOfTheCPUAgreeWithMpmath compiles all functions together.
func TestValuesOfTheCPUAgreeWithMpmath(t *testing.T) {
	of := read(t)
	g, in := graph(t, ir.F32, of)
	m, err := ir.NewModule("special", ir.Entry{Name: "special", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	p, err := s.Compile(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(ctx)
	fed := map[string]rlx.Tensor{}
	for name, x := range in {
		fed[name] = rlx.Float32s(narrow(x.F), len(x.F))
	}
	out, err := p.Call(ctx, "special", fed)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	for name, x := range out {
		f, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range f {
			got[name] = append(got[name], float64(v))
		}
	}
	compare(t, "cpu", ir.F32, got, of)
}

func narrow(x []float64) (out []float32) {
	for _, v := range x {
		out = append(out, float32(v))
	}
	return out
}

func evaluated(t *testing.T, g *ir.Graph, in map[string]*ir.Array) map[string][]float64 {
	t.Helper()
	values, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for i, o := range g.Outputs() {
		out[o.Name] = values[i].F
	}
	return out
}

// compare compares the values of functions with those of mpmath.
func compare(t *testing.T, by string, d ir.DType, got map[string][]float64, of map[string]values) {
	t.Helper()
	for name, want := range of {
		c := functions[name]
		e, at := worst(d, got[name], want.Out, c.absolute)
		t.Logf("%s %s: %.1f ulp", by, name, e)
		if e > c.ulp {
			t.Errorf("%s %s at %v: %v, want %v: %.1f ulp, not %v", by, name, column(want.In, at), got[name][at], want.Out[at], e, c.ulp)
		}
	}
}

// TestLimits compares values at kinks, poles and infinities, and outside of the domain.
func TestLimits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, rows := range map[string][][]float64{ // operands and the value
		"entr": {{0, 0}, {-1, -inf}, {inf, -inf}, {nan, nan}}, "relEntr": {{0, 0, 0}, {0, 1, 0}, {1, 0, inf}, {-1, 1, inf}, {nan, 1, nan}, {0, nan, nan}},
		"klDiv": {{0, 0.5, 0.5}, {1, 0, inf}, {2, 2, 0}, {0, 0, 0}, {-1, -1, inf}, {nan, 1, nan}}, "stirlingRemainder": {{0, nan}, {-3, nan}, {inf, 0}, {nan, nan}}, "stirlingRemainderSlope": {{0, nan}, {-3, nan}, {inf, 0}, {nan, nan}}, "erfcx": {{inf, 0}, {-inf, inf}, {nan, nan}}, "logNdtr": {{inf, 0}, {-inf, -inf}, {nan, nan}},
		"ndtri": {{0, -inf}, {1, inf}, {2, nan}, {-1, nan}, {-1e-30, nan}, {nan, nan}}, "e1": {{0, inf}, {inf, 0}, {-1, nan}}, "ei": {{0, -inf}, {inf, inf}, {-inf, 0}, {nan, nan}},
		"j0": {{inf, 0}, {-inf, 0}, {nan, nan}}, "j1": {{inf, 0}, {nan, nan}}, "zeta": {{1, 1, inf}, {0.5, 1, nan}, {2, -1, nan}, {inf, 2, nan}},
		"gammainc":  {{2, 0, 0}, {2, inf, 1}, {-1, 1, nan}, {1, -1, nan}, {nan, 1, nan}, {inf, inf, nan}, {inf, 1, 0}},
		"gammaincc": {{inf, 1, 1}, {2, 0, 1}, {2, inf, 0}, {0, 1, nan}, {1, nan, nan}}, "betainc": {{2, inf, 0.5, 1}, {2, inf, 0, 0}, {inf, 2, 0.5, 0}, {inf, inf, 0.5, nan}, {2, 3, 0, 0}, {2, 3, 1, 1}, {2, 3, 1.5, nan}, {-1, 3, 0.5, nan}, {1, nan, 0.5, nan}},
	} {
		v := values{}
		for i := range rows[0] {
			v.In = append(v.In, nil)
			for _, row := range rows {
				v.In[i] = append(v.In[i], row[i])
			}
		}
		last := len(v.In) - 1
		v.In, v.Out = v.In[:last], v.In[last]
		g, in := graph(t, ir.F64, map[string]values{name: v})
		for i, y := range evaluated(t, g, in)[name] {
			if y != v.Out[i] && !(math.IsNaN(y) && math.IsNaN(v.Out[i])) {
				t.Errorf("%s at %v is %v, not %v", name, column(v.In, i), y, v.Out[i])
			}
		}
	}
}

func TestOperandsOfOtherTypesAreErrors(t *testing.T) {
	_, err := ir.Build("wrong", func(b *ir.Builder) {
		b.Output("y", special.Gammainc(b, b.Input("a", ir.F32), b.Input("x", ir.I32)))
	})
	if !errors.Is(err, ir.ErrDType) {
		t.Errorf("an integer operand: %v", err)
	}
}

func column(in [][]float64, at int) (of []float64) {
	for _, x := range in {
		of = append(of, x[at])
	}
	return of
}

func TestDerivativesAgreeWithMpmath(t *testing.T) {
	of := read(t)
	for name, v := range of {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			g, in := graph(t, d, map[string]values{name: v})
			var wrt []string
			for i := range v.In {
				wrt = append(wrt, fmt.Sprint(name, i))
			}
			sum, err := ir.Build("sum", func(b *ir.Builder) {
				var ports []ir.Value
				for _, p := range g.Ports() {
					ports = append(ports, b.Input(p.Name, p.Value.DType(), p.Value.Shape()...))
				}
				b.Output("sum", ops.ReduceSum(b, b.Splice(g, ports)[0]))
			})
			if err != nil {
				t.Fatal(err)
			}
			grad, err := autodiff.GradWith(sum, autodiff.GradOptions{Loss: "sum", Wrt: wrt})
			if err != nil {
				t.Fatal(name, err)
			}
			out, err := ir.Eval(grad, in, ir.EvalOptions{})
			if err != nil {
				t.Fatal(name, err)
			}
			for i := range v.In {
				c, got := functions[name], out[1+i].F
				e, at := worst(d, got, v.Slopes[i], c.distant)
				t.Logf("%s %s by %d: %.1f ulp", d, name, i, e)
				if e > c.slope {
					t.Errorf("%s %s by %d at %v: %v, want %v: %.1f ulp, not %v", d, name, i, column(v.In, at), got[at], v.Slopes[i][at], e, c.slope)
				}
			}
		}
	}
}
