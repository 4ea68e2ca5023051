package dist_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dist"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFormulasOfExtremeParameters compares, in f32, with values of mpmath: see testdata/extremes.py. A variance
// is compared by its size, a mean by its distance from the lower bound.
func TestFormulasOfExtremeParameters(t *testing.T) {
	var rows []struct {
		Name                    string
		Parameters, X, LogProb  []float64
		Entropy, Mean, Variance *float64
	}
	data, err := os.ReadFile("testdata/extremes.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		what := fmt.Sprint(row.Name, row.Parameters)
		out := map[string]*ir.Array{}
		for i, a := range eval(t, nil, func(b *ir.Builder) {
			var p []ir.Value
			for _, x := range row.Parameters {
				p = append(p, ops.Const(b, ir.F32, x))
			}
			if row.Name == "dirichlet" {
				p = []ir.Value{ops.Stack(b, 0, p...)}
			}
			d := pairs[row.Name].of(p)
			b.Output("entropy", d.Entropy(b))
			if row.Mean != nil {
				b.Output("mean", ops.Sub(b, d.Mean(b), p[2]))
				b.Output("variance", ops.Div(b, d.Variance(b), ops.Const(b, ir.F32, *row.Variance)))
			}
			if row.LogProb != nil {
				b.Output("logProb", d.LogProb(b, ops.Literal(b, ir.Floats(ir.F32, row.X, len(row.X)))))
			}
		}) {
			names := []string{"entropy", "mean", "variance", "logProb"}
			if row.Mean == nil {
				names = []string{"entropy", "logProb"}
			}
			out[names[i]] = a
		}
		near(t, what+" entropy", out["entropy"].F[0], *row.Entropy, 4e-6)
		for i, want := range row.LogProb {
			near(t, what+" log p", out["logProb"].F[i], want, 4e-6)
		}
		if row.Mean != nil {
			low, high := row.Parameters[2], row.Parameters[3]
			near(t, what+" mean", out["mean"].F[0], *row.Mean-low, 1e-6*(high-low)+1e-7*math.Abs(low))
			near(t, what+" variance", out["variance"].F[0], 1, 2e-5)
		}
	}
}

// TestNumbersOfANarrowInterval compares how many f32 numbers are below a tenth of the interval, and so on,
// with the probability, that of the exponential distribution with the slope of the density.
func TestNumbersOfANarrowInterval(t *testing.T) {
	const low, width = 4, 0x1p-12
	for _, slope := range []float64{0, 0.75, -1.5} { // of the density's logarithm, times the width
		out := eval(t, nil, func(b *ir.Builder) {
			c := constants(b, ir.F32)
			scale := 1.
			if slope != 0 { // (low − loc)·width/scale² is the slope
				scale = math.Sqrt(width / math.Abs(slope))
			}
			loc := low - math.Copysign(1, slope)
			if slope == 0 {
				loc = low
			}
			d := dist.TruncatedNormal{Loc: c(loc), Scale: c(scale), Low: c(low), High: c(low + width)}
			b.Output("x", d.Sample(b, key(b), ir.N(many)))
		})
		for i := 1; i < 10; i++ {
			part, below := float64(i)/10, 0.
			for _, x := range out[0].F {
				if x < low || x > low+width {
					t.Fatalf("slope %v: %v is outside", slope, x)
				}
				if x < low+width*part {
					below += 1. / many
				}
			}
			want := part
			if slope != 0 {
				want = math.Expm1(-slope*part) / math.Expm1(-slope)
			}
			if d := math.Abs(below - want); !(d <= 1.95/math.Sqrt(many)) {
				t.Errorf("slope %v: %v of the numbers are below %v of the width, want %v", slope, below, part, want)
			}
		}
	}
}

// TestDivergenceOfACertainResult has logits that are infinite: log(1 + e^∓q) is the divergence from q.
func TestDivergenceOfACertainResult(t *testing.T) {
	inf := math.Inf(1)
	p, q := []float64{inf, -inf, 2, 2, inf, inf, -inf}, []float64{1.5, 1.5, inf, -inf, inf, -inf, -inf}
	want := []float64{math.Log1p(math.Exp(-1.5)), math.Log1p(math.Exp(1.5)), inf, inf, 0, inf, 0}
	out := eval(t, nil, func(b *ir.Builder) {
		c := constants(b, ir.F32)
		b.Output("kl", dist.KL(b, dist.Bernoulli{Logit: c(p...)}, dist.Bernoulli{Logit: c(q...)}))
	})
	for i, w := range want {
		near(t, fmt.Sprint("of logits ", p[i], " and ", q[i]), out[0].F[i], w, 1e-6)
	}
}

// TestDensitiesAtTheEdges has numbers at the bounds of the support, where a logarithm is infinite.
func TestDensitiesAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	out := eval(t, nil, func(b *ir.Builder) {
		c := constants(b, ir.F32)
		b.Output("gamma", dist.Gamma{Shape: c(1, 5, 0.5, 5), Rate: c(2)}.LogProb(b, c(0, 0, 0, -1)))
		b.Output("beta", dist.Beta{A: c(1, 0.5, 3e4, 2, 2), B: c(5, 2, 2, 1, 1)}.LogProb(b, c(0, 0, 0, 1, 2)))
		b.Output("dirichlet", dist.Dirichlet{Concentration: c(1, 2, 3)}.LogProb(b, c(0, 0.5, 0.5)))
		b.Output("poisson", dist.Poisson{Rate: c(0)}.LogProb(b, ops.Literal(b, ir.Ints(ir.I32, []int64{0, 1, -1}, 3))))
		b.Output("binomial", dist.Binomial{Count: 5, P: c(0, 0, 1, 1)}.LogProb(b, ops.Literal(b, ir.Ints(ir.I32, []int64{0, 1, 5, 4}, 4))))
	})
	for i, want := range [][]float64{
		{math.Log(2), -inf, inf, -inf},
		{math.Log(5), inf, -inf, math.Log(2), -inf},
		{math.Log(7.5)},
		{0, -inf, -inf},
		{0, -inf, 0, -inf},
	} {
		for j, w := range want {
			near(t, fmt.Sprint("of distribution ", i, ", log p ", j), out[i].F[j], w, 1e-6)
		}
	}
}
