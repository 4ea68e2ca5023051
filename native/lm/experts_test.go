package lm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/lm"
)

// mixtures are small models with experts. Rows of their matrices are whole blocks.
var mixtures = map[string]irlm.Config{
	"mixtral": {
		Architecture: "mixtral", Width: 64, Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadSize: 16, Vocabulary: 96, Context: 128,
		Epsilon: 1e-5, Rope: &irlm.Rope{Base: 1e4, Size: 16}, Activation: nn.Silu, Gated: true, Experts: 5, ExpertsPerToken: 2,
	},
	"qwen2_moe": {
		Architecture: "qwen2_moe", Width: 32, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 2, HeadSize: 16, Vocabulary: 64, Context: 128, QKVBias: true,
		Epsilon: 1e-6, Rope: &irlm.Rope{Base: 1e4, Size: 16}, Activation: nn.Silu, Gated: true, Experts: 7, ExpertsPerToken: 3, RawShares: true, SharedHidden: 96,
	},
}

// randomTensors are the tensors of a model in f32, with random elements.
type randomTensors map[string][]int

func randomOf(t *testing.T, c irlm.Config) randomTensors {
	t.Helper()
	g, err := ir.Build("model", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, func(string) nn.Storage { return nn.Storage{OutIn: true} }, func() {
			b.Output("logits", irlm.Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 1)...)))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	out := randomTensors{}
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			out[strings.ReplaceAll(p.Name, "/", ".")], _ = p.Value.Shape().Ints()
		}
	}
	return out
}

func (r randomTensors) GGUF() bool { return false }

func (r randomTensors) Names() (names []string) {
	for name := range r {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r randomTensors) Info(name string) (irlm.TensorInfo, bool) {
	dims, ok := r[name]
	return irlm.TensorInfo{DType: ir.F32, Dims: dims}, ok
}

func (r randomTensors) Bytes(name string) ([]byte, error) {
	size := 1
	for _, n := range r[name] {
		size *= n
	}
	rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)/2])))
	var out []byte
	for range size {
		x := rng.NormFloat64() / math.Sqrt(float64(r[name][len(r[name])-1]))
		if strings.Contains(name, "norm") {
			x++
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
	}
	return out, nil
}

// writeMixture writes a model with matrices of a type to a GGUF file.
func writeMixture(t *testing.T, c irlm.Config, packed gguf.Type) (path string) {
	t.Helper()
	metadata, entries, err := irlm.ToGGUF(c, randomOf(t, c), irlm.GGUFOptions{Type: func(string, []int, gguf.Type) gguf.Type { return packed }})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, entries); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPackedExperts holds models with experts that stay packed, all those of a layer in one parameter, to the same file with its
// weights unpacked, whose experts have parameters of their own: a prompt whose tokens fill several blocks of an expert, chunks and single
// tokens.
func TestPackedExperts(t *testing.T) {
	e := expected{prompt: make([]int32, 70), greedy: make([]int32, chunk)}
	for i := range e.prompt {
		e.prompt[i] = int32(1 + i*i%60)
	}
	for name, c := range mixtures {
		for _, packed := range []gguf.Type{gguf.Q8_0, gguf.Q4_0} {
			t.Run(fmt.Sprint(name, packed), func(t *testing.T) {
				path := writeMixture(t, c, packed)
				m, unpacked := load(t, path), load(t, path, irlm.BindOptions{Unpack: true})
				checkJoined(t, m, path)
				want := logits(t, program(t, unpacked, e, false), "whole", e.prompt)
				p := program(t, m, e, true)
				near(t, "whole", logits(t, p, "whole", e.prompt), want)
				for from := 0; from < len(e.prompt)-chunk; from += chunk {
					near(t, fmt.Sprintf("chunk at %d", from), logits(t, p, "chunk", e.prompt[from:][:chunk]), want[from*c.Vocabulary:][:chunk*c.Vocabulary])
				}
				for i := len(e.prompt) - chunk; i < len(e.prompt); i++ {
					near(t, fmt.Sprintf("token %d", i), logits(t, p, "one", e.prompt[i:][:1]), want[i*c.Vocabulary:][:c.Vocabulary])
				}
			})
		}
	}
}

