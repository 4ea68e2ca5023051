package spd_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/ops/spd"
)

func matrix(x ...float64) *ir.Array { return ir.Floats(ir.F64, x, 3, 3) }

var (
	p = matrix(2, .5, .1, .5, 1.5, -.3, .1, -.3, 1.2)
	q = matrix(1.1, -.2, .4, -.2, 2.3, .6, .4, .6, 3.1)
	v = matrix(.3, -.7, .2, -.7, .1, .5, .2, .5, -.4)
)

// graphs are the functions at p, q and v, with their results by SciPy 1.17.1 (sqrtm, logm, expm and
// generalised eigvalsh, of the formulas in the comments of spd).
var graphs = map[string]struct {
	f    func(b *ir.Builder, p, q, v ir.Value) ir.Value
	want []float64
}{
	"log": {func(b *ir.Builder, p, q, _ ir.Value) ir.Value { return spd.Log(b, p, q) }, []float64{
		-1.3971648741192835, -0.915843148404579, 0.33424795501154575, -0.915843148404579, 0.2485466150085531, 0.4261465604009596,
		0.33424795501154575, 0.4261465604009596, 1.0016948839781674,
	}},
	"exp": {func(b *ir.Builder, p, _, v ir.Value) ir.Value { return spd.Exp(b, p, v) }, []float64{
		2.604342871904423, -0.414147450933283, 0.1859823762828994, -0.414147450933283, 1.9699921147186288, 0.16068942412170445,
		0.1859823762828994, 0.16068942412170445, 0.9087336701182583,
	}},
	"squared distance": {func(b *ir.Builder, p, q, _ ir.Value) ir.Value { return spd.SquaredDistance(b, p, q) }, []float64{2.441201568598821}},
	"distance":         {func(b *ir.Builder, p, q, _ ir.Value) ir.Value { return spd.Distance(b, p, q) }, []float64{math.Sqrt(2.441201568598821)}},
	"transport": {spd.Transport, []float64{
		0.3535302947227921, -0.752004305717996, -0.1392585312268423, -0.752004305717996, 1.1505320880882988, 0.9880910861882582,
		-0.1392585312268423, 0.9880910861882582, -0.5193330862101402,
	}},
	"mean from 1": {func(b *ir.Builder, p, q, _ ir.Value) ir.Value {
		return spd.MeanStep(b, unit(b), points(b, p, q), ir.Value{}, 1)
	}, []float64{
		1.2710288230425559, 0.0758237355752433, 0.18689917143556087, 0.0758237355752433, 1.8329537725960994, 0.00178656651364126,
		0.18689917143556087, 0.00178656651364126, 2.1878529010809973,
	}},
	"half a step with weights": {func(b *ir.Builder, p, q, _ ir.Value) ir.Value {
		return spd.MeanStep(b, unit(b), points(b, p, q), ops.Literal(b, ir.Floats(ir.F64, []float64{.2, .5, .3})), 0.5)
	}, []float64{
		1.0818401527769341, -0.0096104189597512, 0.0892049038071347, -0.0096104189597512, 1.3990645727051736, 0.0529598303607545,
		0.0892049038071347, 0.0529598303607545, 1.574722496067715,
	}},
}

func unit(b *ir.Builder) ir.Value { return ops.Literal(b, matrix(1, 0, 0, 0, 1, 0, 0, 0, 1)) }

func points(b *ir.Builder, p, q ir.Value) ir.Value {
	return ops.Stack(b, 0, p, q, ops.Literal(b, matrix(1, 0, 0, 0, 2, 0, 0, 0, 3)))
}

func build(t *testing.T, f func(b *ir.Builder, p, q, v ir.Value) ir.Value) *ir.Graph {
	t.Helper()
	g, err := ir.Build("g", func(b *ir.Builder) {
		in := func(name string) ir.Value { return b.Input(name, ir.F64, ir.Dims(3, 3)...) }
		b.Output("y", f(b, in("p"), in("q"), in("v")))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGeometryIsThatOfSciPy(t *testing.T) {
	for name, c := range graphs {
		t.Run(name, func(t *testing.T) {
			g, in := build(t, c.f), map[string]*ir.Array{"p": p, "q": q, "v": v}
			out, err := ir.Eval(g, in, ir.EvalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if got := out[0].F[i]; !(math.Abs(got-want) <= 1e-12) {
					t.Errorf("element %d is %v, want %v", i, got, want)
				}
			}
			if err := gradcheck.Check(g, in, gradcheck.Options{Order: 2, Tol: 1e-6}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGeometryAtEqualPoints takes q = p, where the eigenvalues of p⁻¹·q are equal: the
// squared distance is 0 with a gradient of 0, and its Hessian is twice the metric.
func TestGeometryAtEqualPoints(t *testing.T) {
	g := build(t, func(b *ir.Builder, p, _, v ir.Value) ir.Value { return spd.SquaredDistance(b, p, spd.Exp(b, p, v)) })
	in := map[string]*ir.Array{"p": p, "q": q, "v": ir.NewArray(ir.F64, 3, 3)}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(out[0].F[0]) > 1e-20 {
		t.Errorf("a distance of %v from a point to itself", out[0].F[0])
	}
	if err := gradcheck.Check(g, in, gradcheck.Options{Order: 2, Tol: 1e-6}); err != nil {
		t.Error(err)
	}
}
