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

// distributionOf returns the distribution of a name with numbers as parameters, of which Count of Binomial and
// Multinomial is the first.
func distributionOf(b *ir.Builder, d ir.DType, name string, p []float64) dist.Distribution {
	c := constants(b, d)
	switch name {
	case "dirichlet":
		return dist.Dirichlet{Concentration: c(p...)}
	case "binomial":
		return dist.Binomial{Count: int(p[0]), P: c(p[1])}
	case "multinomial":
		return dist.Multinomial{Count: int(p[0]), Logits: c(p[1:]...)}
	}
	values := make([]ir.Value, len(p))
	for i, x := range p {
		values[i] = c(x)
	}
	return pairs[name].of(values)
}

// TestDensitiesAndDivergencesOfLargeParameters compares with values of mpmath: see testdata/large.py. The slack of a
// value is what half a unit of the last place of f32 in each number changes.
func TestDensitiesAndDivergencesOfLargeParameters(t *testing.T) {
	var rows []struct {
		Name             string
		Parameters, X, Q []float64
		Value, Slack     float64
	}
	data, err := os.ReadFile("testdata/large.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for d, tol := range map[ir.DType]float64{ir.F32: 1e-5, ir.F64: 1e-13} {
		for i, a := range eval(t, nil, func(b *ir.Builder) {
			for i, row := range rows {
				p := distributionOf(b, d, row.Name, row.Parameters)
				y := ir.Value{}
				if row.Q != nil {
					y = dist.KL(b, p, distributionOf(b, d, row.Name, row.Q))
				} else {
					y = p.LogProb(b, constants(b, d)(row.X...))
				}
				b.Output(fmt.Sprint("y", i), y)
			}
		}) {
			row := rows[i]
			slack := 3 * row.Slack * d.Epsilon() / ir.F32.Epsilon()
			if got := a.F[0]; !(math.Abs(got-row.Value) <= tol*math.Abs(row.Value)+slack) {
				t.Errorf("%s %s%v at %v%v is %v, want %v: a relative error of %.2g, slack %.2g", d, row.Name, row.Parameters, row.X, row.Q, got, row.Value, math.Abs(got/row.Value-1), slack)
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
			logits := ops.Stack(b, 0, x, ops.ZerosLike(b, x))
			return dist.Multinomial{Count: 2000, Logits: logits}.LogProb(b, ops.Literal(b, ir.Ints(ir.I32, []int64{900, 1100}, 2)))
		}, []float64{-20, -0.2, 1, 20}},
		"kl of gammas by the first shape": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.KL(b, dist.Gamma{Shape: x, Rate: one(b, x)}, dist.Gamma{Shape: at(b, x, 1e4), Rate: one(b, x)})
		}, []float64{1e-3, 1.5, 9.9e3, 1e4, 3e4}},
		"kl of betas by the second a": {func(b *ir.Builder, x ir.Value) ir.Value {
			return dist.KL(b, dist.Beta{A: at(b, x, 2e4), B: at(b, x, 3e4)}, dist.Beta{A: x, B: at(b, x, 3e4)})
		}, []float64{1e-3, 1.5, 2e4, 2.1e4}},
	} {
		for _, x := range c.at {
			h := 2e-3 * x
			if name == "multinomial by a logit" {
				h = 2e-3
			}
			out := eval(t, nil, func(b *ir.Builder) {
				f := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{c.f(b, in[0])} }
				slope := func(b *ir.Builder, in []ir.Value) []ir.Value { return autodiff.GradOf(b, f, in) }
				b.Output("slope", slope(b, []ir.Value{ops.Const(b, ir.F64, x)})[0])
				b.Output("second", autodiff.GradOf(b, slope, []ir.Value{ops.Const(b, ir.F64, x)})[0])
				for i := range 7 {
					b.Output(fmt.Sprint(i), c.f(b, ops.Const(b, ir.F64, x+float64(i-3)*h)))
				}
			})
			v := func(i int) float64 { return out[i+5].F[0] }
			slope := (45*(v(1)-v(-1)) - 9*(v(2)-v(-2)) + v(3) - v(-3)) / (60 * h)
			second := (270*(v(1)+v(-1)) - 27*(v(2)+v(-2)) + 2*(v(3)+v(-3)) - 490*v(0)) / (180 * h * h)
			what, size := fmt.Sprint(name, " at ", x), 1e-13*math.Abs(v(0))+1e-14
			for i, want := range []float64{slope, second} {
				tol := 1e-7*math.Abs(want) + size/h*math.Pow(h, -float64(i))*4
				if got := out[i].F[0]; !(math.Abs(got-want) <= tol) {
					t.Errorf("%s: derivative %d is %v, want %v within %.2g", what, i+1, got, want, tol)
				}
			}
		}
	}
}