// checkJoined fails unless a model's parameters have the bytes of the file's tensors, with one for each matrix of the experts of a
// layer.
func checkJoined(t *testing.T, m *lm.Model, path string) {
	t.Helper()
	sum, joined := 0, 0
	for _, name := range m.Weights.Names() {
		data, err := m.Weights.Bytes(name)
		if err != nil {
			t.Fatal(err)
		}
		sum += len(data)
		ty, _ := m.Weights.Type(name)
		if want := []ir.Dim{ir.N(m.Config.Experts)}; strings.Contains(name, "/experts/") {
			joined++
			if ty.DType != ir.U8 || ty.Shape.Rank() != 3 || ty.Shape[0] != want[0] {
				t.Errorf("%s is %s", name, ty)
			}
		}
	}
	if want := 3 * m.Config.Layers; joined != want {
		t.Errorf("%d parameters of experts, want %d", joined, want)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if size := int(info.Size()); sum > size || sum < size*8/10 {
		t.Errorf("the parameters have %d bytes, the file %d", sum, size)
	}
}

// TestReadsOfPackedExperts counts what the kernels of a step for one token read: it depends little on how many experts there are, of which the
// token uses two.
func TestReadsOfPackedExperts(t *testing.T) {
	const weights = 3 * 128 * 256 // of an expert
	read := func(experts int) (sum int) {
		c := mixtures["mixtral"]
		c.Width, c.Hidden, c.Layers, c.Experts, c.ExpertsPerToken = 128, 256, 1, experts, 2
		g, err := ir.Build("step", func(b *ir.Builder) {
			nn.Infer(b)
			nn.Stored(b, func(string) nn.Storage { return nn.Storage{Format: "q4_0"} }, func() {
				b.Output("logits", irlm.Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 1)...)))
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		module, err := ir.NewModule("model", ir.Entry{Name: "step", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		s, err := plansim.Open(module, plan.WebGPU())
		if err != nil {
			t.Fatal(err)
		}
		s.Counted = func(_ *loop.Kernel, c sim.Counts) { sum += c.Read }
		if _, err := s.Run("step", map[string]*ir.Array{"tokens": ir.NewArray(ir.I32, 1, 1)}); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	few, many := read(4), read(16)
	if packed := 2 * weights / 32 * 18; few < packed {
		t.Errorf("with 4 experts %d bytes are read, less than the %d of two", few, packed)
	}
	if many > few*11/10 {
		t.Errorf("with 16 experts %d bytes are read, with 4 %d", many, few)
	}
}

// TestAdaptersOfPackedExperts holds the gradient of an adapter of the first attention, which passes through experts that stay packed, to that
// through unpacked ones.
func TestAdaptersOfPackedExperts(t *testing.T) {
	const trained, tokens = "model/layers/0/self_attn/q_proj/lora_B/weight", 12
	path := writeMixture(t, mixtures["mixtral"], gguf.Q8_0)
	gradient := func(o ...irlm.BindOptions) []float64 {
		m := load(t, path, o...)
		g, err := ir.Build("loss", func(b *ir.Builder) {
			nn.Train(b)
			in, next := b.Input("tokens", ir.I32, ir.Dims(1, tokens)...), b.Input("next", ir.I32, ir.Dims(1, tokens)...)
			nn.LoRA(b, nn.LoRAOptions{Rank: 2}, func() { b.Output("loss", m.Loss(b, in, next)) })
		})
		if err == nil {
			g, err = autodiff.Grad(g, "loss", trained)
		}
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]*ir.Array{}
		for _, p := range g.Ports() {
			dims, _ := p.Value.Shape().Ints()
			a := ir.NewArray(p.Value.DType(), dims...)
			for i := range a.F {
				a.F[i] = float64(i%7-3) / 10
			}
			for i := range a.I {
				a.I[i] = int64(1 + i*5%60)
			}
			if strings.HasSuffix(p.Name, "lora_B/weight") {
				a = ir.NewArray(p.Value.DType(), dims...)
			}
			if ty, ok := m.Weights.Type(p.Name); ok {
				data, err := m.Weights.Bytes(p.Name)
				if err == nil {
					a, err = ir.ArrayOf(ty, data)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			values[p.Name] = a
		}
		out, err := ir.Eval(g, values, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return out[len(out)-1].F
	}
	packed, want, largest := gradient(), gradient(irlm.BindOptions{Unpack: true}), 0.
	for i, x := range want {
		if largest = max(largest, math.Abs(x)); !(math.Abs(x-packed[i]) <= 1e-5) {
			t.Fatalf("element %d is %g, through unpacked experts %g", i, packed[i], x)
		}
	}
	if largest < 1e-3 {
		t.Errorf("the gradient is at most %g", largest)
	}
}
