package nn_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// sequences are models that run over a whole sequence, or over a few positions at a time with a
// cache.
var sequences = map[string]func(b *ir.Builder, x ir.Value) ir.Value{
	"attention": func(b *ir.Builder, x ir.Value) ir.Value {
		x = nn.PositionalEmbedding(b, x, 12)
		return nn.Attention(b, x, 2, nn.AttentionOptions{Causal: true})
	},
	"grouped": func(b *ir.Builder, x ir.Value) ir.Value {
		x = nn.SinusoidalEncoding(b, x)
		return nn.Attention(b, x, 4, nn.AttentionOptions{Causal: true, KVHeads: 2, Window: 3, Rope: &nn.RopeOptions{Interleaved: true}, NormQK: true, Softcap: 3})
	},
	"transformer": func(b *ir.Builder, x ir.Value) ir.Value {
		return nn.Stack(b, "h", 2, x, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Causal: true, Rope: &nn.RopeOptions{Size: 2}, RMSNorm: true, Activation: nn.SwiGlu, Hidden: 6})
		})
	},
	"lstm": func(b *ir.Builder, x ir.Value) ir.Value {
		y, _, _ := nn.LSTM(b, x, 3, nn.RecurrentOptions{Layers: 2})
		return y
	},
	"gru":   func(b *ir.Builder, x ir.Value) ir.Value { y, _ := nn.GRU(b, x, 3); return y },
	"mamba": func(b *ir.Builder, x ir.Value) ir.Value { return nn.Mamba(b, x, nn.MambaOptions{State: 3}) },
}

// TestCachesContinueSequences runs a sequence of seven positions at once, and with a cache as three
// and then one by one: the results are the same. Setting the count to 0 restarts.
func TestCachesContinueSequences(t *testing.T) {
	const rows, positions, wide = 2, 7, 8
	for name, f := range sequences {
		whole := must(ir.Build(name, func(b *ir.Builder) {
			nn.Infer(b)
			b.Output("y", f(b, b.Input("x", ir.F32, ir.Dims(rows, positions, wide)...)))
		}))
		part := func(n int) *ir.Graph {
			return must(ir.Build(name, func(b *ir.Builder) {
				nn.Infer(b)
				nn.Cache(b, 12)
				b.Output("y", f(b, b.Input("x", ir.F32, ir.Dims(rows, n, wide)...)))
			}))
		}
		p := compiled(t, ir.Entry{Name: "whole", Graph: whole}, ir.Entry{Name: "three", Graph: part(3)}, ir.Entry{Name: "one", Graph: part(1)})
		check(p.Load(ctx, values(t, whole)))
		x := pattern(rows * positions * wide)
		want := floats(t, p, "whole", "y", rlx.Inputs{"x": rlx.Float32s(x, rows, positions, wide)})
		out := len(want) / rows / positions
		run := func(entry string, from, n int) {
			var in, expected []float32
			for r := range rows {
				in = append(in, x[(r*positions+from)*wide:][:n*wide]...)
				expected = append(expected, want[(r*positions+from)*out:][:n*out]...)
			}
			close32(t, name, floats(t, p, entry, "y", rlx.Inputs{"x": rlx.Float32s(in, rows, n, wide)}), expected, 2e-5)
		}
		for range 2 {
			run("three", 0, 3)
			for at := 3; at < positions; at++ {
				run("one", at, 1)
			}
			check(p.Set(ctx, nn.CacheState, rlx.Int32(0)))
		}
	}
}

// TestCachesOfHalfPrecision keeps keys and values in bf16: a transformer's results differ by their rounding
// alone, and an integer type is refused.
func TestCachesOfHalfPrecision(t *testing.T) {
	of := func(d ir.DType) (*ir.Graph, error) {
		return ir.Build("cached", func(b *ir.Builder) {
			nn.Infer(b)
			nn.Cache(b, 5, nn.CacheOptions{DType: d})
			b.Output("y", sequences["transformer"](b, b.Input("x", ir.F32, ir.Dims(2, 3, 8)...)))
		})
	}
	in := rlx.Inputs{"x": rlx.Float32s(pattern(2*3*8), 2, 3, 8)}
	results := map[ir.DType][]float32{}
	for _, d := range []ir.DType{ir.F32, ir.BF16} {
		g := must(of(d))
		for _, p := range g.Ports() {
			if dims := p.Value.Shape(); p.Kind == ir.StatePort && len(dims) >= 4 && p.Value.DType() != d {
				t.Errorf("%s is %s, want %s", p.Name, p.Value.Type(), d)
			}
		}
		p := compiled(t, ir.Entry{Name: "f", Graph: g})
		check(p.Load(ctx, values(t, g)))
		results[d] = floats(t, p, "f", "y", in)
	}
	close32(t, "bf16", results[ir.BF16], results[ir.F32], 2e-2)
	if slices.Equal(results[ir.BF16], results[ir.F32]) {
		t.Error("nothing is rounded")
	}
	if _, err := of(ir.I32); !errors.Is(err, ir.ErrDType) {
		t.Errorf("a cache of i32: %v", err)
	}
}

