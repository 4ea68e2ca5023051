//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// measuredGroups is the number of groups of a family whose candidates [BenchmarkPredictions] times:
// those of the highest cost.
const measuredGroups = 7

// usualSeconds are those in which the benchmark ends, unless RLX_BENCH_SECONDS has others. Compilers take up to
// compileShare of them: the groups of lower cost are not timed where that is short.
const (
	usualSeconds = 190
	compileShare = 0.4
)

// maxCost is the ratio of costs to the least of a group up to which its candidates are timed.
const maxCost = 4

// prediction is a family in a precision, with the choices to time.
type prediction struct {
	family, precision string
	choices           []*plan.Choice
	err               error
}

// BenchmarkPredictions times the candidates of the longest groups of the families in bf16 and TF32 and compares
// them with their costs: the rank correlation of costs and times over each group with three candidates or
// more (Spearman's; the median and the least of the groups), and the time of the candidate that is taken over that of the
// fastest (of all groups together, and the worst). RLX_BENCH_FAMILIES names the families, of further kinds also, separated
// by commas; all but those are timed by default. RLX_BENCH_OUT names a file for the times of all candidates, which
// internal/compiler/plan/testdata has some of.
func BenchmarkPredictions(b *testing.B) {
	d, times, begun, seconds := gpu(b), familyTimes(b), time.Now(), usualSeconds
	if value := os.Getenv("RLX_BENCH_SECONDS"); value != "" {
		var err error
		seconds, err = strconv.Atoi(value)
		must(b, err)
	}
	end := begun.Add(time.Duration(seconds) * time.Second)
	target, w := cuda.Stopwatch(d)
	target.TF32 = true
	list := longestGroups(times, target)
	compileTrials(d, list, begun.Add(time.Duration(compileShare*float64(end.Sub(begun)))))
	b.Logf("compiled in %v", time.Since(begun))
	lines := io.Discard
	if name := os.Getenv("RLX_BENCH_OUT"); name != "" {
		f, err := os.Create(name)
		must(b, err)
		defer f.Close()
		lines = f
	}
	for i, p := range list {
		b.Run(p.family+"/"+p.precision, func(b *testing.B) {
			must(b, p.err)
			predictions(b, p, w, time.Until(end)/time.Duration(len(list)-i), lines)
		})
	}
}

// longestGroups returns the choices of the families, in bf16 and then in TF32, those of the highest cost.
func longestGroups(times int, target plan.Target) []prediction {
	measured := families.All
	if names := strings.Split(os.Getenv("RLX_BENCH_FAMILIES"), ","); names[0] != "" {
		measured = slices.DeleteFunc(families.Every(), func(f families.Family) bool { return !slices.Contains(names, f.Name) })
	}
	list := make([]prediction, 2*len(measured))
	var all sync.WaitGroup
	for i := range list {
		f, c := measured[i%len(measured)], stepPrecisions[i/len(measured)]
		all.Go(func() {
			p := prediction{family: strings.ReplaceAll(f.Name, " ", "_"), precision: c.name}
			p.choices, p.err = longestOf(f, times, c.half, target)
			list[i] = p
		})
	}
	all.Wait()
	return list
}

// longestOf returns the choices of a family of the highest cost, with candidates of at most maxCost times the least.
func longestOf(f families.Family, times int, half ir.DType, target plan.Target) ([]*plan.Choice, error) {
	g, _, err := f.Step(times)
	if err == nil && half != 0 {
		g, err = passes.Mixed(g, half)
	}
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("step", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return nil, err
	}
	choices, err := plan.Choices(m, target)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(choices, func(x, y *plan.Choice) int {
		return cmp.Compare(y.Candidates[0].Cost, x.Candidates[0].Cost)
	})
	choices = choices[:min(measuredGroups, len(choices))]
	for _, c := range choices {
		least := slices.MinFunc(c.Candidates, func(x, y emit.Ranked) int { return cmp.Compare(x.Cost, y.Cost) }).Cost
		taken := c.Candidates[0]
		c.Candidates = slices.DeleteFunc(c.Candidates, func(r emit.Ranked) bool { return r != taken && r.Cost > maxCost*least })
	}
	return choices, nil
}

// compileTrials compiles the kernels of all candidates on all cores, into the cache of kernels. What fails, or comes
// after the end, fails or is compiled when it is timed.
func compileTrials(d native.Backend, list []prediction, end time.Time) {
	plans := make(chan *plan.Plan)
	var next atomic.Int64
	var makers, compilers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		makers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(list); i = int(next.Add(1)) - 1 {
				makeTrials(list[i].choices, plans, end)
			}
		})
		compilers.Go(func() {
			for p := range plans {
				_ = cuda.CompileKernels(d, p)
			}
		})
	}
	makers.Wait()
	close(plans)
	compilers.Wait()
}

// makeTrials sends the plans of all candidates, up to the end.
func makeTrials(choices []*plan.Choice, plans chan<- *plan.Plan, end time.Time) {
	for _, c := range choices {
		for _, r := range c.Candidates {
			if time.Now().After(end) {
				return
			}
			if p, err := c.Trial(r.Schedule, 1, cudacpp.Printer{}); err == nil {
				plans <- p
			}
		}
	}
}

