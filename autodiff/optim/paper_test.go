package optim_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// readPaper reads testdata/paper_steps.json.
func readPaper(t *testing.T) (runs map[string]run) {
	t.Helper()
	data, err := os.ReadFile("testdata/paper_steps.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	return runs
}

func TestOptimizersAgreeWithTheFormulasOfTheirPapers(t *testing.T) {
	for name, opt := range map[string]optim.Optimizer{
		"mars": optim.MARS{}, "soap": optim.SOAP{Every: 3}, "stiefel": optim.Stiefel{Momentum: 0.9},
		"kron": optim.Kron{Every: 3, WeightDecay: 0.02}, "kron diagonal": optim.Kron{Every: 1, Clip: 0.7, Diagonal: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := readPaper(t)[name]
			checkRun(t, ir.F32, opt, optim.Options{}, want, 3e-5)
			checkRun(t, ir.F64, opt, optim.Options{Schedule: optim.Constant(0.05)}, want, 1e-12)
		})
	}
}

// TestSophiaAgreesWithTheFormulasOfItsPaper estimates the curvature before every
// second step. The Hessian of the loss is diagonal: the estimate is exact.
func TestSophiaAgreesWithTheFormulasOfItsPaper(t *testing.T) {
	want := readPaper(t)["sophia"]
	opt := optim.Sophia{}
	s := trainingOf(t, opt, optim.Options{Schedule: optim.Constant(0.05)})
	curvature, err := opt.Curvature(lossGraph(t, ir.F64), "loss", 7, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Losses {
		batch(ir.F64, i, s.values)
		if i%2 == 0 {
			estimate := &stepper{curvature, map[string]*ir.Array{}}
			for _, p := range curvature.Ports() {
				estimate.values[p.Name] = s.values[p.Name]
			}
			estimate.step(t)
			for _, name := range []string{"w", "v"} {
				h := optim.SlotState("h", name)
				s.values[h] = estimate.values[h]
			}
		}
		s.step(t)
	}
	closeTo(t, "w", s.values["w"].F, want.W, 1e-12)
	closeTo(t, "v", s.values["v"].F, want.V, 1e-12)
}

// TestKronWhitensGradients has gradients that are uncorrelated signs, in turn, times a row and a column: the
// preconditioned ones are signs, as the mean of P·g·gᵀ·P is the identity.
func TestKronWhitensGradients(t *testing.T) {
	sizes := []float64{0.5 * 1, 0.5 * 4, 3 * 1, 3 * 4}
	signs := [][]float64{{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}}
	loss := build(t, func(b *ir.Builder) {
		w, x := b.Param("w", ir.F64, ir.N(2), ir.N(2)), b.Input("x", ir.F64, ir.N(2), ir.N(2))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, w, x)))
	})
	opt := optim.Kron{Momentum: 1e-9, Rate: 0.2, Every: 1, Clip: 1e9}
	g, err := optim.Step(loss, "loss", opt, optim.Options{Schedule: optim.Constant(1)})
	if err != nil {
		t.Fatal(err)
	}
	s := newStepper(t, g, map[string]*ir.Array{"w": ir.NewArray(ir.F64, 2, 2)})
	for i := range 100 {
		x := ir.NewArray(ir.F64, 2, 2)
		for k := range x.F {
			x.F[k] = sizes[k] * signs[i%4][k]
		}
		s.values["x"] = x
		before := s.values["w"].Clone()
		s.step(t)
		for k, w := range s.values["w"].F {
			if moved := before.F[k] - w; i >= 96 && !(math.Abs(moved-signs[i%4][k]) <= 0.25) {
				t.Errorf("element %d of the preconditioned gradient is %v, want %v", k, moved, signs[i%4][k])
			}
		}
	}
}

// TestStiefelKeepsMatricesOrthonormal takes steps of a tall and of a wide matrix, which are not
// orthonormal before the first.
func TestStiefelKeepsMatricesOrthonormal(t *testing.T) {
	for _, dims := range [][2]int{{3, 2}, {2, 3}} {
		loss := build(t, func(b *ir.Builder) {
			w := b.Param("w", ir.F64, ir.N(dims[0]), ir.N(dims[1]))
			b.Output("loss", ops.ReduceSum(b, ops.Sin(b, ops.Mul(b, w, w))))
		})
		g, err := optim.Step(loss, "loss", optim.Stiefel{Momentum: 0.5}, optim.Options{Schedule: optim.Constant(0.1)})
		if err != nil {
			t.Fatal(err)
		}
		s := newStepper(t, g, map[string]*ir.Array{"w": ir.Floats(ir.F64, []float64{1, 2, -0.5, 0.3, 0.7, -2}, dims[0], dims[1])})
		for range 3 {
			s.step(t)
		}
		w := s.values["w"].F
		inner := make([]float64, 4) // of the two short vectors
		for i := range 2 {
			for j := range 2 {
				for k := range 3 {
					if dims[0] == 3 {
						inner[2*i+j] += w[2*k+i] * w[2*k+j]
					} else {
						inner[2*i+j] += w[3*i+k] * w[3*j+k]
					}
				}
			}
		}
		closeTo(t, "products", inner, []float64{1, 0, 0, 1}, 1e-14)
	}
}

// TestLBFGSFindsTheMinimumOfAQuadratic: with as many pairs as variables it needs few steps.
func TestLBFGSFindsTheMinimumOfAQuadratic(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		w, v := b.Param("w", ir.F64, ir.N(2)), b.Param("v", ir.F64)
		x := ops.Sub(b, w, ops.Literal(b, ir.Floats(ir.F64, []float64{1, -2}, 2)))
		y := ops.Add(b, ops.ReduceSum(b, ops.Mul(b, x, x)), ops.Mul(b, ops.Square(b, ops.Sub(b, v, ops.Const(b, ir.F64, 3))), ops.Const(b, ir.F64, 10)))
		b.Output("loss", ops.Add(b, y, ops.ReduceSum(b, ops.Mul(b, x, v))))
	})
	g, err := optim.Step(loss, "loss", optim.LBFGS{Pairs: 3}, optim.Options{Schedule: optim.Constant(1)})
	if err != nil {
		t.Fatal(err)
	}
	s := newStepper(t, g, map[string]*ir.Array{"w": ir.Floats(ir.F64, []float64{0, 0}, 2), "v": ir.Float(ir.F64, 0)})
	for range 18 {
		s.step(t)
	}
	// Where the gradient is 0: 2·(w − a) + v = 0 and 20·(v − 3) + Σ(w − a) = 0, so v = 60/19.
	closeTo(t, "v", s.values["v"].F, []float64{60. / 19}, 1e-6)
	closeTo(t, "w", s.values["w"].F, []float64{1 - 30./19, -2 - 30./19}, 1e-6)
}
