package fusion_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// moments is the graph of the mean and the variance of x, without composites.
func moments(t *testing.T, x []int, axes ...int) *ir.Graph {
	t.Helper()
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(x...)...)
		b.Output("mean", ops.Mean(b, x, axes...))
		b.Output("variance", ops.Var(b, x, 0, axes...))
	})
	g, err := passes.Run(g, passes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMomentsTakeOnePass counts the groups that read the whole of x: one where rows are split over workgroups, whichever axes
// they have, behind one that reads a sample.
func TestMomentsTakeOnePass(t *testing.T) {
	for _, c := range []struct {
		name string
		x    []int
		axes []int
	}{
		{"channels last", []int{64, 56, 56, 64}, []int{0, 1, 2}},
		{"channels first", []int{64, 64, 56, 56}, []int{0, 2, 3}},
		{"all", []int{1 << 22}, []int{0}},
	} {
		o := fusion.DefaultOptions
		o.TensorCores, o.Policy = true, hardware.H200()
		p, err := fusion.Build(moments(t, c.x, c.axes...), o)
		if err != nil {
			t.Fatal(err)
		}
		whole, elements := 0, fusion.Product(c.x)
		for _, item := range p.Items {
			g := item.(*fusion.Group)
			if g.Kind != fusion.ReduceKind {
				t.Errorf("%s: a group of kind %s\n%s", c.name, g.Kind, p)
			}
			if fusion.Product(g.Outer)*fusion.Product(g.Inner) == elements {
				whole++
			}
		}
		if whole != 1 || len(p.Items) != 2 {
			t.Errorf("%s: %d of %d groups read all elements, want 1 of 2\n%s", c.name, whole, len(p.Items), p)
		}
	}
}

// splitPolicy splits every row.
type splitPolicy struct{ fusion.Policy }

// AllowsStages reports false.
func (splitPolicy) AllowsStages(int, int, bool) bool { return false }

// splitRows returns a graph as fusion rewrites it where all rows are split over workgroups.
func splitRows(t *testing.T, g *ir.Graph) *ir.Graph {
	t.Helper()
	o := fusion.DefaultOptions
	o.TensorCores, o.Policy = true, splitPolicy{hardware.Unknown()}
	p, err := fusion.Build(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Graph
}

// TestMomentsInOnePass compares means and variances with those in f64, relative to the variance: also of
// numbers far from 0, of outliers, among the sampled elements too, and of equal ones.
func TestMomentsInOnePass(t *testing.T) {
	const n = 1 << 14
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		at    func(i int) float64
		bound float64
	}{
		{"normal", func(int) float64 { return r.NormFloat64() }, 1e-6},
		{"far from 0", func(int) float64 { return 1000 + r.NormFloat64() }, 1e-4},
		{"an outlier", func(i int) float64 {
			if i == n/2 {
				return 1e6
			}
			return r.NormFloat64()
		}, 1e-5},
		{"outliers at the samples", func(i int) float64 {
			if i%64 >= 28 && i%64 <= 36 {
				return 100 + r.NormFloat64()
			}
			return r.NormFloat64()
		}, 1e-5},
		{"equal", func(int) float64 { return 0.1 }, 1e-12},
		{"infinite", func(i int) float64 { return []float64{1, math.Inf(1)}[i&1] }, 0},
	} {
		x := ir.NewArray(ir.F32, n)
		var sum, squares float64
		for i := range x.F {
			x.F[i] = float64(float32(c.at(i)))
			sum += x.F[i]
		}
		for _, v := range x.F {
			squares += (v - sum/n) * (v - sum/n)
		}
		g := moments(t, []int{n}, 0)
		h := splitRows(t, g)
		if h == g {
			t.Fatalf("%s: the graph is not rewritten", c.name)
		}
		out, err := ir.Eval(h, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		mean, variance := out[0].F[0], out[1].F[0]
		if math.IsInf(sum, 0) {
			if !math.IsInf(mean, 1) || !math.IsNaN(variance) {
				t.Errorf("%s: mean %v, variance %v", c.name, mean, variance)
			}
			continue
		}
		if d := math.Abs(variance-squares/n) / max(squares/n, 1); !(d <= c.bound) {
			t.Errorf("%s: variance %v, want %v: off by %.2g", c.name, variance, squares/n, d)
		}
		if d := math.Abs(mean-sum/n) / max(math.Abs(sum/n), 1); !(d <= 1e-5) {
			t.Errorf("%s: mean %v, want %v", c.name, mean, sum/n)
		}
	}
}
