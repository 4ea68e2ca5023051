package cpu_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// zoo adds a model to a builder; below has the bounds of its integer inputs.
type zoo struct {
	*ir.Builder
	below map[string]int
}

// model is a whole model. The peer has one of the same name and shapes.
type model struct {
	name  string
	batch int // of a training step; inference has one example
	y     func(z *zoo, batch int) ir.Value
}

// models are those of models_images_test.go and models_sequences_test.go.
var models = []model{
	{"mobilenet v3", 16, mobileNetV3},
	{"efficientnet", 16, efficientNet},
	{"densenet", 16, denseNet},
	{"shufflenet", 16, shuffleNet},
	{"resnext", 16, resNeXt},
	{"unet transposed", 4, segmentation},
	{"diffusion planes", 4, diffusion},
	{"swin", 8, swin},
	{"mixer", 8, mixer},
	{"conv vae", 16, convVAE},
	{"keywords", 16, keywords},
	{"pointnet", 8, pointNet},
	{"graph attention", 1, graphAttention},
	{"tabnet", 256, tabNet},
	{"tagger", 16, tagger},
	{"seq2seq", 16, seq2seq},
	{"dlrm", 256, dlrm},
	{"neumf", 1024, neuMF},
	{"linear attention", 4, linearAttention},
	{"conformer", 4, conformer},
	{"actor critic", 8, actorCritic},
	{"kalman", 16, kalman},
}

// graph returns the graph of inference, output "y", or of a training step by AdamW whose loss is the mean
// square of y, and the bounds of its integer inputs.
func (m model) graph(tb testing.TB, train bool) (g *ir.Graph, below map[string]int) {
	tb.Helper()
	below = map[string]int{}
	g = build(tb, func(b *ir.Builder) {
		if !train {
			nn.Infer(b)
			b.Output("y", m.y(&zoo{b, below}, 1))
			return
		}
		nn.Train(b)
		y := m.y(&zoo{b, below}, m.batch)
		b.Output("loss", ops.Mean(b, ops.Square(b, ops.Flatten(b, y, 0)), 0))
	})
	if train {
		step, err := optim.Step(g, "loss", optim.AdamW{}, optim.Options{Schedule: optim.Constant(1e-3)})
		g = must(tb, step, err)
	}
	return g, below
}

// BenchmarkModels runs inference of one example and a training step of whole models, beside PyTorch, as
// [BenchmarkFamilies]. Verbose, it prints the time of each of our steps.
func BenchmarkModels(b *testing.B) {
	torch := startPython(b, "PyTorch", "peers/models.py")
	for _, m := range models {
		for _, kind := range []string{"infer", "train"} {
			b.Run(strings.ReplaceAll(kind+" "+m.name, " ", "_"), func(b *testing.B) {
				g, below := m.graph(b, kind == "train")
				p := compileGraphs(b, ir.Entry{Name: "step", Graph: g})
				in, out := familyTensors(b, p, below)
				besidePyTorch(b, torch, kind+" "+m.name, p, bind(b, p, "step", in, out))
			})
		}
	}
}

// TestModelsAreGraphs keeps the models valid between runs of the benchmark.
func TestModelsAreGraphs(t *testing.T) {
	for _, m := range models {
		if g, _ := m.graph(t, true); len(g.Outputs()) == 0 {
			t.Errorf("%s computes nothing", m.name)
		}
	}
}

func (z *zoo) floats(name string, dims ...int) ir.Value {
	return z.Input(name, ir.F32, ir.Dims(dims...)...)
}

// ids is an input of integers in [0, below).
func (z *zoo) ids(name string, below int, dims ...int) ir.Value {
	z.below[name] = below
	return z.Input(name, ir.I32, ir.Dims(dims...)...)
}

func (z *zoo) reshape(x ir.Value, dims ...int) ir.Value {
	return ops.Reshape(z.Builder, x, ir.Dims(dims...)...)
}

func (z *zoo) number(x float64) ir.Value { return ops.Const(z.Builder, ir.F32, x) }

func (z *zoo) full(x float64, dims ...ir.Dim) ir.Value {
	return ops.BroadcastTo(z.Builder, z.number(x), dims)
}

// size returns the size of an axis.
func size(x ir.Value, axis int) int {
	n, _ := x.Dim(axis).Const()
	return n
}

// mlp is linear layers with an activation between them.
func (z *zoo) mlp(x ir.Value, act func(b *ir.Builder, x ir.Value) ir.Value, sizes ...int) ir.Value {
	for i, out := range sizes {
		if i > 0 {
			x = act(z.Builder, x)
		}
		x = nn.Linear(z.Builder, x, out)
	}
	return x
}

func same(_ *ir.Builder, x ir.Value) ir.Value { return x }
