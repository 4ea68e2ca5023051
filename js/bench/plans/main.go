// Command plans compiles the benchmark's jobs (js/bench/jobs.mjs) ahead of time, for the
// runtime that has no compiler:
//
//	go run ./js/bench/plans FOLDER
//
// writes matmul-N, matvec-N, FUNCTION-ROWSxCOLS, mlp-LAYERS-BATCH,
// lm-CONTEXT-WIDTH-HEADS-BLOCKS-BATCH and attention-BATCH-HEADS-CONTEXT-DEPTH (forward and
// backward, causal; with -scores behind it where the scores are kept), each with the
// extension .rlxp, and of those that browsers without a GPU are measured at another for
// WebAssembly, with the extension .wasm.rlxp. Every plan has an entry "step", whose result is a state, and an entry
// "probe", whose output "first" is one element of that result: reading it waits for all
// steps and moves four bytes. The jobs that are bound by memory (js/bench/h200/memory.mjs)
// are memory-NAME, with an entry "fill" in place of the probe, and listed in memory.json.
// What is compiled in the page (js/bench/first.mjs) is first-NAME.txt.
//
//	go run ./js/bench/plans -trials FOLDER
//
// writes a plan for each way in which the larger groups of these jobs can be scheduled,
// and the list of them, trials.json, for js/bench/h200/tune.mjs. With -subgroups N before
// the folder, plans are for devices whose subgroups have N threads.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/wasm/simd"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// job is a module under the name of its file, for the smallest device unless it
// has tensors of up to a number of bytes.
type job struct {
	name  string
	make  func() (*ir.Module, error)
	bytes int
	// scoreBytes is that of the target, 0 for the usual one.
	scoreBytes int
	cpu        bool // there is a plan for WebAssembly too
}

// subgroup is the size of subgroups of the devices that plans are for, 0 where that is not known.
var subgroup int

func main() {
	log.SetFlags(0)
	trials := flag.Bool("trials", false, "write the schedules of each group")
	flag.IntVar(&subgroup, "subgroups", 0, "threads of a subgroup, 0 for devices of any size")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: plans [-trials] [-subgroups N] FOLDER")
	}
	write := []func(folder string) error{writeJobs, writeMemory, writeFirst}
	if *trials {
		write = []func(folder string) error{writeTrials}
	}
	for _, f := range write {
		if err := f(flag.Arg(0)); err != nil {
			log.Fatal(err)
		}
	}
}

func writeJobs(folder string) error { return writeAll(folder, jobs()) }

func (j job) target() plan.Target {
	t := plan.WebGPU()
	t.ScoreBytes = j.scoreBytes
	t.Limits.BindingBytes = max(t.Limits.BindingBytes, j.bytes)
	if subgroup > 0 {
		t = t.WithSubgroups(subgroup)
	}
	return t
}

func jobs() []job {
	all := []job{
		{name: "matvec-4096", make: func() (*ir.Module, error) { return product(4096, 1) }},
		{name: "softmax-4096x4096", make: func() (*ir.Module, error) { return rows(4096, 4096, functions["softmax"]) }},
		{name: "mlp-64-64-10-128", make: func() (*ir.Module, error) { return mlp([]int{64, 64, 10}, 128) }, cpu: true},
		{name: "mlp-64-128-64-10-128", make: func() (*ir.Module, error) { return mlp([]int{64, 128, 64, 10}, 128) }, cpu: true},
		{name: "cnn-128", make: func() (*ir.Module, error) { return cnn(128) }, cpu: true},
		{name: "softmax-1024x1024", make: func() (*ir.Module, error) { return rows(1024, 1024, functions["softmax"]) }, cpu: true},
	}
	for name, f := range functions {
		all = append(all, job{name: name + "-16384x4096", make: func() (*ir.Module, error) { return rows(16384, 4096, f) }, bytes: 256 << 20})
	}
	for _, c := range models {
		name := fmt.Sprintf("lm-%d-%d-%d-%d-%d", c.Context, c.Width, c.Heads, c.Blocks, c.Batch)
		all = append(all, job{name: name, make: func() (*ir.Module, error) { return language(c) }})
	}
	for _, n := range []int{256, 512, 1024, 2048, 4096} {
		all = append(all, job{name: fmt.Sprintf("matmul-%d", n), make: func() (*ir.Module, error) { return product(n, n) }, cpu: n <= 2048})
	}
	for _, batch := range []int{128, 4096} {
		all = append(all, job{name: fmt.Sprintf("mlp-784-512-512-10-%d", batch), make: func() (*ir.Module, error) {
			return mlp([]int{784, 512, 512, 10}, batch)
		}, cpu: batch == 128})
	}
	return append(all, attentionJobs()...)
}