// TestCachesEnd fills a cache: the run past its end fails, and the error is about the cache, also with an embedding of
// positions, whose table ends there, too.
func TestCachesEnd(t *testing.T) {
	g := must(ir.Build("cached", func(b *ir.Builder) {
		nn.Cache(b, 4)
		x := nn.PositionalEmbedding(b, b.Input("x", ir.F32, ir.Dims(1, 3, 4)...), 4)
		b.Output("y", nn.Attention(b, x, 2, nn.AttentionOptions{Causal: true}))
	}))
	p := compiled(t, ir.Entry{Name: "f", Graph: g})
	check(p.Load(ctx, values(t, g)))
	in := rlx.Inputs{"x": rlx.Float32s(pattern(12), 1, 3, 4)}
	floats(t, p, "f", "y", in)
	if _, err := p.Call(ctx, "f", in); !errors.Is(err, ir.ErrIndex) || !strings.HasSuffix(err.Error(), "position in the cache is not in [0, 4)") {
		t.Errorf("six positions in a cache of four: %v", err)
	}
	if _, err := ir.Build("long", func(b *ir.Builder) {
		nn.Cache(b, 2)
		nn.Attention(b, b.Input("x", ir.F32, ir.Dims(1, 3, 4)...), 2, nn.AttentionOptions{Causal: true})
	}); !errors.Is(err, ir.ErrShape) || !strings.Contains(err.Error(), "3 positions are added to the cache: its length is 2") {
		t.Errorf("a run of three positions for a cache of two: %v", err)
	}
}

// TestAttentionWithDropoutIsAttention writes scores out with a rate so small that nothing is dropped
// and compares with the fused op, over masks of all kinds.
func TestAttentionWithDropoutIsAttention(t *testing.T) {
	boolean := func(b *ir.Builder) ir.Value { return ops.WindowMask(b, ir.N(5), ir.N(5), 2, 1) }
	for name, o := range map[string]func(b *ir.Builder) nn.AttentionOptions{
		"plain":  func(*ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{} },
		"causal": func(*ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{Causal: true} },
		"window": func(*ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{Causal: true, Window: 2, KVHeads: 2} },
		"around": func(*ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{Window: 2, Softcap: 2} },
		"mask":   func(b *ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{Mask: boolean(b)} },
		"alibi":  func(b *ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{ALiBi: true, Causal: true} },
		"both":   func(b *ir.Builder) nn.AttentionOptions { return nn.AttentionOptions{ALiBi: true, Mask: boolean(b)} },
		"numbers": func(b *ir.Builder) nn.AttentionOptions {
			return nn.AttentionOptions{ALiBi: true, Mask: ops.Iota(b, ir.F32, 1, ir.Dims(5, 5)...), Scale: 0.3}
		},
	} {
		form := func(rate float64) *ir.Graph {
			return must(ir.Build(name, func(b *ir.Builder) {
				nn.Train(b)
				options := o(b)
				options.Dropout = rate
				b.Output("y", nn.Attention(b, b.Input("x", ir.F32, ir.Dims(2, 5, 8)...), 4, options))
			}))
		}
		fused := form(0)
		weights := values(t, fused)
		in := rlx.Inputs{"x": rlx.Float32s(pattern(80), 2, 5, 8)}
		var want []float32
		for _, g := range []*ir.Graph{fused, form(1e-9)} {
			p := compiled(t, ir.Entry{Name: "f", Graph: g})
			check(p.Load(ctx, weights))
			got := floats(t, p, "f", "y", in)
			if want == nil {
				want = got
			}
			close32(t, name, got, want, 1e-5)
		}
	}
}
