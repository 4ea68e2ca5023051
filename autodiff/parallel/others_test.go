package parallel_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// published is a training of a GPT by others, in bf16 or f16 with a vocabulary of about 50,000.
type published struct {
	model                string
	layers, width, heads int
	context, batch       int // of a device, or of the devices that share a model, between two updates of gradients
	devices, tensor      int // tensor devices share each layer
	zero3                bool
	tokens               float64 // per device and second
}

const unpublished = 0

// trainings are those of others, on hosts of eight GPUs of 80 GB: MosaicML's table of llm-foundry
// (scripts/train/benchmarking/README.md, 2023, without activation checkpoints), and table 1 of Narayanan et al.,
// Efficient Large-Scale Language Model Training on GPU Clusters, 2021. The first row of each gives the rate of
// products.
var trainings = []struct {
	source  string
	network parallel.Network
	rows    []published
}{
	{"MosaicML 2023, FSDP, H100", parallel.H200s(), []published{
		{"13b", 40, 5120, 40, 2048, 2, 8, 1, true, 4792},
		{"13b", 40, 5120, 40, 2048, 2, 16, 1, true, 4767},
		{"13b", 40, 5120, 40, 2048, 2, 32, 1, true, 4811},
		{"13b", 40, 5120, 40, 2048, 2, 64, 1, true, 4800},
		{"13b", 40, 5120, 40, 2048, 2, 256, 1, true, unpublished},
		{"13b", 40, 5120, 40, 2048, 2, 1024, 1, true, unpublished},
	}},
	{"MosaicML 2023, FSDP, H100", parallel.H200s(), []published{
		{"3b", 32, 2560, 20, 2048, 6, 16, 1, true, 24142},
		{"3b", 32, 2560, 20, 2048, 6, 32, 1, true, 23021},
		{"3b", 32, 2560, 20, 2048, 6, 64, 1, true, 22525},
	}},
	{"MosaicML 2023, FSDP, H100", parallel.H200s(), []published{
		{"1b", 24, 2048, 16, 2048, 20, 16, 1, true, 46037},
		{"1b", 24, 2048, 16, 2048, 20, 32, 1, true, 45130},
		{"1b", 24, 2048, 16, 2048, 20, 64, 1, true, 44402},
	}},
	// Tokens by the paper's rate of operations, 96·B·s·l·h²·(1 + s/6h + V/16lh) for a batch, and its table 1.
	{"Megatron-LM 2021, A100", parallel.A100s(), []published{
		{"1.7B", 24, 2304, 24, 2048, 16, 32, 1, false, megatron(137, 24, 2304)},
		{"3.6B", 30, 3072, 32, 2048, 16, 64, 2, false, megatron(138, 30, 3072)},
		{"7.5B", 36, 4096, 32, 2048, 16, 128, 4, false, megatron(142, 36, 4096)},
		{"18.4B", 40, 6144, 48, 2048, 32, 256, 8, false, megatron(135, 40, 6144)},
	}},
}

// megatron returns the tokens per device and second of a rate in teraFLOP/s.
func megatron(rate float64, layers, width int) float64 {
	const words, context = 51200, 2048
	l, h := float64(layers), float64(width)
	return rate * 1e12 / (96 * l * h * h * (1 + context/(6*h) + words/(16*l*h)))
}

const words = 51200

// embedded returns the tokens' vectors and the head, which is the table of the embedding unless devices share it.
func (p published) embedded(b *ir.Builder, rows int) (x, head ir.Value) {
	if p.tensor > 1 {
		return b.Input("x", ir.F32, ir.Dims(rows, p.context, p.width)...), b.Param("head", ir.F32, ir.Dims(p.width, words)...)
	}
	table := b.Param("table", ir.F32, ir.Dims(words, p.width)...)
	return ops.Embedding(b, table, b.Input("ids", ir.I32, ir.Dims(rows, p.context)...)), ops.Transpose(b, table, 1, 0)
}

