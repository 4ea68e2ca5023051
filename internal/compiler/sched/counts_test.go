package sched_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

var update = flag.Bool("update", false, "write testdata/counts.txt again")

// counted are graphs whose kernels have their device operations counted, at sizes at which
// these matter.
var counted = map[string]func(b *ir.Builder){
	"map": func(b *ir.Builder) {
		x := schedtest.Matrix(b, 2048, 1024)
		b.Output("y", ops.Gelu(b, ops.Add(b, x, ops.BroadcastInDim(b, b.Param("bias", ir.F32, ir.N(1024)), x.Shape(), []int{1}))))
	},
	"small map": func(b *ir.Builder) { b.Output("y", ops.Gelu(b, schedtest.Matrix(b, 64, 1024))) },
	"dropout": func(b *ir.Builder) {
		b.Output("y", ops.Dropout(b, schedtest.Matrix(b, 2048, 1024), ops.Key(b, 7), 0.25))
	},
	"random bits": func(b *ir.Builder) {
		b.Output("y", ops.RandomBits(b, b.Input("key", ir.U32, ir.N(2)), ir.Dims(2048, 2048)...))
	},
	"transpose":         transposed(2048, 1024),
	"transpose of odds": transposed(2045, 1023),
	"channels last": func(b *ir.Builder) {
		b.Output("y", ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(32, 64, 1024)...), 0, 2, 1))
	},
	"heads forward": func(b *ir.Builder) {
		b.Output("y", ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(8, 256, 16, 64)...), 0, 2, 1, 3))
	},
	"sum with a transpose": func(b *ir.Builder) {
		x := schedtest.Matrix(b, 1536, 1536)
		b.Output("y", ops.Sub(b, x, ops.Transpose(b, x, 1, 0)))
	},
	"softmax": func(b *ir.Builder) { b.Output("y", ops.Softmax(b, schedtest.Matrix(b, 512, 4096), 1)) },
	"layer norm": func(b *ir.Builder) {
		b.Output("y", ops.LayerNorm(b, schedtest.Matrix(b, 2048, 1024), b.Param("scale", ir.F32, ir.N(1024)), b.Param("bias", ir.F32, ir.N(1024)), 1e-5))
	},
	"sum of rows":       func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, schedtest.Matrix(b, 2048, 1024), 1)) },
	"sum of columns":    func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, schedtest.Matrix(b, 2048, 1024), 0)) },
	"sum of all":        func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, schedtest.Matrix(b, 2048, 1024))) },
	"running rows":      func(b *ir.Builder) { schedtest.RunningOf(b, false, 1024, 4096) },
	"running columns":   func(b *ir.Builder) { schedtest.RunningOf(b, false, 512, 8192, 1) },
	"running, one row":  func(b *ir.Builder) { schedtest.RunningOf(b, false, 1, 1<<22) },
	"product":           func(b *ir.Builder) { schedtest.MatmulBias(b, 2048, 2048, 512, "nn", ops.Relu) },
	"product, turned":   func(b *ir.Builder) { schedtest.MatmulBias(b, 512, 512, 512, "tt", ops.Gelu) },
	"product, in parts": func(b *ir.Builder) { schedtest.MatmulBias(b, 512, 512, 4096, "tn", ops.Relu) },
	"product, deep":     func(b *ir.Builder) { schedtest.MatmulBias(b, 64, 64, 8192, "nn", ops.Relu) },
	"matrix by vector":  func(b *ir.Builder) { schedtest.MatmulBias(b, 1, 2048, 1024, "nt", ops.Relu) },
	"small product":     func(b *ir.Builder) { schedtest.MatmulBias(b, 128, 10, 128, "nn", ops.Relu) },
	"sort of rows": func(b *ir.Builder) {
		b.Output("y", ops.ArgSort(b, schedtest.Matrix(b, 1024, 1024), ops.SortAttrs{Axis: 1}))
	},
	"embedding gradient": func(b *ir.Builder) { scattered(b, ops.ScatterAdd, false) },
	"rows that are set":  func(b *ir.Builder) { scattered(b, ops.Scatter, false) },
}

// scattered scatters 1024 rows into 8192.
func scattered(b *ir.Builder, scatter func(b *ir.Builder, x, indices, updates ir.Value, a ops.ScatterAttrs) ir.Value, unordered bool) {
	into, at := b.State("into", ir.F32, ir.Dims(8192, 64)...), b.Input("at", ir.I32, ir.Dims(1024, 1)...)
	b.SetState("into", scatter(b, into, at, schedtest.Matrix(b, 1024, 64), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Unordered: unordered}}))
}

// adding are graphs for a target with atomic float addition.
var adding = map[string]func(b *ir.Builder){
	"gradient in any order": func(b *ir.Builder) { scattered(b, ops.ScatterAdd, true) },
}

