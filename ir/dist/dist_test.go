package dist_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dist"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

type golden struct {
	Values map[string]struct {
		X, Quantiles, Means, Variances []float64
		LogProb                        []*float64 // nil is −∞
		Entropy, Mean, Variance        *float64
	}
	Divergences map[string]float64
	Integers    [][]int32
	Slopes      [][3]float64
}

func read(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// pair makes a distribution and, of other parameters, one for divergences.
type pair func(c func(x ...float64) ir.Value) (p, q dist.Distribution)

// distributions are those of testdata/values.py. The parameters are inputs' values, for derivatives.
var distributions = map[string]pair{
	"normal": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Normal{Loc: c(0.7), Scale: c(1.3)}, dist.Normal{Loc: c(0.2), Scale: c(0.6)}
	},
	"laplace": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Laplace{Loc: c(0.7), Scale: c(1.3)}, dist.Laplace{Loc: c(0.2), Scale: c(0.6)}
	},
	"logistic": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Logistic{Loc: c(0.7), Scale: c(1.3)}, nil
	},
	"gumbel": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Gumbel{Loc: c(0.7), Scale: c(1.3)}, nil
	},
	"uniform": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Uniform{Low: c(-0.5), High: c(1.5)}, dist.Uniform{Low: c(-1), High: c(2.5)}
	},
	"studentT": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.StudentT{Freedom: c(4.5), Loc: c(0.7), Scale: c(1.3)}, nil
	},
	"truncatedNormal": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.TruncatedNormal{Loc: c(0.7), Scale: c(1.3), Low: c(-0.5), High: c(3)}, nil
	},
	"exponential": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Exponential{Rate: c(1.7)}, dist.Exponential{Rate: c(0.6)}
	},
	"gamma": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Gamma{Shape: c(2.3), Rate: c(1.7)}, dist.Gamma{Shape: c(0.6), Rate: c(0.9)}
	},
	"small gamma": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Gamma{Shape: c(0.4), Rate: c(1.7)}, nil
	},
	"beta": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Beta{A: c(2.3), B: c(0.7)}, dist.Beta{A: c(1.2), B: c(3)}
	},
	"bernoulli": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Bernoulli{Logit: c(0.8)}, dist.Bernoulli{Logit: c(-0.4)}
	},
	"poisson": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Poisson{Rate: c(3.7)}, dist.Poisson{Rate: c(5)}
	},
	"binomial": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Binomial{Count: 9, P: c(0.3)}, dist.Binomial{Count: 9, P: c(0.45)}
	},
	"dirichlet": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Dirichlet{Concentration: c(0.4, 2, 3.5)}, dist.Dirichlet{Concentration: c(1, 0.5, 2)}
	},
	"categorical": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Categorical{Logits: c(0.3, -1.2, 0.9, 0)}, dist.Categorical{Logits: c(1, 0, -1, 0.5)}
	},
	"multinomial": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Multinomial{Count: 9, Logits: c(0.3, -1.2, 0.9, 0)}, nil
	},
	"mixture": func(c func(x ...float64) ir.Value) (p, q dist.Distribution) {
		return dist.Mixture{Logits: c(math.Log(0.3), math.Log(0.7)), Components: dist.Normal{Loc: c(-1, 2), Scale: c(0.5, 1.5)}}, nil
	},
}

// constants returns a maker of constants of rank 0, or 1 for several numbers.
func constants(b *ir.Builder, d ir.DType) func(x ...float64) ir.Value {
	return func(x ...float64) ir.Value {
		if len(x) == 1 {
			return ops.Const(b, d, x[0])
		}
		return ops.Literal(b, ir.Floats(d, x, len(x)))
	}
}

