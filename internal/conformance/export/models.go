package main

import (
	"math/rand/v2"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// network is a model of layers for inference. Its sizes are symbols in the exported model.
type network struct {
	name  string
	build func(b *ir.Builder)
	sizes map[string]int // of the run
	below int            // bounds integer inputs
}

// networks are those of package nn's examples, and decoders of package lm.
var networks = []network{
	{"gpt", gpt, map[string]int{"batch": 2, "time": 7}, 30},
	{"cnn", cnn, map[string]int{"batch": 3}, 0},
	{"u-net", uNet, map[string]int{"batch": 2}, 0},
	{"bert", bert, map[string]int{"batch": 2, "time": 9}, 40},
	{"lstm", lstm, map[string]int{"batch": 2}, 0},
	{"llama decoder", decoder("llama", nil), map[string]int{"time": 5}, 50},
	{"gemma2 decoder", decoder("gemma2", func(c *lm.Config) {
		c.PostNorms, c.ScoreSoftcap, c.LogitSoftcap, c.Activation = true, 50, 30, nn.GeluTanh
	}), map[string]int{"time": 5}, 50},
	{"llama decoder with a cache", cached, nil, 50},
}

var batch, time = ir.Sym("batch"), ir.Sym("time")

func gpt(b *ir.Builder) {
	tokens := b.Input("tokens", ir.I32, batch, time)
	x := nn.Embedding(b, tokens, 30, 32, nn.EmbeddingOptions{Name: "wte"})
	x = nn.Stack(b, "h", 2, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, 4, nn.TransformerOptions{Name: nn.Here, Causal: true})
	})
	x = nn.LayerNorm(b, x, nn.NormOptions{Name: "ln_f"})
	b.Output("logits", ops.MatMul(b, x, ops.Transpose(b, nn.Tie(b, "wte/weight"), 1, 0)))
}

func cnn(b *ir.Builder) {
	x := b.Input("images", ir.F32, batch, ir.N(16), ir.N(16), ir.N(3))
	for _, features := range []int{8, 16} {
		x = ops.Relu(b, nn.BatchNorm(b, nn.Conv2d(b, x, features, 3)))
		x = nn.MaxPool(b, x, 2)
	}
	b.Output("scores", ops.Softmax(b, nn.Linear(b, nn.GlobalAvgPool(b, x), 10), -1))
}

func uNet(b *ir.Builder) {
	x := b.Input("noisy", ir.F32, batch, ir.N(16), ir.N(16), ir.N(1))
	down := ops.Silu(b, nn.GroupNorm(b, nn.Conv2d(b, x, 8, 3, nn.ConvOptions{Same: true}), 4))
	deep := ops.Silu(b, nn.Conv2d(b, nn.AvgPool(b, down, 2), 16, 3, nn.ConvOptions{Same: true}))
	up := nn.ConvTranspose2d(b, deep, 8, 2, nn.ConvOptions{Stride: []int{2}})
	b.Output("clean", nn.Conv2d(b, ops.Concatenate(b, -1, down, up), 1, 3, nn.ConvOptions{Same: true}))
}

func bert(b *ir.Builder) {
	tokens := b.Input("tokens", ir.I32, batch, time)
	x := nn.Embedding(b, tokens, 40, 24, nn.EmbeddingOptions{Name: "words"})
	x = nn.LayerNorm(b, x, nn.NormOptions{Name: "norm"})
	x = nn.Stack(b, "layer", 2, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.TransformerBlock(b, x, 3, nn.TransformerOptions{Name: nn.Here})
	})
	b.Output("features", ops.Tanh(b, nn.Linear(b, ops.Mean(b, x, 1), 24)))
}

func lstm(b *ir.Builder) {
	y, h, _ := nn.LSTM(b, b.Input("x", ir.F32, batch, ir.N(6), ir.N(5)), 8)
	b.Output("y", y)
	b.Output("h", h)
}

func tiny(architecture string) lm.Config {
	return lm.Config{
		Architecture: architecture, Width: 32, Hidden: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadSize: 8, Vocabulary: 50, Context: 64,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 10000, Size: 8}, Activation: nn.Silu, Gated: true,
	}
}

func decoder(architecture string, more func(c *lm.Config)) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		c := tiny(architecture)
		if more != nil {
			more(&c)
		}
		b.Output("logits", lm.Decoder(b, c, b.Input("tokens", ir.I32, ir.N(1), time)))
	}
}

func cached(b *ir.Builder) {
	nn.Cache(b, 16)
	b.Output("logits", lm.Decoder(b, tiny("llama"), b.Input("tokens", ir.I32, ir.Dims(1, 1)...)))
}

// graph returns the graph of the network for inference.
func (n network) graph() (*ir.Graph, error) {
	return ir.Build(n.name, func(b *ir.Builder) {
		nn.Infer(b)
		n.build(b)
	})
}

func (w *writer) networks() error {
	for _, n := range networks {
		g, err := n.graph()
		if err != nil {
			return err
		}
		run, err := g.Bind(n.sizes)
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(1, 2))
		inputs := map[string]*ir.Array{}
		for _, p := range run.Ports() {
			below := n.below
			if p.Kind != ir.InputPort {
				below = 0
			}
			inputs[p.Name] = random(rng, p.Value.Type(), below)
			for i, x := range inputs[p.Name].F {
				if p.Kind == ir.StatePort { // variances
					inputs[p.Name].F[i] = 1 + x
				}
			}
		}
		tolerance := func(int, ir.DType) irtest.Tolerance { return irtest.Tolerance{Abs: 1e-4, Rel: 1e-4} }
		if err := w.addAs(caseJSON{Kind: "network", Name: n.name}, g, run, inputs, tolerance); err != nil {
			return err
		}
	}
	return nil
}
