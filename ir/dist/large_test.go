package dist_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dist"
	"github.com/rlx-go/rlx/ir/ops"
)

// row is a density at X, or a divergence from a distribution with parameters Q.
type row struct {
	Name             string
	Parameters, X, Q []float64
	Value, Slack     float64
}

// distributionOf returns the distribution of a name with numbers as parameters, of which Count of Binomial and
// Multinomial is the first; of other names a batch, of a list of parameters each.
func distributionOf(c func(x ...float64) ir.Value, name string, p [][]float64) dist.Distribution {
	switch name {
	case "dirichlet":
		return dist.Dirichlet{Concentration: c(p[0]...)}
	case "binomial":
		return dist.Binomial{Count: int(p[0][0]), P: c(p[0][1])}
	case "multinomial":
		return dist.Multinomial{Count: int(p[0][0]), Logits: c(p[0][1:]...)}
	}
	return pairs[name].of(columns(c, p))
}

// columns returns the first numbers of lists, then the second ones, and so on.
func columns(c func(x ...float64) ir.Value, lists [][]float64) (out []ir.Value) {
	for i := range lists[0] {
		var of []float64
		for _, list := range lists {
			of = append(of, list[i])
		}
		out = append(out, c(of...))
	}
	return out
}

// batches joins the rows of a name that follow each other, where their distributions have a batch.
func batches(rows []row) (out [][]row) {
	for _, r := range rows {
		last := len(out) - 1
		joins := last >= 0 && out[last][0].Name == r.Name && (out[last][0].Q == nil) == (r.Q == nil)
		if joins && r.Name != "dirichlet" && r.Name != "binomial" && r.Name != "multinomial" {
			out[last] = append(out[last], r)
		} else {
			out = append(out, []row{r})
		}
	}
	return out
}

// TestDensitiesAndDivergencesOfLargeParameters compares with values of mpmath: see testdata/large.py. The slack of a
// value is what half a unit of the last place of f32 in each number changes.
func TestDensitiesAndDivergencesOfLargeParameters(t *testing.T) {
	var rows []row
	data, err := os.ReadFile("testdata/large.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for d, tol := range map[ir.DType]float64{ir.F32: 1e-5, ir.F64: 1e-12} {
		var got []float64
		for _, a := range eval(t, nil, func(b *ir.Builder) {
			c := constants(b, d)
			for i, batch := range batches(rows) {
				var p, q, x [][]float64
				for _, r := range batch {
					p, q, x = append(p, r.Parameters), append(q, r.Q), append(x, r.X)
				}
				of, name := distributionOf(c, batch[0].Name, p), batch[0].Name
				switch {
				case batch[0].Q != nil:
					b.Output(fmt.Sprint("y", i), dist.KL(b, of, distributionOf(c, name, q)))
				case name == "dirichlet" || name == "multinomial":
					b.Output(fmt.Sprint("y", i), of.LogProb(b, c(x[0]...)))
				default:
					b.Output(fmt.Sprint("y", i), of.LogProb(b, columns(c, x)[0]))
				}
			}
		}) {
			got = append(got, a.F...)
		}
		for i, r := range rows {
			slack := 3 * r.Slack * d.Epsilon() / ir.F32.Epsilon()
			if !(math.Abs(got[i]-r.Value) <= tol*math.Abs(r.Value)+slack) {
				t.Errorf("%s %s%v at %v%v is %v, want %v: a relative error of %.2g, slack %.2g", d, r.Name, r.Parameters, r.X, r.Q, got[i], r.Value, math.Abs(got[i]/r.Value-1), slack)
			}
		}
	}
}

