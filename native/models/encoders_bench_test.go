package models_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irmodels "github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
)

// BenchmarkEncoders reports the milliseconds of a run of BERT-base, ViT-B/16 and the encoder of Whisper-tiny with its
// spectrogram, with random weights on the CPU, the
// best of all runs; testdata/peers.py has the same in PyTorch.
func BenchmarkEncoders(b *testing.B) {
	for _, c := range []struct {
		name, config string
		in           func(c irmodels.Config) rlx.Inputs
	}{
		{"bert-base/1x128", `{"model_type": "bert"}`, func(irmodels.Config) rlx.Inputs { return tokens(1, 128) }},
		{"bert-base/8x128", `{"model_type": "bert"}`, func(irmodels.Config) rlx.Inputs { return tokens(8, 128) }},
		{"vit-base/1", `{"model_type": "vit"}`, func(c irmodels.Config) rlx.Inputs {
			return rlx.Inputs{"pixels": rlx.Float32s(noise(3*224*224, 1), 1, 3, 224, 224)}
		}},
		{"whisper-tiny/30s", `{"model_type": "whisper"}`, func(c irmodels.Config) rlx.Inputs {
			return rlx.Inputs{"sound": rlx.Float32s(noise(c.Speech.SoundLength(), 0.1), 1, c.Speech.SoundLength())}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			config, err := irmodels.ReadConfig(strings.NewReader(c.config))
			if err != nil {
				b.Fatal(err)
			}
			in := c.in(config)
			p := random(b, func(g *ir.Builder) {
				switch config.Kind() {
				case irmodels.SpeechKind:
					mels := irmodels.LogMel(g, *config.Speech, g.Input("sound", ir.F32, ir.Dims(in["sound"].Dims...)...))
					g.Output("hidden", irmodels.SpeechEncoder(g, *config.Speech, mels))
				case irmodels.ImageKind:
					g.Output("hidden", irmodels.ImageEncoder(g, *config.Image, g.Input("pixels", ir.F32, ir.Dims(in["pixels"].Dims...)...)))
				default:
					size := ir.Dims(in["tokens"].Dims...)
					g.Output("hidden", irmodels.TextEncoder(g, *config.Text, g.Input("tokens", ir.I32, size...), irmodels.TextOptions{Mask: g.Input("mask", ir.I32, size...)}))
				}
			})
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				if _, err := p.Call(b.Context(), "encode", in); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(best)/1e6, "ms")
		})
	}
}

// tokens are texts without padding.
func tokens(batch, time int) rlx.Inputs {
	ids, mask := make([]int32, batch*time), make([]int32, batch*time)
	for i := range ids {
		ids[i], mask[i] = int32(i*7919%30000), 1
	}
	return rlx.Inputs{"tokens": rlx.Int32s(ids, batch, time), "mask": rlx.Int32s(mask, batch, time)}
}

// noise are n normal numbers of a deviation.
func noise(n int, deviation float64) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * deviation)
	}
	return x
}

// random compiles a graph on the CPU with random weights as files have them.
func random(b *testing.B, f func(b *ir.Builder)) *rlx.Program {
	b.Helper()
	g, err := ir.Build("encode", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, func(string) nn.Storage { return nn.Storage{OutIn: true} }, func() { f(b) })
	})
	if err != nil {
		b.Fatal(err)
	}
	m, err := ir.NewModule("encoder", ir.Entry{Name: "encode", Graph: g})
	if err != nil {
		b.Fatal(err)
	}
	p, err := cpu(b).Compile(b.Context(), m)
	if err != nil {
		b.Fatal(err)
	}
	for _, slot := range p.Persistent() {
		n := 1
		for _, d := range slot.Dims {
			n *= d
		}
		if err := p.Set(b.Context(), slot.Name, rlx.Float32s(noise(n, 0.02), slot.Dims...)); err != nil {
			b.Fatal(err)
		}
	}
	return p
}
