//go:build unix

// Command compile times the compiler as a native program, to compare with js/bench/compile.mjs, which
// times in a page: from a graph's text form to the bytes of its plan.
//
//	go run ./js/bench/compile FOLDER ROUNDS [NAME]...
//
// writes the graphs, training steps of language models, to FOLDER, and prints a line of JSON
// for each: name, nodes, the beginning of the plan's hash, and for each round the milliseconds that passed and those of
// processor time, of all threads. Where names are given it does so for these alone, which may
// also be FAMILY-NODES, a graph of [irtest.Families], such as branches-100000, or a token of a language model with
// packed weights: smollm2-135M, qwen2-0.5B or llama-8B. The flag -target is webgpu, warps (with subgroups of 32) or cuda (of
// an H200), and -profile the file of a CPU profile.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"math"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// What a device must allow for the tensors of GPT-2; compile.mjs has the same.
const (
	bindingBytes = 2<<30 - 4
	bufferBytes  = min(4<<30-4, math.MaxInt) // where an int has 32 bits
)

type result struct {
	Name   string `json:"name"`
	Nodes  int    `json:"nodes"`
	Plan   string `json:"plan"` // the SHA-256 of the plan begins so: equal before and after a change that keeps plans
	Rounds []took `json:"rounds"`
}

// took is the time of a compilation, in milliseconds.
type took struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
}

func main() {
	log.SetFlags(0)
	to := flag.String("target", "webgpu", "webgpu, warps or cuda")
	profile := flag.String("profile", "", "the file of a CPU profile")
	flag.Parse()
	if flag.NArg() < 2 {
		log.Fatal("usage: compile [-target TARGET] [-profile FILE] FOLDER ROUNDS [NAME]...")
	}
	rounds, err := strconv.Atoi(flag.Arg(1))
	if err != nil || rounds < 1 {
		log.Fatalf("%q is no number of rounds", flag.Arg(1))
	}
	t, ok := targets[*to]
	if !ok {
		log.Fatalf("%q is no target", *to)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			log.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	names := flag.Args()[2:]
	if len(names) == 0 {
		names = []string{"lm", "characters", "gpt2"}
	}
	for _, name := range names {
		if err := measure(flag.Arg(0), name, rounds, t); err != nil {
			log.Printf("%s: %v", name, err)
		}
	}
}

var models = map[string]irtest.GPT{
	"lm":         {Vocab: 65, Context: 16, Width: 32, Heads: 4, Blocks: 1, Batch: 16},
	"characters": irtest.CharacterGPT,
	"gpt2":       irtest.GPT2,
}

// target is the target of the compiled graphs.
type target struct {
	plan    plan.Target
	printer plan.Printer
}

var targets = map[string]target{
	"webgpu": {plan.WebGPU(), wgsl.Printer{}},
	"warps":  {plan.WebGPU().WithSubgroups(loop.Warp), wgsl.Printer{}},
	"cuda":   {schedtest.Hopper(), cudacpp.Printer{Waits: true}},
}

// llama returns a decoder of the architecture of that name.
func llama(width, hidden, layers, heads, kvHeads, headSize, vocabulary int) lm.Config {
	return lm.Config{
		Architecture: "llama", Width: width, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: kvHeads, HeadSize: headSize, Vocabulary: vocabulary,
		Context: 8192, Epsilon: 1e-5, Rope: &lm.Rope{Base: 1e5, Size: headSize}, Activation: nn.Silu, Gated: true, Tied: true,
	}
}

var languageModels = map[string]lm.Config{
	"smollm2-135M": llama(576, 1536, 30, 9, 3, 64, 49152),
	"qwen2-0.5B":   llama(896, 4864, 24, 14, 2, 64, 151936),
	"llama-8B":     llama(4096, 14336, 32, 32, 8, 128, 128256),
}

// packed is the storage of weights as in files of llama.cpp: q4_1, and q8_0 for the table.
func packed(name string) nn.Storage {
	if strings.Contains(name, "embed") {
		return nn.Storage{Format: "q8_0"}
	}
	return nn.Storage{Format: "q4_1"}
}

// token returns the graph of a token of a language model, with weights of a storage by name.
func token(c lm.Config, stored func(name string) nn.Storage) (*ir.Graph, error) {
	const context = 2048
	return ir.Build("decode", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, stored, func() {
			nn.Cache(b, context, nn.CacheOptions{Past: b.Input("past", ir.I32, ir.N(1))})
			b.Output("next", ops.ArgMax(b, lm.Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 1)...), lm.DecoderOptions{Last: true, Context: context}), -1))
		})
	})
}

// graphOf returns the graph of a name.
func graphOf(name string) (*ir.Graph, error) {
	if model, ok := models[name]; ok {
		loss, err := model.Loss()
		if err != nil {
			return nil, err
		}
		return optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
	}
	if model, ok := languageModels[name]; ok {
		return token(model, packed)
	}
	family, size, _ := strings.Cut(name, "-")
	nodes, err := strconv.Atoi(size)
	i := slices.IndexFunc(irtest.Families, func(f irtest.Growing) bool { return f.Name == family })
	if err != nil || i < 0 {
		return nil, errors.New("no model, and no family and number of nodes")
	}
	return irtest.Families[i].Graph(nodes)
}

func measure(folder, name string, rounds int, t target) error {
	step, err := graphOf(name)
	if err != nil {
		return err
	}
	text := step.String()
	if err := os.WriteFile(filepath.Join(folder, "compile-"+name+".txt"), []byte(text), 0o644); err != nil {
		return err
	}
	r := result{Name: name, Nodes: len(step.Nodes())}
	for range rounds {
		begun, used := time.Now(), processorTime()
		file, err := compile(text, t)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(file)
		r.Plan = hex.EncodeToString(sum[:6])
		r.Rounds = append(r.Rounds, took{milliseconds(time.Since(begun)), milliseconds(processorTime() - used)})
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// processorTime is the CPU time of this process's threads so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func compile(text string, t target) ([]byte, error) {
	g, err := ir.Parse(text)
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("main", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return nil, err
	}
	t.plan.Limits.BindingBytes, t.plan.Limits.BufferBytes = bindingBytes, bufferBytes
	p, err := plan.Compile(m, t.plan, t.printer)
	if err != nil {
		return nil, err
	}
	return plan.Encode(p)
}
