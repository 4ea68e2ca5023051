//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native"
	nativelm "github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
)

// Tokens of a prompt and of a result of BenchmarkServing, and requests of a user, one after the other.
const (
	servedPrompt   = 512
	servedResult   = 128
	servedRequests = 2
)

// BenchmarkServing times users who ask at once for texts, each with prompts of its own, by model and by the weights'
// storage, in bf16 but for those named f32: tokens of all results in a second, the median wait for the first token, and the
// median time of a later one.
func BenchmarkServing(b *testing.B) {
	gpu(b)
	session, err := rlx.Open("cuda")
	must(b, err)
	defer func() { must(b, session.Close(b.Context())) }()
	for _, c := range []struct {
		model, weights string
		storage        nn.Storage
		precision      rlx.Precision
	}{
		{"smollm2_135M", "q4_1", nn.Storage{Format: "q4_1"}, rlx.MixedBF16},
		{"llama_1B", "bf16", nn.Storage{OutIn: true, DType: ir.BF16}, rlx.MixedBF16},
		{"llama_1B", "bf16_f32", nn.Storage{OutIn: true, DType: ir.BF16}, rlx.AsWritten},
		{"llama_1B", "q4_0", nn.Storage{Format: "q4_0"}, rlx.MixedBF16},
		{"llama_1B", "q4_0_f32", nn.Storage{Format: "q4_0"}, rlx.AsWritten},
		{"llama_8B", "bf16", nn.Storage{OutIn: true, DType: ir.BF16}, rlx.MixedBF16},
		{"llama_8B", "q4_0", nn.Storage{Format: "q4_0"}, rlx.MixedBF16},
	} {
		model := randomModel(b, languageModels[c.model], c.storage)
		for _, users := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s_%s/users=%d", c.model, c.weights, users), func(b *testing.B) { benchmarkServing(b, session, model, users, c.precision) })
		}
	}
}

func benchmarkServing(b *testing.B, s *rlx.Session, m generate.Model, users int, precision rlx.Precision) {
	begun := time.Now()
	e, err := generate.New(b.Context(), s, m, generate.Options{
		Slots: users, Context: servedPrompt + servedResult, Chunk: servedPrompt, Precision: precision,
	})
	must(b, err)
	defer func() { must(b, e.Close(context.Background())) }()
	opened := time.Since(begun)
	serveUsers(b, e, users, 1)
	var stats []generate.Stats
	b.ResetTimer()
	for range b.N {
		stats = append(stats, serveUsers(b, e, users, servedRequests)...)
	}
	median := func(of func(*generate.Stats) time.Duration) float64 {
		times := make([]time.Duration, len(stats))
		for i := range stats {
			times[i] = of(&stats[i])
		}
		slices.Sort(times)
		return times[len(times)/2].Seconds() * 1e3
	}
	b.ReportMetric(float64(len(stats)*servedResult)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(median(func(s *generate.Stats) time.Duration { return s.Waited + s.FirstToken }), "first-ms")
	b.ReportMetric(median(func(s *generate.Stats) time.Duration { return s.Decode / (servedResult - 1) }), "later-ms")
	b.ReportMetric(opened.Seconds(), "open-s")
	b.ReportMetric(0, "ns/op")
}

// serveUsers has each user make some requests, one after the other, and returns the stats of all.
func serveUsers(b *testing.B, e *generate.Engine, users, requests int) (all []generate.Stats) {
	var lock sync.Mutex
	var running sync.WaitGroup
	for range users {
		running.Go(func() {
			for range requests {
				q := generate.Request{Tokens: make([]int32, servedPrompt), MaxTokens: servedResult}
				for i := range q.Tokens {
					q.Tokens[i] = rand.Int32N(int32(e.Model().Config.Vocabulary))
				}
				r, err := e.Complete(b.Context(), q)
				lock.Lock()
				if err != nil {
					b.Error(err)
				}
				all = append(all, r.Stats)
				lock.Unlock()
			}
		})
	}
	running.Wait()
	return all
}

// randomModel returns a decoder whose parameters repeat a million random numbers.
func randomModel(b *testing.B, c lm.Config, s nn.Storage) generate.Model {
	decoder := func(b *ir.Builder, tokens ir.Value, o ...lm.DecoderOptions) (out ir.Value) {
		nn.Stored(b, func(string) nn.Storage { return s }, func() { out = lm.Decoder(b, c, tokens, o...) })
		return out
	}
	g, err := lmGraph(c, s, 1)
	must(b, err)
	return generate.Model{Config: c, Decoder: decoder, Set: func(ctx context.Context, p nativelm.Setter) error {
		for _, port := range g.Ports() {
			if port.Kind != ir.ParamPort {
				continue
			}
			if err := p.Set(ctx, port.Name, randomParameter(port.Value.Type())); err != nil {
				return err
			}
		}
		return nil
	}}
}

// randomParameter returns numbers like those of lmFill.
func randomParameter(t ir.Type) native.Tensor {
	dims, _ := t.Shape.Ints() // of a parameter, which has no open sizes
	out, random := native.Zeros(t.DType, dims...), rand.New(rand.NewPCG(7, 7))
	data, period := out.Data, 1<<20
	for i := 0; i < min(period, len(data)); i++ {
		data[i] = byte(random.Uint32()) & 0x3b
	}
	if t.DType != ir.U8 { // of small absolute value and either sign: the last byte has the sign and the exponent
		size := t.DType.Size()
		for i := size - 1; i < min(period, len(data)); i += size {
			data[i] = data[i]&1<<7 | 0x3b
		}
	}
	for done := period; done < len(data); done *= 2 {
		copy(data[done:], data[:done])
	}
	return out
}