// step returns the gradients of a model with some layers, divided as the training is.
func (p published) step(layers int) (*ir.Graph, []parallel.Axis, error) {
	data := p.devices / p.tensor
	rows := p.batch
	if p.tensor > 1 {
		rows *= data
	}
	loss, err := ir.Build("gpt", func(b *ir.Builder) {
		x, head := p.embedded(b, rows)
		for i := range layers {
			x = nn.TransformerBlock(b, x, p.heads, nn.TransformerOptions{Name: fmt.Sprint("h", i), Causal: true, Attention: nn.AttentionOptions{Separate: true}})
		}
		y := ops.MatMul(b, x, head)
		b.Output("loss", ops.Mean(b, ops.Mul(b, y, y)))
	})
	if err != nil {
		return nil, nil, err
	}
	g, err := autodiff.GradWith(loss, autodiff.GradOptions{Loss: "loss"})
	if err != nil {
		return nil, nil, err
	}
	axes := []parallel.Axis{{Name: "data", Size: data}, {Name: "model", Size: p.tensor}}
	if p.tensor > 1 {
		part := parallel.Partition{Mesh: axes, Shardings: append(parallel.Megatron("model"),
			parallel.Sharding{Pattern: "x", Axes: []string{"data"}}, parallel.Sharding{Pattern: "head", Axes: []string{"", "model"}})}
		places, err := part.Placements(g)
		if err != nil {
			return nil, nil, err
		}
		if g, _, err = part.Apply(g, places); err != nil {
			return nil, nil, err
		}
	} else {
		along := ops.MeshAttrs{MeshAxis: "data", Devices: data}
		if g, _, err = (parallel.Data{Mesh: along, Scatter: p.zero3}).Gradients(g); err != nil {
			return nil, nil, err
		}
		if p.zero3 {
			if g, _, err = (parallel.Shard{Mesh: along, Params: true, Ahead: 1}).States(g); err != nil {
				return nil, nil, err
			}
		}
	}
	g, err = passes.Mixed(g, ir.BF16)
	return g, axes, err
}

// predicted returns the predicted seconds of a step. Layers are alike: those of few are extrapolated.
func (p published) predicted(t *testing.T, w parallel.Network, rate float64) (seconds, network float64) {
	const few, more = 2, 4
	var at [2]parallel.Prediction
	for i, layers := range []int{few, more} {
		g, axes, err := p.step(layers)
		if err == nil {
			at[i], err = w.Simulate(g, axes, rate)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	times := float64(p.layers-few) / (more - few)
	return at[0].Seconds + times*(at[1].Seconds-at[0].Seconds), at[0].Network + times*(at[1].Network-at[0].Network)
}

// TestPredictionsBesideOthers prints what the model predicts beside what others have published, a table of
// native/bench/results.md:
//
//	go test -v -run PredictionsBesideOthers ./autodiff/parallel
func TestPredictionsBesideOthers(t *testing.T) {
	var table strings.Builder
	for _, training := range trainings {
		rate := 300e12
		for i, p := range training.rows {
			tokens := float64(p.batch*p.context) / float64(p.tensor)
			seconds, network := p.predicted(t, training.network, rate)
			for turn := 0; i == 0 && turn < 4; turn++ { // the rate with which the first row is right
				rate *= seconds / (tokens / p.tokens)
				seconds, network = p.predicted(t, training.network, rate)
			}
			got, measured, note := tokens/seconds, fmt.Sprintf("%.0f", p.tokens), "–"
			switch off := 100 * (got/p.tokens - 1); {
			case i == 0:
				note = fmt.Sprintf("given, by %.0f TFLOP/s", rate/1e12)
			case p.tokens == unpublished:
				measured = "–"
			default:
				note = fmt.Sprintf("%+.1f %%", off)
				if math.Abs(off) > 15 {
					t.Errorf("%s, %s on %d: predicted %.0f tokens/s, published %.0f", training.source, p.model, p.devices, got, p.tokens)
				}
			}
			way := "ZeRO 3"
			if !p.zero3 {
				way = fmt.Sprintf("tensor %d, data %d", p.tensor, p.devices/p.tensor)
			}
			fmt.Fprintf(&table, "| %s | %s, %s | %d | %s | %.0f | %s | %.0f of %.0f |\n", training.source, p.model, way, p.devices, measured, got, note, 1e3*network, 1e3*seconds)
		}
	}
	t.Log("\n" + table.String())
	results, err := os.ReadFile("../../native/bench/results.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(results), table.String()) {
		t.Error("native/bench/results.md does not have this table")
	}
}
