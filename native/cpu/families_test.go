package cpu_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// BenchmarkFamilies runs training steps of all families, and those of PyTorch, eager and
// compiled, where Python has it. They are measured in turns; it reports the minimum times in ms
// and the ratio of ours to the better of PyTorch's. PYTHON names the interpreter. Verbose, it
// prints the time of each of our steps.
func BenchmarkFamilies(b *testing.B) { timeBesidePyTorch(b, "../bench/families.py", families.All) }

// BenchmarkFurther is BenchmarkFamilies of models of further kinds.
func BenchmarkFurther(b *testing.B) { timeBesidePyTorch(b, "../bench/further.py", families.Further) }

// BenchmarkUnusual is BenchmarkFamilies of models of unusual structure.
func BenchmarkUnusual(b *testing.B) { timeBesidePyTorch(b, "../bench/unusual.py", families.Unusual) }

func timeBesidePyTorch(b *testing.B, script string, list []families.Family) {
	torch := startPython(b, "PyTorch", script)
	for _, f := range list {
		b.Run(strings.ReplaceAll(f.Name, " ", "_"), func(b *testing.B) {
			p, step := familyStep(b, f)
			besidePyTorch(b, torch, f.Name, p, step)
		})
	}
}

// BenchmarkPapers is BenchmarkFamilies of the models at the sizes of their papers, as a training step and as the loss
// alone. Each has a process of PyTorch's own: their weights and states take gigabytes. RLX_BENCH_HOW=eager leaves
// compiled PyTorch out, which takes minutes for each.
func BenchmarkPapers(b *testing.B) {
	for _, f := range families.ModelsOfCPU {
		for kind, graph := range map[string]func(int) (*ir.Graph, map[string]int, error){"forward": f.Loss, "step": f.Step} {
			b.Run(strings.ReplaceAll(f.Name, " ", "_")+"/"+kind, func(b *testing.B) {
				torch := startPython(b, "PyTorch", "../bench/models.py")
				g, below, err := graph(1)
				if err != nil {
					b.Fatal(err)
				}
				begun := clock()
				p := compileGraphs(b, ir.Entry{Name: "step", Graph: g})
				compiling := clock() - begun
				b.Cleanup(func() { _ = p.Close(context.Background()) })
				in, out := familyTensors(b, p, below)
				besidePyTorch(b, torch, kind+" "+f.Name, p, bind(b, p, "step", in, out))
				b.ReportMetric(compiling.Seconds(), "s-compiling")
			})
		}
	}
}

// besidePyTorch measures a step in turns with the peer's, eager and compiled, and reports the minimum times
// in ms and the ratio of ours to the better of the peer's.
func besidePyTorch(b *testing.B, torch *peer, name string, p native.Program, step native.Bound) {
	least, eager, compiled := math.Inf(1), math.Inf(1), math.Inf(1)
	runBound(b, step)
	for range 3 {
		least = min(least, minTime(b, step))
		eager = min(eager, torch.time("eager "+name))
		if os.Getenv("RLX_BENCH_HOW") != "eager" {
			compiled = min(compiled, torch.time("compile "+name))
		}
	}
	for b.Loop() {
		least = min(least, timed(b, step))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(least, "ms")
	if theirs := min(eager, compiled); !math.IsInf(theirs, 1) {
		b.ReportMetric(eager, "ms-eager")
		if !math.IsInf(compiled, 1) {
			b.ReportMetric(compiled, "ms-compile")
		}
		b.ReportMetric(least/theirs, "x-PyTorch")
	}
	if testing.Verbose() {
		writeProfile(b, p)
	}
}

// time is the time of a job in ms, infinite where the peer does not have it.
func (p *peer) time(name string) float64 {
	if ms := p.ask(name); ms > 0 {
		return ms
	}
	return math.Inf(1)
}

// familyStep binds the training step of a family to random values.
func familyStep(tb testing.TB, f families.Family) (native.Program, native.Bound) {
	tb.Helper()
	g, below, err := f.Step(1)
	if err != nil {
		tb.Fatal(err)
	}
	p := compileGraphs(tb, ir.Entry{Name: "step", Graph: g})
	in, out := familyTensors(tb, p, below)
	return p, bind(tb, p, "step", in, out)
}

// familyTensors sets the parameters of a program as layers start, and returns random inputs and
// the memory of outputs.
func familyTensors(tb testing.TB, p native.Program, below map[string]int) (in, out map[string]native.Tensor) {
	tb.Helper()
	in, out = map[string]native.Tensor{}, map[string]native.Tensor{}
	for _, s := range p.Persistent() {
		if !strings.HasPrefix(s.Name, "optim/") && s.DType == ir.F32 {
			if err := p.Set(context.Background(), s.Name, startOf(s)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range p.Slots("step") {
		switch {
		case s.Role != native.Input:
			out[s.Name] = native.Zeros(s.DType, s.Dims...)
		case s.DType == ir.F32:
			in[s.Name] = native.Float32s(random(elements(s)), s.Dims...)
		default:
			ids := make([]int32, elements(s))
			for i := range ids {
				ids[i] = r.Int32N(int32(below[s.Name]))
			}
			in[s.Name] = native.Int32s(ids, s.Dims...)
		}
	}
	return in, out
}

func elements(s native.Slot) int {
	n := 1
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// startOf is the value that a parameter starts with: uniform by its inputs for a matrix, zeros
// for a bias, else ones.
func startOf(s native.Slot) native.Tensor {
	x, last := random(elements(s)), len(s.Dims)-1
	switch {
	case last > 0:
		by := float32(1 / math.Sqrt(float64(len(x)/s.Dims[last])))
		for i := range x {
			x[i] *= 2 * by
		}
	case strings.HasSuffix(s.Name, "/b") || strings.HasSuffix(s.Name, "/mean"):
		clear(x)
	default:
		for i := range x {
			x[i] = 1
		}
	}
	return native.Float32s(x, s.Dims...)
}

// TestFamiliesTrainInKernels keeps the families working between runs of the benchmark: the loss is finite, and kernels compute
// all arithmetic and loads, which take ten times as long or more outside them.
func TestFamiliesTrainInKernels(t *testing.T) {
	for _, f := range families.Every() {
		t.Run(f.Name, func(t *testing.T) {
			g, below, err := f.Step(1)
			if err != nil {
				t.Fatal(err)
			}
			p := compileGraphs(t, ir.Entry{Name: "step", Graph: g})
			if outside := cpu.OutsideKernels(p); len(outside) > 0 {
				t.Errorf("%q", outside)
			}
			in, out := familyTensors(t, p, below)
			step := bind(t, p, "step", in, out)
			var losses []float32
			for range 3 {
				runBound(t, step)
				x, err := out["loss"].Float32s()
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, x[0])
			}
			if last := float64(losses[2]); math.IsNaN(last) || math.IsInf(last, 0) || losses[2] > 2*max(losses[0], 1) {
				t.Errorf("losses %v", losses)
			}
		})
	}
}

// writeProfile prints the time of each part of a step.
func writeProfile(tb testing.TB, p native.Program) {
	tb.Helper()
	timings, err := p.(native.Profiler).Profile(context.Background(), "step", 5)
	if err != nil {
		tb.Fatal(err)
	}
	var table strings.Builder
	if err := native.WriteTimings(&table, timings); err != nil {
		tb.Fatal(err)
	}
	tb.Log("\n" + table.String())
}