func eval(t *testing.T, in map[string]*ir.Array, f func(b *ir.Builder)) []*ir.Array {
	t.Helper()
	g, err := ir.Build("dist", f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if got != want && !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestDensitiesAndMomentsAgreeWithSciPy(t *testing.T) {
	for name, want := range read(t).Values {
		for d, tol := range map[ir.DType]float64{ir.F32: 2e-5, ir.F64: 1e-12} {
			out := eval(t, nil, func(b *ir.Builder) {
				c := constants(b, d)
				p, _ := distributions[name](c)
				x := ops.Literal(b, ir.Floats(d, want.X, len(want.X)))
				if name == "categorical" {
					x = ops.Convert(b, x, ir.I32)
				}
				b.Output("logProb", p.LogProb(b, x))
				if want.Entropy != nil {
					b.Output("entropy", p.Entropy(b))
				}
				if name != "categorical" {
					b.Output("mean", p.Mean(b))
					b.Output("variance", p.Variance(b))
				}
			})
			what := fmt.Sprint(name, " ", d)
			for i, w := range want.LogProb {
				if w == nil {
					w = new(float64)
					*w = math.Inf(-1)
				}
				near(t, what+" log p", out[0].F[i], *w, tol)
			}
			out = out[1:]
			if want.Entropy != nil {
				near(t, what+" entropy", out[0].F[0], *want.Entropy, tol)
				out = out[1:]
			}
			for i := range want.Means {
				near(t, what+" mean", out[0].F[i], want.Means[i], tol)
				near(t, what+" variance", out[1].F[i], want.Variances[i], tol)
			}
			if want.Mean != nil {
				near(t, what+" mean", out[0].F[0], *want.Mean, tol)
				near(t, what+" variance", out[1].F[0], *want.Variance, tol)
			}
		}
	}
}

func TestDivergencesAgreeWithPyTorch(t *testing.T) {
	want := read(t).Divergences
	for name, make := range distributions {
		w, has := want[name]
		if !has {
			continue
		}
		out := eval(t, nil, func(b *ir.Builder) {
			p, q := make(constants(b, ir.F64))
			b.Output("kl", dist.KL(b, p, q))
			b.Output("self", dist.KL(b, p, p))
		})
		near(t, name, out[0].F[0], w, 1e-12)
		near(t, name+" with itself", out[1].F[0], 0, 1e-14)
	}
}

func key(b *ir.Builder) ir.Value { return ops.Key(b, 42) }

func TestIntegersAreThoseOfJAX(t *testing.T) {
	for _, row := range read(t).Integers {
		out := eval(t, nil, func(b *ir.Builder) { b.Output("x", dist.RandInt(b, key(b), row[0], row[1], ir.N(6))) })
		for i, x := range out[0].I {
			if x != int64(row[2+i]) {
				t.Errorf("of %v: number %d is %d", row, i, x)
			}
		}
	}
}

const many = 3000

// TestNumbersHaveTheirDistribution compares the moments of drawn numbers, and how many are below the quantiles,
// by the bound of Kolmogorov and Smirnov's test at the level of 0.1 %. The keys are fixed.
func TestNumbersHaveTheirDistribution(t *testing.T) {
	for name, want := range read(t).Values {
		out := eval(t, nil, func(b *ir.Builder) {
			p, _ := distributions[name](constants(b, ir.F32))
			b.Output("x", ops.Convert(b, p.Sample(b, key(b), ir.N(many)), ir.F64))
		})
		x := out[0].F
		width := len(x) / many
		for j := range width {
			column := make([]float64, many)
			for i := range column {
				column[i] = x[i*width+j]
			}
			what := fmt.Sprint(name, " ", j)
			for i, q := range want.Quantiles {
				below := 0.
				for _, v := range column {
					if v < q {
						below += 1. / many
					}
				}
				if d := math.Abs(below - 0.05*float64(i+1)); !(d <= 1.95/math.Sqrt(many)) {
					t.Errorf("%s: %v of the numbers are below quantile %v", what, below, 0.05*float64(i+1))
				}
			}
			var wantMean, wantVariance float64
			switch {
			case want.Means != nil:
				wantMean, wantVariance = want.Means[j], want.Variances[j]
			case want.Mean != nil:
				wantMean, wantVariance = *want.Mean, *want.Variance
			default: // classes
				continue
			}
			mean, variance := moments(column)
			near(t, what+" mean", mean, wantMean, 4*math.Sqrt(wantVariance/many))
			near(t, what+" variance", variance, wantVariance, 0.25)
		}
	}
}

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

func TestClassesHaveTheirProbabilities(t *testing.T) {
	out := eval(t, nil, func(b *ir.Builder) {
		p, _ := distributions["categorical"](constants(b, ir.F32))
		b.Output("x", p.Sample(b, key(b), ir.N(many)))
		b.Output("p", ops.Exp(b, p.LogProb(b, ops.Literal(b, ir.Ints(ir.I32, []int64{0, 1, 2, 3}, 4)))))
	})
	for class, p := range out[1].F {
		count := 0.
		for _, x := range out[0].I {
			if x == int64(class) {
				count++
			}
		}
		near(t, fmt.Sprint("class ", class), count/many, p, 4*math.Sqrt(p*(1-p)/many))
	}
}

func TestSlopesOfQuantilesAgreeWithSciPy(t *testing.T) {
	for _, row := range read(t).Slopes {
		out := eval(t, nil, func(b *ir.Builder) {
			b.Output("slope", special.GammaQuantileSlope(b, ops.Const(b, ir.F64, row[0]), ops.Const(b, ir.F64, row[1])))
		})
		near(t, fmt.Sprint(row), out[0].F[0], row[2], 1e-7)
	}
}

// TestDerivativesOfNumbers compares the mean derivative of numbers with the derivative of the mean.
func TestDerivativesOfNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		parameters []float64
		make       func(p []ir.Value) dist.Distribution
		want       []float64
		tol        float64
	}{
		"normal":   {[]float64{0.7, 1.3}, func(p []ir.Value) dist.Distribution { return dist.Normal{Loc: p[0], Scale: p[1]} }, []float64{1, 0}, 0.2},
		"logistic": {[]float64{0.7, 1.3}, func(p []ir.Value) dist.Distribution { return dist.Logistic{Loc: p[0], Scale: p[1]} }, []float64{1, 0}, 0.4},
		"gamma":    {[]float64{2.3, 1.7}, func(p []ir.Value) dist.Distribution { return dist.Gamma{Shape: p[0], Rate: p[1]} }, []float64{1 / 1.7, -2.3 / 1.7 / 1.7}, 0.15},
		"beta":     {[]float64{2.3, 0.7}, func(p []ir.Value) dist.Distribution { return dist.Beta{A: p[0], B: p[1]} }, []float64{0.7 / 9, -2.3 / 9}, 0.05},
		"truncated": {[]float64{0.7, 1.3, -0.5, 3}, func(p []ir.Value) dist.Distribution {
			return dist.TruncatedNormal{Loc: p[0], Scale: p[1], Low: p[2], High: p[3]}
		}, nil, 0.1},
	} {
		var wrt []string
		in := map[string]*ir.Array{}
		graph := func(of func(b *ir.Builder, d dist.Distribution) ir.Value) *ir.Graph {
			wrt = nil
			g, err := ir.Build("mean", func(b *ir.Builder) {
				var p []ir.Value
				for i, x := range c.parameters {
					port := fmt.Sprint("p", i)
					wrt, in[port] = append(wrt, port), ir.Float(ir.F32, x)
					p = append(p, b.Input(port, ir.F32))
				}
				b.Output("mean", of(b, c.make(p)))
			})
			if err != nil {
				t.Fatal(name, err)
			}
			g, err = autodiff.GradWith(g, autodiff.GradOptions{Loss: "mean", Wrt: wrt, Missing: autodiff.MissingIsZero})
			if err != nil {
				t.Fatal(name, err)
			}
			return g
		}
		slopes := func(g *ir.Graph) (out []float64) {
			values, err := ir.Eval(g, in, ir.EvalOptions{})
			if err != nil {
				t.Fatal(name, err)
			}
			for _, v := range values[1:] {
				out = append(out, v.F[0])
			}
			return out
		}
		got := slopes(graph(func(b *ir.Builder, d dist.Distribution) ir.Value { return ops.Mean(b, d.Sample(b, key(b), ir.N(200))) }))
		want := slopes(graph(func(b *ir.Builder, d dist.Distribution) ir.Value { return d.Mean(b) }))
		for i := range c.want {
			near(t, name+" mean", want[i], c.want[i], 1e-6)
		}
		for i := range want {
			near(t, fmt.Sprint(name, " by ", i), got[i], want[i], c.tol)
		}
	}
}

