//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// TestTuningOnAFakeGPU compiles with measured schedules, and again with the stored ones; both
// compute the same.
func TestTuningOnAFakeGPU(t *testing.T) {
	fake.Install(t, true)
	dir := t.TempDir()
	t.Setenv(tune.Variable, dir)
	g, err := ir.Build("step", func(b *ir.Builder) {
		b.Output("sorted", ops.Sort(b, ops.SortAttrs{}, b.Input("x", ir.F32, ir.N(4)))[0])
	})
	must(t, err)
	for range 2 {
		p := compileWith(t, cuda.New(0), g, native.Options{Tune: true})
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Float32s([]float32{4, 2, 3, 1})})
		must(t, err)
		out, err := r.Wait(context.Background())
		must(t, err)
		sorted, err := out["sorted"].Float32s()
		must(t, err)
		if !slices.Equal(sorted, []float32{1, 2, 3, 4}) {
			t.Errorf("sorted to %v", sorted)
		}
		files, err := os.ReadDir(dir)
		must(t, err)
		if len(files) != 1 {
			t.Errorf("%d files of what was found", len(files))
		}
	}
}

// BenchmarkTuning times the candidates of the groups of memory jobs and of models, and reports for
// each the speed of the untuned choice in hundredths of the fastest candidate's. The smallest of
// them is the benchmark's result.
func BenchmarkTuning(b *testing.B) {
	d := cuda.New(0)
	must(b, d.Probe())
	jobs, err := irtest.MemoryJobs(1 << 30)
	must(b, err)
	for _, j := range jobs {
		module, err := ir.NewModule("step", ir.Entry{Name: "step", Graph: j.Step})
		must(b, err)
		b.Run(j.Name, func(b *testing.B) { tuning(b, d, module) })
	}
	for _, m := range models {
		loss, err := m.loss()
		module, err := ir.NewModule("step", ir.Entry{Name: "step", Graph: step(b, loss, err)})
		must(b, err)
		b.Run(m.name, func(b *testing.B) { tuning(b, d, module) })
	}
}

func tuning(b *testing.B, d native.Backend, m *ir.Module) {
	target, w := cuda.Stopwatch(d)
	choices, err := plan.Choices(m, target)
	must(b, err)
	for range b.N {
		least, rules, best := 100.0, 0.0, 0.0
		for _, c := range choices {
			trials, err := tune.Trials(context.Background(), c, cudacpp.Printer{}, w)
			must(b, err)
			fastest := trials[0].Took
			for _, t := range trials {
				if t.Err != nil {
					b.Logf("%s by %s: %v", c.Name, t.Ranked.Schedule, t.Err)
					continue
				}
				b.Logf("%-40s %-44s %10v, cost %10.0f ns", c.Name, t.Ranked.Schedule, t.Took, t.Cost)
				fastest = min(fastest, t.Took)
			}
			least = min(least, 100*float64(fastest)/float64(trials[0].Took))
			rules, best = rules+trials[0].Took.Seconds(), best+fastest.Seconds()
		}
		b.ReportMetric(least, "%least")
		if rules > 0 {
			b.ReportMetric(100*best/rules, "%all")
		}
	}
}
