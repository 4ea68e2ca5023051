package rlx_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// must fails the test on an error.
func must[T any](x T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// twoNetworks returns a loss that trains one of two networks; the other is read only.
func twoNetworks(t *testing.T, trained string) *ir.Graph {
	t.Helper()
	return must(ir.Build("loss", func(b *ir.Builder) {
		gen, dis := b.Param("gen/w", ir.F32, ir.Dims(2, 3)...), b.Param("dis/w", ir.F32, ir.Dims(3, 2)...)
		product := ops.MatMul(b, gen, dis)
		if trained == "dis" {
			product = ops.Neg(b, product)
		}
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, ops.Add(b, product, ops.ConstLike(b, product, 1)))))
	}))(t)
}

func advance(t *testing.T, loss *ir.Graph, frozen string, o optim.Options) *ir.Graph {
	t.Helper()
	o.Frozen, o.Schedule = []string{frozen}, optim.Cosine(0.1, 0, 100)
	return must(optim.Step(loss, "loss", optim.Adam{}, o))(t)
}

// Two optimisers in one module train as each does alone, if they have names, and are refused
// if they have not.
func TestTwoOptimisersInOneModule(t *testing.T) {
	gen, dis := twoNetworks(t, "gen"), twoNetworks(t, "dis")
	alone := advance(t, gen, "dis", optim.Options{})
	s := must(rlx.Open("cpu"))(t)
	_, err := s.Compile(ctx, must(ir.NewModule("gan", ir.Entry{Name: "gen", Graph: alone}, ir.Entry{Name: "dis", Graph: advance(t, dis, "gen", optim.Options{})}))(t))
	if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), `"gen"`) || !strings.Contains(err.Error(), `"dis"`) {
		t.Fatalf("two optimisers with one counter: %v", err)
	}

	train := func(entries ...ir.Entry) []float32 {
		p := must(s.Compile(ctx, must(ir.NewModule("gan", entries...))(t)))(t)
		defer p.Close(ctx)
		for _, name := range []string{"gen/w", "dis/w"} {
			dims := []int{2, 3}
			if name == "dis/w" {
				dims = []int{3, 2}
			}
			if err := p.Set(ctx, name, rlx.Float32s([]float32{0.1, -0.2, 0.3, 0.4, -0.5, 0.6}, dims...)); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			must(p.Call(ctx, "gen", nil))(t)
			if len(entries) > 1 { // the other network's step, whose parameters are then put back
				before := must(p.Get(ctx, "dis/w"))(t)
				must(p.Call(ctx, "dis", nil))(t)
				if err := p.Set(ctx, "dis/w", before); err != nil {
					t.Fatal(err)
				}
			}
		}
		return slices.Clone(must(must(p.Get(ctx, "gen/w"))(t).Float32s())(t))
	}
	named := advance(t, dis, "gen", optim.Options{Name: "dis"})
	want := train(ir.Entry{Name: "gen", Graph: alone})
	if got := train(ir.Entry{Name: "gen", Graph: alone}, ir.Entry{Name: "dis", Graph: named}); !slices.Equal(got, want) {
		t.Errorf("beside another optimiser: %v, alone %v", got, want)
	}
}

// InitGraph does not set parameters that the step only reads: the step that trains them does.
func TestInitGraphKeepsOtherNetworks(t *testing.T) {
	step := advance(t, twoNetworks(t, "gen"), "dis", optim.Options{})
	g := must(rlx.InitGraph(step, []string{"gen/w"}, nil))(t)
	if _, ok := g.Port("dis/w"); ok {
		t.Error("initialising the generator writes the discriminator")
	}
	g = must(rlx.InitGraph(step, []string{"gen/w"}, map[string]rlx.Initializer{"dis/w": rlx.Constant(1)}))(t)
	if _, ok := g.Port("dis/w"); !ok {
		t.Error("an initializer that was given is not used")
	}
}

// Sophia's rule without its estimate of the curvature would be descent by signs.
func TestSophiaWithoutCurvatureIsRefused(t *testing.T) {
	loss := twoNetworks(t, "gen")
	opt := optim.Sophia{}
	_, err := rlx.Training{Optimizer: opt}.Entries(loss)
	if !errors.Is(err, ir.ErrGraph) || !strings.Contains(err.Error(), "Curvature") {
		t.Errorf("without it: %v", err)
	}
	curvature := must(opt.Curvature(loss, "loss", 1, optim.Options{}))(t)
	how := rlx.Training{Optimizer: opt, Eval: []ir.Entry{{Name: "curvature", Graph: curvature}}}
	if _, err := how.Entries(loss); err != nil {
		t.Errorf("with it: %v", err)
	}
}
