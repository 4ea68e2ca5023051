package plansim_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// maxMemory is how many bytes compiling allocates for a node, by the family of the graph.
var maxMemory = map[string]int{"chain": 1100, "residual": 2100, "parameters": 2500, "inputs": 1350, "branches": 550}

// maxCompileBytes is the bytes that compiling a character GPT allocates, most of them for the
// expressions in its kernels and their drafts.
const maxCompileBytes = 77 << 20

// BenchmarkGrowth reports how compile time grows with the number of nodes: the exponent between the
// smallest and the largest graph of each family. Small graphs are compiled more often, for an equal
// total of nodes, so that they include garbage collection. The fastest of three rounds counts for
// each size, as other programs may use the machine.
func BenchmarkGrowth(b *testing.B) {
	for _, f := range irtest.Families {
		b.Run(f.Name, func(b *testing.B) {
			for range b.N {
				sizes := growthSizes()
				graphs, least := make([]*ir.Graph, len(sizes)), make([]time.Duration, len(sizes))
				for i, nodes := range sizes {
					var err error
					if graphs[i], err = f.Graph(nodes); err != nil {
						b.Fatal(err)
					}
				}
				for round := range 3 {
					for i, nodes := range sizes {
						n, took, bytes := compileTimes(b, graphs[i], plan.WebGPU(), sizes[len(sizes)-1]/nodes)
						if round == 0 || took < least[i] {
							least[i] = took
						}
						b.ReportMetric(least[i].Seconds(), fmt.Sprintf("s/%d", nodes))
						b.ReportMetric(float64(bytes)/float64(n), fmt.Sprintf("B/node/%d", nodes))
					}
				}
				last := len(sizes) - 1
				more := float64(len(graphs[last].Nodes())) / float64(len(graphs[0].Nodes()))
				b.ReportMetric(math.Log(least[last].Seconds()/least[0].Seconds())/math.Log(more), "exponent")
			}
		})
	}
}

// TestCompileMemory holds what compiling allocates, which is most of its time on
// a slow processor.
func TestCompileMemory(t *testing.T) {
	for _, f := range irtest.Families {
		g, err := f.Graph(10000)
		if err != nil {
			t.Fatal(err)
		}
		if n, _, bytes := compileTime(t, g, plan.WebGPU()); int(bytes) > maxMemory[f.Name]*n {
			t.Errorf("%s: %d bytes for each of %d nodes, at most %d wanted", f.Name, int(bytes)/n, n, maxMemory[f.Name])
		}
	}
	if _, _, bytes := compileTime(t, gptStep(t, irtest.CharacterGPT), plan.WebGPU()); bytes > maxCompileBytes {
		t.Errorf("%d bytes for the character GPT, at most %d wanted", bytes, maxCompileBytes)
	}
}

func growthSizes() []int {
	if testing.Short() {
		return []int{1000, 3000}
	}
	return []int{1000, 10000, 100000}
}

func compileTime(b testing.TB, g *ir.Graph, t plan.Target) (nodes int, took time.Duration, bytes uint64) {
	return compileTimes(b, g, t, 1)
}

// compileTimes compiles a graph several times and returns the time of one compilation.
func compileTimes(b testing.TB, g *ir.Graph, t plan.Target, times int) (nodes int, took time.Duration, bytes uint64) {
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	var p *plan.Plan
	for range times {
		if p, err = plan.Compile(m, t, wgsl.Printer{}); err != nil {
			b.Fatal(err)
		}
		if _, err := plan.Encode(p); err != nil {
			b.Fatal(err)
		}
	}
	took = time.Since(start) / time.Duration(times)
	runtime.ReadMemStats(&after)
	source := 0
	for _, k := range p.Kernels {
		source += len(k.Source)
	}
	b.Logf("%d nodes: %v, %d kernels, %d dispatches, %d bytes of source", len(g.Nodes()), took, len(p.Kernels), len(p.Entries[0].Steps), source)
	return len(g.Nodes()), took, (after.TotalAlloc - before.TotalAlloc) / uint64(times)
}

// BenchmarkGPT compiles training steps of language models.
func BenchmarkGPT(b *testing.B) {
	large := plan.WebGPU()
	large.Limits.BindingBytes, large.Limits.BufferBytes = 2<<30-4, min(4<<30, math.MaxInt)
	deep := irtest.GPT2
	deep.Blocks = 48
	for _, c := range []struct {
		name string
		gpt  irtest.GPT
		t    plan.Target
	}{
		{"characters", irtest.CharacterGPT, plan.WebGPU()},
		{"gpt2", irtest.GPT2, large},
		{"48", deep, large},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				g := gptStep(b, c.gpt)
				compileTime(b, g, c.t)
			}
		})
	}
}

func gptStep(t testing.TB, c irtest.GPT) *ir.Graph {
	t.Helper()
	loss, err := c.Loss()
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