// attentionJobs are attention in blocks, and with its scores in memory as long as
// these fit a binding of every device.
func attentionJobs() []job {
	var all []job
	for _, dims := range [][]int{{1, 8, 512, 64}, {1, 8, 1024, 64}, {1, 8, 2048, 64}, {1, 8, 4096, 64}, {1, 8, 16384, 64}, {1, 8, 2048, 128}} {
		name := fmt.Sprintf("attention-%d-%d-%d-%d", dims[0], dims[1], dims[2], dims[3])
		step := func() (*ir.Module, error) { return attention(dims...) }
		all = append(all, job{name: name, make: step, scoreBytes: 1})
		if 4*dims[0]*dims[1]*dims[2]*dims[2] <= loop.DefaultLimits().BindingBytes {
			all = append(all, job{name: name + "-scores", make: step, scoreBytes: math.MaxInt})
		}
	}
	return all
}

func writeAll(folder string, jobs []job) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, j := range jobs {
		m, err := j.make()
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		p, err := plan.Compile(m, j.target(), wgsl.Printer{})
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		if err := writePlan(filepath.Join(folder, j.name+".rlxp"), p); err != nil {
			return err
		}
		if j.cpu {
			both, err := simd.Plans(m)
			if err != nil {
				return fmt.Errorf("%s: %w", j.name, err)
			}
			both[0].Variants = both[1:]
			if err := writePlan(filepath.Join(folder, j.name+".wasm.rlxp"), both[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func writePlan(path string, p *plan.Plan) error {
	file, err := plan.Encode(p)
	if err != nil {
		return err
	}
	return os.WriteFile(path, file, 0o644)
}

// memoryBytes is what a tensor of a job that is bound by memory takes at most.
const memoryBytes = 256 << 20

// writeMemory writes the jobs that are bound by memory, and the list of them.
func writeMemory(folder string) error {
	memory, err := irtest.MemoryJobs(memoryBytes)
	if err != nil {
		return err
	}
	type entry struct {
		Name  string  `json:"name"`
		Bytes float64 `json:"bytes"`
		Keys  float64 `json:"keys"`
	}
	var list []entry
	for _, j := range memory {
		list = append(list, entry{j.Name, j.Bytes, j.Keys})
	}
	if err := writeAll(folder, memoryJobs(memory)); err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "memory.json"), text, 0o644)
}

func memoryJobs(memory []irtest.MemoryJob) []job {
	var all []job
	for _, j := range memory {
		all = append(all, job{name: "memory-" + j.Name, make: j.Module, bytes: memoryBytes})
	}
	return all
}

// module joins a step with the probe of one of its states, of the given shape.
func module(step *ir.Graph, state string, shape ...int) (*ir.Module, error) {
	probe, err := ir.Build("probe", func(b *ir.Builder) {
		v := b.Param(state, ir.F32, ir.Dims(shape...)...)
		for range shape {
			v = ops.Squeeze(b, ops.SliceAxis(b, v, 0, ir.N(0), ir.N(1)), 0)
		}
		b.Output("first", v)
	})
	if err != nil {
		return nil, err
	}
	return ir.NewModule(step.Name(), ir.Entry{Name: "step", Graph: step}, ir.Entry{Name: "probe", Graph: probe})
}

// product is result = a·b, with a of n×n and b of n×columns.
func product(n, columns int) (*ir.Module, error) {
	step, err := ir.Build("product", func(b *ir.Builder) {
		b.State("result", ir.F32, ir.Dims(n, columns)...)
		a, c := b.Input("a", ir.F32, ir.Dims(n, n)...), b.Input("b", ir.F32, ir.Dims(n, columns)...)
		b.SetState("result", ops.MatMul(b, a, c))
	})
	if err != nil {
		return nil, err
	}
	return module(step, "result", n, columns)
}

// functions are of all elements, or of rows.
var functions = map[string]func(b *ir.Builder, x ir.Value) ir.Value{
	"softmax": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) },
	"layernorm": func(b *ir.Builder, x ir.Value) ir.Value {
		scale, bias := b.Param("scale", ir.F32, x.Dim(1)), b.Param("bias", ir.F32, x.Dim(1))
		return ops.LayerNorm(b, x, scale, bias, 1e-5)
	},
	"gelu":       ops.Gelu,
	"transpose":  func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) },
	"sumcolumns": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) },
	"cumsum":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{Axis: 1}) },
}

