package nn_test

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

var ctx = context.Background()

// stored is a tensor of testdata/torch.json.
type stored struct {
	S []int
	D []float32
	I []int32
}

func (s stored) tensor() rlx.Tensor {
	if s.I != nil {
		return rlx.Int32s(s.I, s.S...)
	}
	return rlx.Float32s(s.D, s.S...)
}

func (s stored) input(b *ir.Builder, name string) ir.Value {
	d := ir.F32
	if s.I != nil {
		d = ir.I32
	}
	return b.Input(name, d, ir.Dims(s.S...)...)
}

// torchCase is a layer of PyTorch with its results and gradients.
type torchCase struct {
	Name             string
	Inputs, Params   map[string]stored
	Outputs, Weights []stored
	Grads, States    map[string]stored
}

func torchCases(t *testing.T) []torchCase {
	t.Helper()
	text, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []torchCase }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all.Cases
}

// layers builds the layers of testdata/torch.json from their inputs.
var layers = map[string]func(b *ir.Builder, in map[string]ir.Value) []ir.Value{
	"linear": one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.Linear(b, x, 3) }),
	"embedding": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.Embedding(b, in["ids"], 5, 3)}
	},
	"lora": one(func(b *ir.Builder, x ir.Value) (y ir.Value) {
		nn.LoRA(b, nn.LoRAOptions{Rank: 2, Alpha: 16}, func() { y = nn.Linear(b, x, 3) })
		return y
	}),
	"conv1d": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{Pad: []int{2}, Dilation: []int{2}})
	}),
	"conv2d": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Conv2d(b, x, 4, 3, nn.ConvOptions{Pad: []int{1}, Stride: []int{2}})
	}),
	"conv2d groups": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Conv2d(b, x, 6, 0, nn.ConvOptions{Kernel: []int{2, 3}, Dilation: []int{1, 2}, Groups: 2, NoBias: true})
	}),
	"conv2d same": one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.Conv2d(b, x, 3, 4, nn.ConvOptions{Same: true}) }),
	"conv2d channels first": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Conv2d(b, x, 3, 3, nn.ConvOptions{Same: true, ChannelsFirst: true})
	}),
	"conv3d": one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.Conv3d(b, x, 3, 2) }),
	"conv_transpose1d": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.ConvTranspose1d(b, x, 2, 3, nn.ConvOptions{Stride: []int{2}})
	}),
	"conv_transpose2d": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.ConvTranspose2d(b, x, 6, 3, nn.ConvOptions{Stride: []int{2}, Pad: []int{1}, OutputPad: []int{1}, Groups: 2})
	}),
	"conv_transpose2d channels first": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.ConvTranspose2d(b, x, 3, 2, nn.ConvOptions{Stride: []int{2}, ChannelsFirst: true})
	}),
	"conv_transpose3d": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.ConvTranspose3d(b, x, 3, 2, nn.ConvOptions{Dilation: []int{2}})
	}),
	"max_pool": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.MaxPool(b, x, 3, nn.PoolOptions{Stride: []int{2}, Pad: []int{1}})
	}),
	"avg_pool": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.AvgPool(b, x, 3, nn.PoolOptions{Stride: []int{2}, Pad: []int{1}})
	}),
	"avg_pool exclude": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.AvgPool(b, x, 2, nn.PoolOptions{Pad: []int{1}, ExcludePad: true})
	}),
	"max_pool1d":      one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.MaxPool(b, x, 2) }),
	"global_avg_pool": one(nn.GlobalAvgPool),
	"layer_norm":      one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.LayerNorm(b, x) }),
	"rms_norm":        one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.RMSNorm(b, x) }),
	"group_norm":      one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.GroupNorm(b, x, 2) }),
	"group_norm channels first": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.GroupNorm(b, x, 2, nn.NormOptions{ChannelsFirst: true})
	}),
	"instance_norm": one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.InstanceNorm(b, x) }),
	"batch_norm training": one(func(b *ir.Builder, x ir.Value) ir.Value {
		nn.Train(b)
		return nn.BatchNorm(b, x)
	}),
	"batch_norm inference": one(func(b *ir.Builder, x ir.Value) ir.Value {
		nn.Infer(b)
		return nn.BatchNorm(b, x)
	}),
	"attention": one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.Attention(b, x, 2) }),
	"attention causal": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Attention(b, x, 3, nn.AttentionOptions{Causal: true})
	}),
	"attention context": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.Attention(b, in["x"], 2, nn.AttentionOptions{Context: in["context"]})}
	},
	"attention grouped": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Attention(b, x, 4, nn.AttentionOptions{KVHeads: 2, Rope: &nn.RopeOptions{}, Causal: true, Window: 3, Separate: true, NoBias: true})
	}),
	"transformer": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Hidden: 6, Causal: true})
	}),
	"transformer post": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Hidden: 6, Activation: nn.Relu, PostNorm: true})
	}),
	"transformer context": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.TransformerBlock(b, in["x"], 2, nn.TransformerOptions{Hidden: 6, Activation: nn.Relu, Causal: true, Context: in["context"]})}
	},
	"lstm": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h, c := nn.LSTM(b, in["x"], 2, nn.RecurrentOptions{Layers: 2, Bidirectional: true})
		return []ir.Value{y, h, c}
	},
	"gru": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h := nn.GRU(b, in["x"], 2, nn.RecurrentOptions{Layers: 2})
		return []ir.Value{y, h}
	},
	"gru time first": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h := nn.GRU(b, in["x"], 2, nn.RecurrentOptions{TimeFirst: true, NoBias: true})
		return []ir.Value{y, h}
	},
	"rnn relu": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h := nn.RNN(b, in["x"], 4, nn.RecurrentOptions{Relu: true})
		return []ir.Value{y, h}
	},
	"moe": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, loss := nn.MoE(b, in["x"], 3, nn.MoEOptions{Hidden: 5})
		return []ir.Value{y, loss}
	},
	"conv2d reflect":   one(padded(nn.PadReflect)),
	"conv2d replicate": one(padded(nn.PadReplicate)),
	"conv2d circular":  one(padded(nn.PadCircular)),
	"conv1d circular same": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Conv1d(b, x, 3, 4, nn.ConvOptions{Same: true, PaddingMode: nn.PadCircular})
	}),
	"max_pool ceil": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.MaxPool(b, x, 3, nn.PoolOptions{Stride: []int{2}, Pad: []int{1}, CeilMode: true})
	}),
	"max_pool ceil short": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.MaxPool(b, x, 2, nn.PoolOptions{Stride: []int{3}, Pad: []int{1}, CeilMode: true})
	}),
	"avg_pool ceil": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.AvgPool(b, x, 3, nn.PoolOptions{Stride: []int{2}, Pad: []int{1}, CeilMode: true})
	}),
	"avg_pool ceil exclude": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.AvgPool(b, x, 3, nn.PoolOptions{Stride: []int{2, 4}, Pad: []int{1}, CeilMode: true, ExcludePad: true})
	}),
	"embedding_bag":             bag(nn.EmbeddingBagOptions{}),
	"embedding_bag sum":         bag(nn.EmbeddingBagOptions{Mode: "sum"}),
	"embedding_bag max":         bag(nn.EmbeddingBagOptions{Mode: "max"}),
	"embedding_bag padding":     bag(nn.EmbeddingBagOptions{Padding: new(3)}),
	"embedding_bag max padding": bag(nn.EmbeddingBagOptions{Mode: "max", Padding: new(3)}),
	"gru reset before": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h := nn.GRU(b, in["x"], 2, nn.RecurrentOptions{Bidirectional: true, ResetBefore: true})
		return []ir.Value{y, h}
	},
	"mamba":               one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.Mamba(b, x, nn.MambaOptions{State: 3, Rank: 2}) }),
	"sinusoidal_encoding": one(nn.SinusoidalEncoding),
}