// predictions reports how the costs of the candidates of groups compare with their times, and writes for each
// group a line with the family, the precision, its name and key, and one for each candidate, with nanoseconds and schedule.
func predictions(b *testing.B, p prediction, w tune.Device, limit time.Duration, lines io.Writer) {
	var ranks []float64
	var taken, fastest time.Duration
	worst, groups, candidates, begun := 1.0, 0, 0, time.Now()
	for _, c := range p.choices {
		if time.Since(begun) > limit {
			break
		}
		trials, err := tune.Trials(context.Background(), c, cudacpp.Printer{}, w)
		must(b, err)
		trials = slices.DeleteFunc(trials, func(t tune.Trial) bool { return t.Err != nil || t.Took == 0 })
		if len(trials) == 0 {
			continue
		}
		best := trials[0].Took
		var costs, took []float64
		var text strings.Builder
		for _, t := range trials {
			b.Logf("%-44s %-44s %10v, cost %10.0f ns", c.Name, t.Schedule, t.Took, t.Cost)
			fmt.Fprintf(&text, "\t%d %s\n", t.Took.Nanoseconds(), t.Schedule)
			best = min(best, t.Took)
			costs, took = append(costs, t.Cost), append(took, float64(t.Took))
		}
		fmt.Fprintf(lines, "%s %s %s %s\n%s", p.family, p.precision, c.Name, c.Key, text.String())
		groups, candidates = groups+1, candidates+len(trials)
		taken, fastest = taken+trials[0].Took, fastest+best
		worst = max(worst, float64(trials[0].Took)/float64(best))
		if len(trials) >= 3 {
			ranks = append(ranks, schedtest.RankCorrelation(costs, took))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(groups), "groups")
	b.ReportMetric(float64(candidates), "candidates")
	if len(ranks) > 0 {
		slices.Sort(ranks)
		b.ReportMetric(ranks[len(ranks)/2], "rank-median")
		b.ReportMetric(ranks[0], "rank-least")
	}
	if fastest > 0 {
		b.ReportMetric(float64(taken)/float64(fastest), "taken/fastest")
		b.ReportMetric(worst, "worst")
	}
}

// BenchmarkPackedPredictions times the candidates of products of one row with packed weights, of which no cache holds a
// large part, and prints them by time. RLX_BENCH_FAMILIES names the forms, as [BenchmarkMatVec] has them.
func BenchmarkPackedPredictions(b *testing.B) {
	d := gpu(b)
	target, w := cuda.Stopwatch(d)
	forms := "q4_0_8,q8_0_8,q4_0,q8_0"
	if names := os.Getenv("RLX_BENCH_FAMILIES"); names != "" {
		forms = names
	}
	for form := range strings.SplitSeq(forms, ",") {
		b.Run(form, func(b *testing.B) {
			const n, k = 16384, 8192
			g, err := ir.Build("matvec", func(b *ir.Builder) {
				b.Output("y", matVecForms()[form](b, b.Input("x", ir.F32, ir.Dims(1, k)...), n, k))
			})
			must(b, err)
			m, err := ir.NewModule("matvec", ir.Entry{Name: "step", Graph: g})
			must(b, err)
			printTrials(b, m, target, w)
		})
	}
}

// narrowProducts are the shapes of products of many rows, few columns and few terms, m×k times k×n.
var narrowProducts = []struct{ m, n, k int }{
	{4096, 32, 32},
	{4096, 64, 64},
	{16384, 32, 32},
	{16384, 64, 64},
	{40000, 32, 32},
	{40000, 16, 64},
	{40000, 64, 16},
	{65536, 128, 32},
	{65536, 32, 128},
	{65536, 64, 64},
	{65536, 128, 64},
	{65536, 64, 128},
	{65536, 128, 128},
	{65536, 3, 64},
	{262144, 10, 20},
	{262144, 32, 32},
	{262144, 64, 64},
}

// BenchmarkNarrowPredictions times the candidates of narrowProducts with a bias and a maximum behind them, and prints
// them by time.
func BenchmarkNarrowPredictions(b *testing.B) {
	target, w := cuda.Stopwatch(gpu(b))
	target.TF32 = true
	for _, s := range narrowProducts {
		for _, c := range stepPrecisions[:2] { // bf16 and TF32
			b.Run(fmt.Sprintf("%dx%dx%d_%s", s.m, s.n, s.k, c.name), func(b *testing.B) {
				d := cmp.Or(c.half, ir.F32)
				m, err := ir.NewModule("product", ir.Entry{Name: "step", Graph: productIn(b, d, 1, s.m, s.n, s.k, "nn", true)})
				must(b, err)
				printTrials(b, m, target, w)
			})
		}
	}
}

// printTrials times the candidates of a module's groups and prints them by time.
func printTrials(b *testing.B, m *ir.Module, target plan.Target, w tune.Device) {
	choices, err := plan.Choices(m, target)
	must(b, err)
	for _, c := range choices {
		trials, err := tune.Trials(context.Background(), c, cudacpp.Printer{}, w)
		must(b, err)
		taken := trials[0]
		slices.SortFunc(trials, func(x, y tune.Trial) int { return cmp.Compare(x.Took, y.Took) })
		for _, t := range trials {
			b.Logf("%-40s %-40s %10v, cost %8.0f ns, taken: %t, error: %v", c.Name, t.Schedule, t.Took, t.Cost, t.Schedule == taken.Schedule, t.Err)
		}
	}
}
