//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// languageModels are shapes of decoders, with random weights.
var languageModels = map[string]lm.Config{
	"llama_8B": {
		Architecture: "llama", Width: 4096, Hidden: 14336, Layers: 32, Heads: 32, KVHeads: 8, HeadSize: 128, Vocabulary: 128256, Context: 8192,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 500000, Size: 128}, Activation: nn.Silu, Gated: true,
	},
	"llama_1B": {
		Architecture: "llama", Width: 2048, Hidden: 8192, Layers: 16, Heads: 32, KVHeads: 8, HeadSize: 64, Vocabulary: 128256, Context: 8192,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 500000, Size: 64}, Activation: nn.Silu, Gated: true, Tied: true,
	},
	"smollm2_135M": {
		Architecture: "llama", Width: 576, Hidden: 1536, Layers: 30, Heads: 9, KVHeads: 3, HeadSize: 64, Vocabulary: 49152, Context: 8192,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 100000, Size: 64}, Activation: nn.Silu, Gated: true, Tied: true,
	},
	"mixtral_8_layers": { // of 32
		Architecture: "mixtral", Width: 4096, Hidden: 14336, Layers: 8, Heads: 32, KVHeads: 8, HeadSize: 128, Vocabulary: 32000, Context: 8192,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 1e6, Size: 128}, Activation: nn.Silu, Gated: true, Experts: 8, ExpertsPerToken: 2,
	},
}

// The positions of the cache and of a page of it, those before a token that is decoded, and those of a prompt.
const (
	lmRoom   = 4096
	lmPage   = 128
	lmPast   = 1024
	lmPrompt = 2048
)

// BenchmarkLanguageModels times tokens that are decoded one after the other, and a prompt, by shape and by
// what the weights are stored as. Verbose, it prints the time of each part.
func BenchmarkLanguageModels(b *testing.B) {
	d := gpu(b)
	for _, c := range []struct {
		model, weights string
		storage        nn.Storage
	}{
		{"llama_8B", "bf16", nn.Storage{OutIn: true, DType: ir.BF16}},
		{"llama_8B", "q4_0", nn.Storage{Format: "q4_0"}},
		{"llama_8B", "q4_0_8", nn.Storage{Format: "q4_0", ActivationBits: 8}},
		{"llama_1B", "bf16", nn.Storage{OutIn: true, DType: ir.BF16}},
		{"llama_1B", "q4_0", nn.Storage{Format: "q4_0"}},
		{"smollm2_135M", "bf16", nn.Storage{OutIn: true, DType: ir.BF16}},
		{"smollm2_135M", "q4_1", nn.Storage{Format: "q4_1"}},
		{"mixtral_8_layers", "q4_0", nn.Storage{Format: "q4_0"}},
	} {
		b.Run(c.model+"_"+c.weights, func(b *testing.B) { benchmarkLM(b, d, languageModels[c.model], c.storage) })
	}
}

func benchmarkLM(b *testing.B, d native.Backend, c lm.Config, s nn.Storage) {
	ctx := context.Background()
	decode, err := lmGraph(c, s, 1)
	must(b, err)
	prefill, err := lmGraph(c, s, lmPrompt)
	must(b, err)
	prefill, err = passes.Mixed(prefill, ir.BF16)
	must(b, err)
	fill, err := lmFill(decode)
	must(b, err)
	m, err := ir.NewModule("lm", ir.Entry{Name: "decode", Graph: decode}, ir.Entry{Name: "prefill", Graph: prefill}, ir.Entry{Name: "fill", Graph: fill})
	must(b, err)
	p, err := d.Compile(ctx, m, native.Options{})
	must(b, err)
	defer func() { must(b, p.Close(ctx)) }()
	must(b, cuda.Replay(p, "fill", 1))
	for _, e := range []struct {
		name         string
		tokens, past int
		each         int // runs for one of b.N
	}{{"prefill", lmPrompt, 0, 1}, {"decode", 1, lmPast, 32}} {
		b.Run(e.name, func(b *testing.B) {
			in := map[string]native.Tensor{
				"tokens": native.Zeros(ir.I32, 1, e.tokens), "past": native.Zeros(ir.I32, 1), "table": lmTable(),
			}
			tokens, err := in["tokens"].Int32s()
			must(b, err)
			for i := range tokens {
				tokens[i] = int32(i * 7919 % c.Vocabulary)
			}
			past, err := in["past"].Int32s()
			must(b, err)
			past[0] = int32(e.past)
			bound, err := p.Bind(ctx, e.name, in, nil)
			must(b, err)
			must(b, bound.Start(ctx))
			must(b, cuda.Replay(p, e.name, 2))
			b.ResetTimer()
			must(b, cuda.Replay(p, e.name, b.N*e.each))
			b.ReportMetric(float64(b.N*e.each*e.tokens)/b.Elapsed().Seconds(), "tokens/s")
			if e.name == "decode" { // the first entry
				b.ReportMetric(float64(cuda.Launches(p)), "launches")
			}
			if testing.Verbose() {
				writeProfileOf(b, p, e.name)
			}
		})
	}
}

// lmTable returns the pages of the sequence, i32[1, pages]: all, the last one first.
func lmTable() native.Tensor {
	table := make([]int32, lmRoom/lmPage)
	for i := range table {
		table[i] = int32(len(table) - 1 - i)
	}
	return native.Int32s(table, 1, len(table))
}

// lmGraph returns the graph that takes tokens of one sequence and returns the most likely next one.
func lmGraph(c lm.Config, s nn.Storage, tokens int) (*ir.Graph, error) {
	return ir.Build("lm", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, func(string) nn.Storage { return s }, func() {
			nn.Cache(b, lmRoom, nn.CacheOptions{
				Past: b.Input("past", ir.I32, ir.N(1)), Table: b.Input("table", ir.I32, ir.Dims(1, lmRoom/lmPage)...), Rows: lmRoom / lmPage, Page: lmPage, DType: ir.BF16,
			})
			b.Output("next", ops.ArgMax(b, lm.Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, tokens)...), lm.DecoderOptions{Last: true}), -1))
		})
	})
}

// lmFill returns a graph that sets the parameters of another to random numbers. Bytes are of blocks: those
// below 60 are no scales above 1.
func lmFill(g *ir.Graph) (*ir.Graph, error) {
	return ir.Build("fill", func(b *ir.Builder) {
		key := ops.Key(b, 7)
		for i, p := range g.Ports() {
			if p.Kind != ir.ParamPort {
				continue
			}
			t := p.Value.Type()
			own := ops.FoldIn(b, key, ops.Const(b, ir.U32, float64(i)))
			b.State(p.Name, t.DType, t.Shape...)
			x := ops.And(b, ops.RandomBits(b, own, t.Shape...), ops.Const(b, ir.U32, 0x3b))
			if t.DType != ir.U8 { // of small absolute value, without a mean
				x = ops.Mul(b, ops.Sub(b, ops.Convert(b, x, ir.F32), ops.Const(b, ir.F32, 0x1d)), ops.Const(b, ir.F32, 1e-3))
			}
			b.SetState(p.Name, ops.Convert(b, x, t.DType))
		}
	})
}