// TestNumbersOfSmallShapes has shapes of which f32 holds few numbers of the gamma distribution: e^(−103) is
// the smallest.
func TestNumbersOfSmallShapes(t *testing.T) {
	out := eval(t, nil, func(b *ir.Builder) {
		small := func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{dist.Beta{A: in[0], B: in[1]}.Sample(b, key(b), ir.N(many))}
		}
		p := []ir.Value{ops.Const(b, ir.F32, 0.05), ops.Const(b, ir.F32, 0.02)}
		b.Output("beta", small(b, p)[0])
		b.Output("slope", autodiff.GradOf(b, func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Mean(b, small(b, in)[0])} }, p)[0])
		b.Output("dirichlet", ops.ReduceSum(b, dist.Dirichlet{Concentration: ops.Const(b, ir.F32, 1e-3, ir.N(3))}.Sample(b, key(b), ir.N(50)), -1))
	})
	mean, variance := moments(out[0].F)
	near(t, "mean", mean, 0.05/0.07, 4*math.Sqrt(variance/many))
	near(t, "variance", variance, 0.05*0.02/(0.07*0.07*1.07), 0.02)
	near(t, "slope", out[1].F[0], 0.02/(0.07*0.07), 0.4)
	for _, sum := range out[2].F {
		near(t, "sum of a vector", sum, 1, 1e-6)
	}
}