// further are layers of testdata/torch.json, too.
var further = map[string]func(b *ir.Builder, in map[string]ir.Value) []ir.Value{
	"global_max_pool": one(nn.GlobalMaxPool),
	"softcap":         one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.Softcap(b, x, 3) }),
	"mlp":             one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.MLP(b, x, 5) }),
	"mlp swiglu":      one(mlp(5, nn.MLPOptions{Activation: nn.SwiGlu, NoBias: true})),
	"mlp geglu":       one(mlp(5, nn.MLPOptions{Activation: nn.GeGlu, NoBias: true})),
	"mlp gelu_tanh":   one(mlp(4, nn.MLPOptions{Activation: nn.GeluTanh})),
	"mlp relu2":       one(mlp(4, nn.MLPOptions{Activation: nn.Relu2})),
	"mlp silu":        one(mlp(4, nn.MLPOptions{Activation: nn.Silu})),
	"mlp tanh":        one(mlp(4, nn.MLPOptions{Activation: nn.Tanh})),
	"grouped_linear": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.GroupedLinear(b, in["x"], in["groups"], 3, 2)}
	},
	"linear_cross_entropy": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.LinearCrossEntropy(b, in["x"], in["labels"], 6, nn.LinearCrossEntropyOptions{Ignored: []int{-100}, LabelSmoothing: 0.1, Rows: 4})}
	},
	"linear_cross_entropy softcap": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.LinearCrossEntropy(b, in["x"], in["labels"], 4, nn.LinearCrossEntropyOptions{
			LinearOptions: nn.LinearOptions{NoBias: true}, Softcap: 2, Reduction: ops.LossSum, Rows: 2,
		})}
	},
	"positional_embedding": one(func(b *ir.Builder, x ir.Value) ir.Value { return nn.PositionalEmbedding(b, x, 6) }),
	"linear tied": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		x := ops.Tanh(b, nn.Embedding(b, in["ids"], 5, 3))
		return []ir.Value{nn.Linear(b, x, 5, nn.LinearOptions{Tied: "embedding0/weight", NoBias: true})}
	},
	"attend": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		mask := ops.Convert(b, in["mask"], ir.Bool)
		return []ir.Value{nn.Attend(b, in["q"], in["k"], in["v"], nn.AttentionOptions{Mask: mask, Scale: 0.3})}
	},
	"attention alibi": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Attention(b, x, 4, nn.AttentionOptions{ALiBi: true, Causal: true, Separate: true})
	}),
	"attention softcap": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.Attention(b, in["x"], 2, nn.AttentionOptions{Softcap: 1.5, Mask: in["mask"], Separate: true})}
	},
	"attention normalised": one(func(b *ir.Builder, x ir.Value) ir.Value {
		rope := &nn.RopeOptions{Base: 500, Size: 4, Interleaved: true}
		return nn.Attention(b, x, 2, nn.AttentionOptions{KVHeads: 1, HeadSize: 6, NormQK: true, Rope: rope, Causal: true, Separate: true})
	}),
	"transformer llama": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, 4, nn.TransformerOptions{
			Hidden: 6, Activation: nn.SwiGlu, RMSNorm: true, Epsilon: 1e-5, NoBias: true, Causal: true, KVHeads: 2, Rope: &nn.RopeOptions{},
			Attention: nn.AttentionOptions{Separate: true},
		})
	}),
	"lstm begun": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h, c := nn.LSTM(b, in["x"], 2, nn.RecurrentOptions{Layers: 2, Hidden: in["hidden"], Cell: in["cell"]})
		return []ir.Value{y, h, c}
	},
	"gru begun": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h := nn.GRU(b, in["x"], 2, nn.RecurrentOptions{Bidirectional: true, Hidden: in["hidden"]})
		return []ir.Value{y, h}
	},
	"rnn begun": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		y, h := nn.RNN(b, in["x"], 4, nn.RecurrentOptions{Bidirectional: true, Hidden: in["hidden"]})
		return []ir.Value{y, h}
	},
	"batch_norm channels first": one(func(b *ir.Builder, x ir.Value) ir.Value {
		nn.Train(b)
		return nn.BatchNorm(b, x, nn.BatchNormOptions{ChannelsFirst: true, Epsilon: 1e-3, Momentum: 0.3})
	}),
	"layer_norm without bias": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.LayerNorm(b, x, nn.NormOptions{Epsilon: 1e-2, NoBias: true})
	}),
	"instance_norm channels first": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.InstanceNorm(b, x, nn.NormOptions{ChannelsFirst: true, NoAffine: true})
	}),
	"max_pool channels first": one(func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.MaxPool(b, x, 0, nn.PoolOptions{Window: []int{2, 3}, Stride: []int{2, 1}, Dilation: []int{2}, ChannelsFirst: true})
	}),
	"dot_interaction": one(nn.DotInteraction),
	"stack":           one(repeated(nn.StackOptions{})),
	"stack scan":      one(repeated(nn.StackOptions{Scan: true})),
	"active_blocks": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.ActiveBlocks(b, in["x"], ops.Convert(b, in["active"], ir.Bool), func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Tanh(b, nn.Linear(b, x, 3))
		})}
	},
	"chosen_experts": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{nn.ChosenExperts(b, in["x"], in["weights"], in["chosen"], func(x, groups ir.Value) ir.Value {
			return nn.GroupedLinear(b, x, groups, 3, 2)
		})}
	},
}