// attended are graphs for a target with fragments that does not store attention scores. Loads
// and stores of fragments are not counted.
var attended = map[string]func(b *ir.Builder){
	"attention, 64":  func(b *ir.Builder) { attentionAt(b, 64) },
	"attention, 128": func(b *ir.Builder) { attentionAt(b, 128) },
}

// pipelined are contractions on a target with asynchronous copies, which are not counted.
var pipelined = map[string]func(b *ir.Builder){
	"pipelined product":         func(b *ir.Builder) { schedtest.MatmulOf(b, ir.F32, 512, 512, 64, "nn", false) },
	"pipelined product, turned": func(b *ir.Builder) { schedtest.MatmulOf(b, ir.F32, 512, 512, 64, "tt", false) },
}

// pipelining is a target that picks the largest of these tiles, however small the contraction.
func pipelining(t *testing.T) func(g *ir.Graph) plan.Target {
	return func(g *ir.Graph) plan.Target {
		return schedtest.ContractionsBy(t, g, schedtest.OwnProducts(), emit.Schedule{Family: emit.Pipelined, M: 128, N: 128, K: 8, RM: 16, RN: 8, Split: 1, Stages: 2})
	}
}

func attentionAt(b *ir.Builder, depth int) {
	of := func(name string) ir.Value { return b.Input(name, ir.F32, ir.Dims(4, 512, depth)...) }
	out, lse := ops.AttentionForward(b, of("q"), of("k"), of("v"), ir.Value{}, ops.AttentionAttrs{Causal: true})
	for i, cotangent := range ops.AttentionBackward(b, ops.AttentionOperands{Q: of("q2"), K: of("k2"), V: of("v2")}, ops.AttentionResiduals{LSE: lse, Delta: lse, DOut: out}, ops.AttentionAttrs{Causal: true}) {
		b.Output(fmt.Sprint("d", i), cotangent)
	}
}

// countedGroups is the number of simulated workgroups of each kernel: the first, the last and
// some between.
const countedGroups = 4

// count counts the operations of a graph's kernels, on zeros.
func count(t *testing.T, g *ir.Graph, target plan.Target, counted func(k *loop.Kernel, c sim.Counts)) {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plansim.Open(m, target)
	if err != nil {
		t.Fatal(err)
	}
	s.Options.Sample, s.Counted = countedGroups, counted
	inputs := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		if p.Kind == ir.InputPort {
			dims, _ := p.Value.Shape().Ints()
			inputs[p.Name] = ir.NewArray(p.Value.DType(), dims...)
		}
	}
	if _, err := s.Run("run", inputs); err != nil {
		t.Fatal(err)
	}
}

// TestKernelsMatchGoldenCounts compares the operations of the kernels of some graphs with
// testdata/counts.txt, to catch schedules that get worse. After an intended change, `go test
// ./internal/compiler/sched -run Counts -update` rewrites the file.
func TestKernelsMatchGoldenCounts(t *testing.T) {
	var got strings.Builder
	got.WriteString(countsHead)
	inBlocks := schedtest.Apple()
	inBlocks.ScoreBytes = 1
	atomic := plan.WebGPU()
	atomic.AtomicFloats = loop.NativeFloats
	always := func(target plan.Target) func(*ir.Graph) plan.Target {
		return func(*ir.Graph) plan.Target { return target }
	}
	for _, table := range []struct {
		target func(g *ir.Graph) plan.Target
		graphs map[string]func(b *ir.Builder)
	}{{always(plan.WebGPU()), counted}, {always(inBlocks), attended}, {always(atomic), adding}, {pipelining(t), pipelined}} {
		for _, name := range slices.Sorted(maps.Keys(table.graphs)) {
			g := schedtest.Build(t, table.graphs[name])
			count(t, g, table.target(g), func(k *loop.Kernel, c sim.Counts) {
				threads := fmt.Sprintf("%dx%d", c.Groups, k.Threads())
				fmt.Fprintf(&got, "%-24s %-34s %9s %8d %8d %8d %8d %8d %6d %9.2f\n",
					name, k.Name, threads, c.Requests, c.Sectors, c.Shared, c.Conflicts, c.Barriers, k.Registers(), k.Occupancy())
			})
		}
	}
	const file = "testdata/counts.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := lineDiff(string(want), got.String()); diff != "" {
		t.Errorf("what kernels do has changed (- was, + is now):\n%s%s", countsHead, diff)
	}
}

const countsHead = "graph                    kernel                               threads requests  sectors   shared conflict barriers   regs occupancy\n"

// lineDiff returns the lines that only one of two texts has.
func lineDiff(a, b string) string {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	out := ""
	for _, l := range linesA {
		if !slices.Contains(linesB, l) {
			out += "- " + l + "\n"
		}
	}
	for _, l := range linesB {
		if !slices.Contains(linesA, l) {
			out += "+ " + l + "\n"
		}
	}
	return out
}