// TestSecondDerivativesOfNumbers compares with differences of scipy.special.gammaincinv (1.17.1) at the numbers'
// probabilities.
func TestSecondDerivativesOfNumbers(t *testing.T) {
	for shape, want := range map[float64]float64{0.7: 0.325046, 2.5: -0.022365} {
		out := eval(t, nil, func(b *ir.Builder) {
			sample := func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{dist.Gamma{Shape: in[0], Rate: ops.OnesLike(b, in[0])}.Sample(b, ops.Key(b, 7))}
			}
			slope := func(b *ir.Builder, in []ir.Value) []ir.Value { return autodiff.GradOf(b, sample, in) }
			b.Output("second", autodiff.GradOf(b, slope, []ir.Value{ops.Const(b, ir.F64, shape)})[0])
		})
		near(t, fmt.Sprint("of shape ", shape), out[0].F[0], want, 2e-6)
	}
}

// TestNarrowTypes has probabilities below the distances of uniform numbers of these types, and more
// classes than they have.
func TestNarrowTypes(t *testing.T) {
	out := eval(t, nil, func(b *ir.Builder) {
		rare := dist.Bernoulli{Logit: ops.Const(b, ir.BF16, -5)}.Sample(b, key(b), ir.N(20000))
		b.Output("rare", ops.ReduceSum(b, ops.Convert(b, rare, ir.F32)))
		one := ops.Const(b, ir.F16, 1)
		tail := dist.TruncatedNormal{Loc: ops.ZerosLike(b, one), Scale: one, Low: ops.Const(b, ir.F16, 6), High: ops.Const(b, ir.F16, 7)}
		b.Output("tail", ops.Mean(b, ops.Convert(b, tail.Sample(b, key(b), ir.N(500)), ir.F32)))
		logits := ops.Iota(b, ir.F32, 0, ir.N(300))
		b.Output("class", dist.Categorical{Logits: logits}.LogProb(b, ops.Const(b, ir.U8, 5)))
		b.Output("same", dist.Categorical{Logits: logits}.LogProb(b, ops.Const(b, ir.I32, 5)))
	})
	near(t, "successes", out[0].F[0], 20000*0.0066929, 4*math.Sqrt(20000*0.0066929))
	near(t, "mean", out[1].F[0], 6.158, 0.04) // scipy.stats.truncnorm (1.17.1)
	near(t, "log p", out[2].F[0], out[3].F[0], 0)
}

// TestEntropyOfACertainResult has probabilities that are 1, nearly 1, and one half, where the second derivative
// by the logit is −1/4.
func TestEntropyOfACertainResult(t *testing.T) {
	out := eval(t, nil, func(b *ir.Builder) {
		entropy := func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{dist.Bernoulli{Logit: in[0]}.Entropy(b)}
		}
		x := ops.Literal(b, ir.Floats(ir.F32, []float64{math.Inf(1), math.Inf(-1), -20}, 3))
		b.Output("entropy", entropy(b, []ir.Value{x})[0])
		slope := func(b *ir.Builder, in []ir.Value) []ir.Value { return autodiff.GradOf(b, entropy, in) }
		b.Output("second", autodiff.GradOf(b, slope, []ir.Value{ops.Const(b, ir.F32, 0)})[0])
	})
	for i, want := range []float64{0, 0, 21 * math.Exp(-20)} {
		near(t, "entropy", out[0].F[i]*1e9, want*1e9, 1e-4)
	}
	near(t, "second derivative", out[1].F[0], -0.25, 1e-6)
}

func TestNaNHasNoProbability(t *testing.T) {
	for name, make := range distributions {
		if name == "bernoulli" || name == "categorical" || name == "poisson" || name == "binomial" || name == "multinomial" {
			continue // of integers
		}
		out := eval(t, nil, func(b *ir.Builder) {
			p, _ := make(constants(b, ir.F32))
			b.Output("y", p.LogProb(b, ops.Const(b, ir.F32, math.NaN(), ir.N(3))))
		})
		if y := out[0].F[0]; !math.IsNaN(y) {
			t.Errorf("%s: log p of NaN is %v", name, y)
		}
	}
}

func TestMissingFormulasAreErrors(t *testing.T) {
	for what, f := range map[string]func(b *ir.Builder){
		"entropy": func(b *ir.Builder) { b.Output("y", dist.Poisson{Rate: ops.Const(b, ir.F32, 1)}.Entropy(b)) },
		"kl": func(b *ir.Builder) {
			one := ops.Const(b, ir.F32, 1)
			b.Output("y", dist.KL(b, dist.Normal{Loc: one, Scale: one}, dist.Laplace{Loc: one, Scale: one}))
		},
	} {
		if _, err := ir.Build(what, f); !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, f := range map[string]func(b *ir.Builder){
		"range": func(b *ir.Builder) { b.Output("y", dist.RandInt(b, key(b), 3, 3)) },
		"count": func(b *ir.Builder) {
			b.Output("y", dist.Binomial{Count: -1, P: ops.Const(b, ir.F32, 1)}.Sample(b, key(b)))
		},
	} {
		if _, err := ir.Build(what, f); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
