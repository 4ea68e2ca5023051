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
//	go run ./js/bench/plans -trials [-families] FOLDER
//
// writes a plan for each way in which the larger groups of these jobs can be scheduled,
// and the list of them, trials.json, for js/bench/h200/tune.mjs; with -families, too, of the groups
// that take most of the steps of package families. With -families alone it writes the
// training steps of package families, family-NAME, and their names, families.json, for
// js/bench/h200/families.mjs, and with -forward, too, their losses without gradients instead. With -subgroups N before the folder, plans are for devices whose
// subgroups have N threads.
//
// Start reading at main.go; models.go builds the graphs of the jobs, trials.go, first.go and families.go what is not a job.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
)

// job is a module under the name of its file, for the smallest device unless its tensors need a
// larger limit in bytes.
type job struct {
	name  string
	make  func() (*ir.Module, error)
	bytes int
	// scoreBytes is that of the target, 0 for the default.
	scoreBytes int
	cpu        bool // also compile for WebAssembly
}

// subgroup is the subgroup size of the devices, 0 if unknown; forward selects losses without gradients.
var (
	subgroup int
	forward  bool
)

func main() {
	log.SetFlags(0)
	trials := flag.Bool("trials", false, "write the schedules of each group")
	steps := flag.Bool("families", false, "write the training steps of package families")
	flag.BoolVar(&forward, "forward", false, "with -families, write the losses without gradients")
	flag.IntVar(&subgroup, "subgroups", 0, "threads of a subgroup, 0 for devices of any size")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: plans [-trials] [-families [-forward]] [-subgroups N] FOLDER")
	}
	write := []func(folder string) error{writeJobs, writeMemory, writeFirst}
	switch {
	case *trials && *steps:
		write = []func(folder string) error{writeFamilyTrials}
	case *trials:
		write = []func(folder string) error{writeTrials}
	case *steps:
		write = []func(folder string) error{writeFamilies}
	}
	for _, f := range write {
		if err := f(flag.Arg(0)); err != nil {
			log.Fatal(err)
		}
	}
}

func writeJobs(folder string) error { return writeAll(folder, jobs()) }

// target is that of the flag -subgroups.
func (j job) target() plan.Target {
	if subgroup > 0 {
		return j.plainTarget().WithSubgroups(subgroup)
	}
	return j.plainTarget()
}

// plainTarget is that of devices with subgroups of any size, or without.
func (j job) plainTarget() plan.Target {
	t := plan.WebGPU()
	t.ScoreBytes = j.scoreBytes
	t.Limits.BindingBytes, t.Limits.BufferBytes = max(t.Limits.BindingBytes, j.bytes), max(t.Limits.BufferBytes, j.bytes)
	return t
}

func jobs() []job {
	all := []job{
		{name: "matvec-4096", make: func() (*ir.Module, error) { return product(4096, 1) }},
		{name: "softmax-4096x4096", make: func() (*ir.Module, error) { return rows(4096, 4096, functions["softmax"]) }},
		{name: "mlp-64-64-10-128", make: func() (*ir.Module, error) { return mlp(ir.F32, []int{64, 64, 10}, 128) }, cpu: true},
		{name: "mlp-64-128-64-10-128", make: func() (*ir.Module, error) { return mlp(ir.F32, []int{64, 128, 64, 10}, 128) }, cpu: true},
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
			return mlp(ir.F32, []int{784, 512, 512, 10}, batch)
		}, cpu: batch == 128})
		all = append(all, job{name: fmt.Sprintf("mlp-784-512-512-10-%d-u8", batch), make: func() (*ir.Module, error) {
			return mlp(ir.U8, []int{784, 512, 512, 10}, batch)
		}})
	}
	return append(all, attentionJobs()...)
}

// attentionJobs are attention in blocks, and with scores in memory if these fit a binding of every
// device.
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
			both, err := wasmsimd.Plans(m)
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

// memoryBytes is the maximum size of a tensor of a memory-bound job.
const memoryBytes = 256 << 20

// writeMemory writes the memory-bound jobs, and the list of them.
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
