package lm_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/lm"
)

// smolLM opens SmolLM2-135M-Instruct.Q4_1.gguf, which make test-lm downloads.
func smolLM(tb testing.TB, o ...irlm.BindOptions) *lm.Model {
	tb.Helper()
	path := os.Getenv("RLX_LM")
	var m *lm.Model
	err := errors.New("$RLX_LM names no GGUF file of SmolLM2: make test-lm does")
	if path != "" {
		m, err = lm.Load(path, o...)
	}
	backendtest.Require(tb, "lm", err)
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

// compiled returns a program with entries of the given numbers of tokens, which share a cache.
func compiled(tb testing.TB, m *lm.Model, entries map[string]int) *rlx.Program {
	tb.Helper()
	var list []ir.Entry
	for name, n := range entries {
		g, err := ir.Build(name, func(b *ir.Builder) {
			nn.Infer(b)
			nn.Cache(b, 512)
			b.Output("logits", m.Decoder(b, b.Input("tokens", ir.I32, ir.Dims(1, n)...), irlm.DecoderOptions{Last: true}))
		})
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, ir.Entry{Name: name, Graph: g})
	}
	module, err := ir.NewModule("smollm", list...)
	if err != nil {
		tb.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = session.Close(tb.Context()) })
	p, err := session.Compile(tb.Context(), module)
	if err == nil {
		err = m.Set(tb.Context(), p)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func last(tb testing.TB, p *rlx.Program, entry string, tokens ...int32) []float32 {
	tb.Helper()
	out, err := p.Call(tb.Context(), entry, rlx.Inputs{"tokens": rlx.Int32s(tokens, 1, len(tokens))})
	if err != nil {
		tb.Fatal(err)
	}
	x, err := out["logits"].Float32s()
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// TestSmolLM continues "The capital of France is" by the tokens of llama.cpp (node-llama-cpp
// 3.22.1, greedy) and compares: the best token is the same unless another is almost as good,
// because llama.cpp rounds activations to 8 bits. The largest logits at four positions are those of
// transformers 5.24.0, which unpacks the same file to f32.
func TestSmolLM(t *testing.T) {
	const margin = 0.5
	prompt := []int32{504, 3575, 282, 4649, 314}
	next := []int32{
		7042, 30, 198, 198, 504, 1797, 1918, 553, 253, 2155, 282, 4723, 216, 35, 33, 33, 2215, 701, 30, 198, 198, 504,
		1797, 1918, 553, 253, 2155, 282, 4723, 216, 35, 33, 33, 2215, 701, 30, 198, 198, 504, 1797, 1918, 553, 253,
	}
	exact := map[int]float64{0: 17.3713, 5: 14.6219, 10: 29.621, 17: 22.4911}
	p := compiled(t, smolLM(t), map[string]int{"prompt": len(prompt), "one": 1})
	logits, equal := last(t, p, "prompt", prompt...), 0
	for i, token := range next {
		best := argmax(logits)
		if best == token {
			equal++
		} else if gap := logits[best] - logits[token]; gap > margin {
			t.Errorf("token %d is %d, by %v more than %d of llama.cpp", i, best, gap, token)
		}
		if want, ok := exact[i]; ok && !(math.Abs(float64(logits[best])-want) <= 2e-3) {
			t.Errorf("the largest logit at %d is %v, want %v", i, logits[best], want)
		}
		logits = last(t, p, "one", token)
	}
	if equal < len(next)*9/10 {
		t.Errorf("%d of %d tokens are those of llama.cpp", equal, len(next))
	}
}

// BenchmarkSmolLM reports tokens per second of a prompt of 128 tokens and of single ones after it, the best of all
// runs, also with activations of 8 bits, and those of llama.cpp in turns with them, where make bench-lm installs it.
func BenchmarkSmolLM(b *testing.B) {
	for _, bits := range []int{0, 8} {
		b.Run(strconv.Itoa(bits), func(b *testing.B) { benchmarkSmolLM(b, irlm.BindOptions{ActivationBits: bits}) })
	}
}

// Sizes of BenchmarkSmolLM: tokens of the prompt, and tokens after it.
const benchPrompt, benchDecoded = 128, 64

func benchmarkSmolLM(b *testing.B, o irlm.BindOptions) {
	p := compiled(b, smolLM(b, o), map[string]int{"prompt": benchPrompt, "one": 1})
	prompt := make([]int32, benchPrompt)
	for i := range prompt {
		prompt[i] = int32(i*7919%40000 + 20)
	}
	peer := startLlama(b)
	var best, peers [2]float64
	rate := func(i, tokens int, f func()) {
		start := time.Now()
		f()
		best[i] = max(best[i], float64(tokens)/time.Since(start).Seconds())
	}
	for b.Loop() {
		if err := p.Set(b.Context(), nn.CacheState, rlx.Int32(0)); err != nil {
			b.Fatal(err)
		}
		rate(0, benchPrompt, func() { last(b, p, "prompt", prompt...) })
		for range benchDecoded {
			rate(1, 1, func() { last(b, p, "one", 504) })
		}
		if peer != nil {
			made := peer()
			peers = [2]float64{max(peers[0], made[0]), max(peers[1], made[1])}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range []string{"prompt", "decode"} {
		b.ReportMetric(best[i], name+"-tok/s")
		if peer != nil {
			b.ReportMetric(peers[i], "llama.cpp-"+name+"-tok/s")
		}
	}
}

// startLlama starts llama.cpp with a thread for each of Go's and returns what measures it once: tokens per second of a
// prompt and of single tokens. It returns nil if RLX_LLAMA names no folder with node-llama-cpp.
func startLlama(b *testing.B) func() [2]float64 {
	folder := os.Getenv("RLX_LLAMA")
	if folder == "" {
		return nil
	}
	cmd := exec.CommandContext(b.Context(), "node", "testdata/llama.mjs", folder, os.Getenv("RLX_LM"),
		strconv.Itoa(runtime.GOMAXPROCS(0)), strconv.Itoa(benchPrompt), strconv.Itoa(benchDecoded))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		b.Fatalf("llama.cpp does not start: %q", lines.Text())
	}
	return func() (rates [2]float64) {
		fmt.Fprintln(in)
		if !lines.Scan() {
			b.Fatal("llama.cpp has ended")
		}
		if _, err := fmt.Sscan(lines.Text(), &rates[0], &rates[1]); err != nil {
			b.Fatalf("llama.cpp: %q: %v", lines.Text(), err)
		}
		return rates
	}
}