// TestDerivativesOfLargeParameters compares first and second derivatives of densities and divergences with
// differences of their values.
func TestDerivativesOfLargeParameters(t *testing.T) {
	one := func(b *ir.Builder, x ir.Value) ir.Value { return ops.OnesLike(b, x) }
	at := func(b *ir.Builder, like ir.Value, x float64) ir.Value { return ops.ConstLike(b, like, x) }
	for name, c := range map[string]struct {
		f  func(b *ir.Builder, x ir.Value) ir.Value
		at []float64
	}{
		"gamma by shape": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.Gamma{Shape: x, Rate: one(b, x)}.LogProb(b, at(b, x, 3))
		}, []float64{1e-3, 1.5, 2.5, 11, 1e4}},
		"gamma by x": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.Gamma{Shape: at(b, x, 1e4), Rate: at(b, x, 2)}.LogProb(b, x)
		}, []float64{1, 4900, 5000, 9000}},
		"beta by a": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.Beta{A: x, B: at(b, x, 3e4)}.LogProb(b, at(b, x, 0.4))
		}, []float64{1e-3, 1.5, 2e4}},
		"poisson by rate": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.Poisson{Rate: x}.LogProb(b, ops.Const(b, ir.I32, 100))
		}, []float64{1, 95, 100, 300}},
		"poisson of 0 by rate": {func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, x, dist.Poisson{Rate: x}.LogProb(b, ops.Const(b, ir.I32, 0)))
		}, []float64{1e-3, 7}},
		"binomial by p": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.Binomial{Count: 20000, P: x}.LogProb(b, ops.Const(b, ir.I32, 6000))
		}, []float64{0.01, 0.3, 0.31, 0.9}},
		"multinomial by a logit": {func(b *ir.Builder, x ir.Value) ir.Value {
			logits := ops.Stack(b, -1, x, ops.ZerosLike(b, x))
			return dist.Multinomial{Count: 2000, Logits: logits}.LogProb(b, ops.Literal(b, ir.Ints(ir.I32, []int64{900, 1100}, 2)))
		}, []float64{-20, -0.2, 1, 20}},
		"kl of gammas by the first shape": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.KL(b, dist.Gamma{Shape: x, Rate: one(b, x)}, dist.Gamma{Shape: at(b, x, 1e4), Rate: one(b, x)})
		}, []float64{1e-3, 1.5, 9.9e3, 1e4, 3e4}},
		"kl of betas by the second a": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.KL(b, dist.Beta{A: at(b, x, 2e4), B: at(b, x, 3e4)}, dist.Beta{A: x, B: at(b, x, 3e4)})
		}, []float64{1e-3, 1.5, 2e4, 2.1e4}},
	} {
		step := func(x float64) float64 {
			if name == "multinomial by a logit" {
				return 2e-3
			}
			return 2e-3 * x
		}
		const points = 7
		out := eval(t, nil, func(b *ir.Builder) {
			f := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.ReduceSum(b, c.f(b, in[0]))} }
			slope := func(b *ir.Builder, in []ir.Value) []ir.Value { return autodiff.GradOf(b, f, in) }
			sum := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.ReduceSum(b, slope(b, in)[0])} }
			var beside []float64
			for _, x := range c.at {
				for i := range points {
					beside = append(beside, x+float64(i-points/2)*step(x))
				}
			}
			in := []ir.Value{ops.Literal(b, ir.Floats(ir.F64, c.at, len(c.at)))}
			b.Output("values", c.f(b, ops.Literal(b, ir.Floats(ir.F64, beside, len(beside)))))
			b.Output("slopes", slope(b, in)[0])
			b.Output("second", autodiff.GradOf(b, sum, in)[0])
		})
		for k, x := range c.at {
			h, v := step(x), func(i int) float64 { return out[0].F[points*k+points/2+i] }
			slope := (45*(v(1)-v(-1)) - 9*(v(2)-v(-2)) + v(3) - v(-3)) / (60 * h)
			second := (270*(v(1)+v(-1)) - 27*(v(2)+v(-2)) + 2*(v(3)+v(-3)) - 490*v(0)) / (180 * h * h)
			for i, want := range []float64{slope, second} {
				tol := 1e-7*math.Abs(want) + 4*(1e-13*math.Abs(v(0))+1e-14)*math.Pow(h, -float64(i+1))
				if got := out[i+1].F[k]; !(math.Abs(got-want) <= tol) {
					t.Errorf("%s at %v: derivative %d is %v, want %v within %.2g", name, x, i+1, got, want, tol)
				}
			}
		}
	}
}