func init() { maps.Copy(layers, further) }

func repeated(o nn.StackOptions) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Stack(b, "h", 3, x, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Residual(b, x, func(x ir.Value) ir.Value { return ops.Tanh(b, nn.Linear(b, x, 4)) })
		}, o)
	}
}

func mlp(hidden int, o nn.MLPOptions) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return nn.MLP(b, x, hidden, o) }
}

func padded(mode string) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Conv2d(b, x, 3, 3, nn.ConvOptions{Pad: []int{1, 2}, Stride: []int{1, 2}, PaddingMode: mode})
	}
}

func bag(o nn.EmbeddingBagOptions) func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		o.Weights = in["weights"]
		return []ir.Value{nn.EmbeddingBag(b, in["ids"], 5, 3, o)}
	}
}

// one is a layer of one input, "x", and one result.
func one(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value { return []ir.Value{f(b, in["x"])} }
}

// graph returns the layer with its results y0, y1, … and the loss, and the gradients by what
// PyTorch has gradients of.
func (c torchCase) graph(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build(c.Name, func(b *ir.Builder) {
		in := map[string]ir.Value{}
		for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
			in[name] = c.Inputs[name].input(b, name)
		}
		var loss []ir.Value
		for i, y := range layers[c.Name](b, in) {
			b.Output("y"+strconv.Itoa(i), y)
			loss = append(loss, ops.ReduceSum(b, ops.Mul(b, y, c.Weights[i].input(b, "r"+strconv.Itoa(i)))))
		}
		b.Output("loss", ops.SumAll(b, loss...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = autodiff.ValueAndGrad(g, "loss", slices.Sorted(maps.Keys(c.Grads))...); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestLayersAreThoseOfPyTorch compares results, gradients and new states of each layer with those
// of PyTorch with the same weights. values.py in the same folder computed the values.
func TestLayersAreThoseOfPyTorch(t *testing.T) {
	for _, c := range torchCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			p := compiled(t, ir.Entry{Name: "f", Graph: c.graph(t)})
			values := map[string]rlx.Tensor{}
			for name, x := range c.Params {
				values[name] = x.tensor()
			}
			if err := p.Load(ctx, values); err != nil {
				t.Fatal(err)
			}
			in := rlx.Inputs{}
			for name, x := range c.Inputs {
				in[name] = x.tensor()
			}
			for i, x := range c.Weights {
				in["r"+strconv.Itoa(i)] = x.tensor()
			}
			out, err := p.Call(ctx, "f", in)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.Outputs {
				near(t, "y"+strconv.Itoa(i), out["y"+strconv.Itoa(i)], want)
			}
			for name, want := range c.Grads {
				near(t, "the gradient by "+name, out["grad/"+name], want)
			}
			for name, want := range c.States {
				x, err := p.Get(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				near(t, name, x, want)
			}
		})
	}
}

// near compares f32 values up to 1e-5 of the largest one, and their shape.
func near(t *testing.T, what string, got rlx.Tensor, want stored) {
	t.Helper()
	x, err := got.Float32s()
	if err != nil || len(x) != len(want.D) || !slices.Equal(got.Dims, want.S) {
		t.Errorf("%s is %v, %v; want %v", what, got, err, want.S)
		return
	}
	largest := 1.
	for _, v := range want.D {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range x {
		if d := math.Abs(float64(x[i]) - float64(want.D[i])); !(d <= 1e-5*largest) {
			t.Errorf("%s differs by %v at %d:\n%v, want\n%v", what, d, i, x, want.D)
			return
		}
	}
}

// compiled returns a program of some entries on the CPU.
func compiled(t *testing.T, entries ...ir.Entry) *rlx.Program {
	t.Helper()
	m, err := ir.NewModule("test", entries...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Compile(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// untried are the functions of the package that add ops and have no values of PyTorch.
var untried = map[string]string{
	"In": "a scope", "Key": "random", "Draw": "random", "Tie": "a name",
	"Dropout":   "random",
	"Positions": "numbers from 0, in all layers with positions",
	"Accuracy":  "a metric", "TopKAccuracy": "a metric",
}

// TestEveryLayerHasValuesOfPyTorch finds a layer that no case of testdata/torch.json calls.
func TestEveryLayerHasValuesOfPyTorch(t *testing.T) {
	text, err := os.ReadFile("torch_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constructor := regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(b \*ir\.Builder, .*\) (ir\.Value|\(.* ir\.Value\)) {$`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range constructor.FindAllStringSubmatch(string(source), -1) {
			found++
			if untried[m[1]] == "" && !regexp.MustCompile(`nn\.`+m[1]+`\b`).Match(text) {
				t.Errorf("no case of testdata/torch.json calls nn.%s: add one to testdata/values.py, or a reason to untried", m[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("%d layers found", found)
	}
}
