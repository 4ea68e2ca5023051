package autodiff_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// eachRandomLoss runs f on random graphs that end in one number: a weighted sum
// of all float results, by all float ports.
func eachRandomLoss(t *testing.T, n int, f func(t *testing.T, rng *rand.Rand, g *ir.Graph, in values, wrt []string)) {
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			inner, in := irtest.RandomGraph(rng, 3+seed%25)
			var wrt []string
			g := build(t, func(b *ir.Builder) {
				ports := make([]ir.Value, len(inner.Ports()))
				for i, p := range inner.Ports() {
					ports[i] = b.Port(ir.InputPort, p.Name, p.Value.Type())
					if p.Value.DType().IsFloat() {
						wrt = append(wrt, p.Name)
					}
				}
				loss := ops.Zeros(b, ir.F32)
				for i, v := range b.Splice(inner, ports) {
					if v.DType().IsFloat() {
						sum := ops.ReduceSum(b, ops.Reshape(b, v, v.Shape().Size()), 0)
						loss = ops.Add(b, loss, ops.Mul(b, sum, ops.ConstLike(b, sum, float64(1+i))))
					}
				}
				b.Output("loss", loss)
			})
			f(t, rng, g, in, wrt)
		})
	}
}

// directions draws one for each port, under the name of its tangent.
func directions(rng *rand.Rand, in values, wrt []string) values {
	out := values{}
	for _, name := range wrt {
		a := in[name].Clone()
		for i := range a.F {
			a.F[i] = rng.Float64()*2 - 1
		}
		out[autodiff.TangentName(name)] = a
	}
	return out
}

func with(in, more values) values {
	out := values{}
	maps.Copy(out, in)
	maps.Copy(out, more)
	return out
}

// dot is the sum of products of the results named by one function and the
// directions of the same ports.
func dot(got values, name func(port string) string, direction values, wrt []string) float64 {
	sum := 0.0
	for _, port := range wrt {
		for i, x := range got[name(port)].F {
			sum += x * direction[autodiff.TangentName(port)].F[i]
		}
	}
	return sum
}

func randomGrad(t *testing.T, g *ir.Graph, wrt []string) *ir.Graph {
	t.Helper()
	grad, err := autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss", Wrt: wrt, Missing: autodiff.MissingIsZero})
	return must(t, grad, err)
}

func TestRandomGraphsAgreeForwardAndReverse(t *testing.T) {
	eachRandomLoss(t, 150, func(t *testing.T, rng *rand.Rand, g *ir.Graph, in values, wrt []string) {
		jvp, err := autodiff.JVP(g, wrt...)
		v := directions(rng, in, wrt)
		forward := eval(t, must(t, jvp, err), with(in, v))[autodiff.TangentName("loss")].F[0]
		reverse := dot(eval(t, randomGrad(t, g, wrt), in), autodiff.GradName, v, wrt)
		if !(math.Abs(forward-reverse) <= 1e-9*max(1, math.Abs(forward))) {
			t.Errorf("forward %v, reverse %v", forward, reverse)
		}
	})
}

// The passes fold in the element type, where the reference does not round.
func TestRandomGradientsSurvivePasses(t *testing.T) {
	eachRandomLoss(t, 60, func(t *testing.T, _ *rand.Rand, g *ir.Graph, in values, wrt []string) {
		grad := randomGrad(t, g, wrt)
		optimised, err := passes.Run(grad, passes.Options{Verify: ir.Verify})
		want, got := eval(t, grad, in), eval(t, must(t, optimised, err), in)
		for name, a := range want {
			checkFloats(t, name, got[name], a.F, 1e-4)
		}
	})
}

func TestRandomGraphsBatchAsALoop(t *testing.T) {
	eachRandomLoss(t, 80, func(t *testing.T, rng *rand.Rand, g *ir.Graph, in values, _ []string) {
		axes := map[string]int{}
		for i, p := range g.Ports() {
			if i == 0 || rng.IntN(2) == 0 {
				axes[p.Name] = 0
			}
		}
		checkVmap(t, g, in, axes)
	})
}

// The second derivative is symmetric: ⟨u, H·v⟩ = ⟨v, H·u⟩.
func TestRandomSecondDerivativesAreSymmetric(t *testing.T) {
	eachRandomLoss(t, 60, func(t *testing.T, rng *rand.Rand, g *ir.Graph, in values, wrt []string) {
		jvp, err := autodiff.JVP(randomGrad(t, g, wrt), wrt...)
		second := must(t, jvp, err)
		u, v := directions(rng, in, wrt), directions(rng, in, wrt)
		name := func(port string) string { return autodiff.TangentName(autodiff.GradName(port)) }
		vHu := dot(eval(t, second, with(in, u)), name, v, wrt)
		uHv := dot(eval(t, second, with(in, v)), name, u, wrt)
		if !(math.Abs(vHu-uHv) <= 1e-8*max(1, math.Abs(vHu))) {
			t.Errorf("⟨v, H·u⟩ = %v, ⟨u, H·v⟩ = %v", vHu, uHv)
		}
	})
}