// rows is result = f(a).
func rows(n, columns int, f func(b *ir.Builder, x ir.Value) ir.Value) (*ir.Module, error) {
	var shape []int
	step, err := ir.Build("rows", func(b *ir.Builder) {
		y := f(b, b.Input("a", ir.F32, ir.Dims(n, columns)...))
		shape, _ = y.Shape().Ints()
		b.State("result", ir.F32, ir.Dims(shape...)...)
		b.SetState("result", y)
	})
	if err != nil {
		return nil, err
	}
	return module(step, "result", shape...)
}

// mlp is one Adam step of a ReLU network on the mean cross-entropy of a batch. Its
// parameters are w0, b0, w1 and on.
func mlp(layers []int, batch int) (*ir.Module, error) {
	loss, err := irtest.MLP(batch, layers...)
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return module(step, "w0", layers[0], layers[1])
}

// cnn is one Adam step of the digits' convolutional network (demo/models), its
// pictures as they are, on the mean cross-entropy of a batch.
func cnn(batch int) (*ir.Module, error) {
	loss, err := ir.Build("cnn", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(batch, 8, 8, 1)...), b.Input("labels", ir.I32, ir.N(batch))
		pad := ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}
		h := ops.Relu(b, ops.Conv2D(b, x, b.Param("w0", ir.F32, ir.Dims(3, 3, 1, 16)...), b.Param("b0", ir.F32, ir.N(16)), pad))
		h = ops.Relu(b, ops.Conv2D(b, h, b.Param("w1", ir.F32, ir.Dims(3, 3, 16, 32)...), b.Param("b1", ir.F32, ir.N(32)), pad))
		h = ops.Reshape(b, ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}}), ir.Dims(batch, 512)...)
		h = ops.Relu(b, ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(512, 128)...), b.Param("b2", ir.F32, ir.N(128))))
		logits := ops.Linear(b, h, b.Param("w3", ir.F32, ir.Dims(128, 10)...), b.Param("b3", ir.F32, ir.N(10)))
		b.Output("loss", ops.CrossEntropyMean(b, logits, labels))
	})
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return module(step, "w2", 512, 128)
}

// attention is the sum of the gradients of causal attention, of batch, heads, context and
// depth, along given cotangents.
func attention(dims ...int) (*ir.Module, error) {
	step, err := ir.Build("attention", func(b *ir.Builder) {
		b.State("result", ir.F32, ir.Dims(dims...)...)
		var in []ir.Value
		for _, name := range []string{"q", "k", "v", "dout"} {
			in = append(in, b.Input(name, ir.F32, ir.Dims(dims...)...))
		}
		a := ops.AttentionAttrs{Scale: 1 / math.Sqrt(float64(dims[3])), Causal: true}
		out, lse := ops.AttentionForward(b, in[0], in[1], in[2], ir.Value{}, a)
		delta := ops.ReduceSum(b, ops.Mul(b, out, in[3]), -1)
		g := ops.AttentionBackward(b, in[0], in[1], in[2], lse, delta, in[3], ir.Value{}, a)
		b.SetState("result", ops.Add(b, ops.Add(b, g[0], g[1]), g[2]))
	})
	if err != nil {
		return nil, err
	}
	return module(step, "result", dims...)
}

// models are language models of characters: a small one, and nanoGPT's.
var models = []irtest.GPT{
	{Vocab: 65, Context: 128, Width: 128, Heads: 4, Blocks: 4, Batch: 32},
	irtest.CharacterGPT,
}

// language is one AdamW step of a language model.
func language(c irtest.GPT) (*ir.Module, error) {
	loss, err := c.Loss()
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, "loss", optim.AdamW{WeightDecay: 0.01}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return module(step, "positions", c.Context, c.Width)
}
