//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/native/cuda"
)

// measuredGroups is the number of groups of a family whose candidates [BenchmarkPredictions] times:
// those of the highest cost.
const measuredGroups = 6

// BenchmarkPredictions times the candidates of the longest groups of the families in bf16 and compares
// them with their costs: the rank correlation of costs and times over each group with three candidates or
// more (Spearman's; the median and the least of the groups), and the time of the candidate that is taken over that of the
// fastest (of all groups together, and the worst).
func BenchmarkPredictions(b *testing.B) {
	d, times := gpu(b), familyTimes(b)
	for _, f := range families.All {
		b.Run(strings.ReplaceAll(f.Name, " ", "_"), func(b *testing.B) {
			g, _, err := f.Step(times)
			must(b, err)
			m, err := ir.NewModule("step", ir.Entry{Name: "step", Graph: mixed(b, g, ir.BF16)})
			must(b, err)
			target, w := cuda.Stopwatch(d)
			choices, err := plan.Choices(m, target)
			must(b, err)
			slices.SortStableFunc(choices, func(x, y *plan.Choice) int {
				return cmp.Compare(y.Candidates[0].Cost, x.Candidates[0].Cost)
			})
			predictions(b, choices[:min(measuredGroups, len(choices))], w)
		})
	}
}

// predictions reports how the costs of the candidates of groups compare with their times.
func predictions(b *testing.B, choices []*plan.Choice, w tune.Device) {
	var ranks []float64
	var taken, fastest time.Duration
	worst, candidates := 1.0, 0
	for _, c := range choices {
		trials, err := tune.Trials(context.Background(), c, cudacpp.Printer{}, w)
		must(b, err)
		trials = slices.DeleteFunc(trials, func(t tune.Trial) bool { return t.Err != nil || t.Took == 0 })
		if len(trials) == 0 {
			continue
		}
		best := trials[0].Took
		var costs, took []float64
		for _, t := range trials {
			b.Logf("%-44s %-44s %10v, cost %10.0f ns", c.Name, t.Schedule, t.Took, t.Cost)
			best = min(best, t.Took)
			costs, took = append(costs, t.Cost), append(took, float64(t.Took))
		}
		candidates += len(trials)
		taken, fastest = taken+trials[0].Took, fastest+best
		worst = max(worst, float64(trials[0].Took)/float64(best))
		if len(trials) >= 3 {
			ranks = append(ranks, spearman(costs, took))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(choices)), "groups")
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

// spearman is the rank correlation of two lists: the correlation of the places of their elements in
// order, equal elements having the mean of their places.
func spearman(x, y []float64) float64 {
	return correlation(places(x), places(y))
}

// places returns the place of each element in order.
func places(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, a := range x {
		for _, b := range x {
			switch {
			case b < a:
				out[i]++
			case b == a:
				out[i] += 0.5
			}
		}
	}
	return out
}

// correlation is Pearson's; 1 where neither list varies, 0 where one does not.
func correlation(x, y []float64) float64 {
	mean := func(x []float64) (sum float64) {
		for _, a := range x {
			sum += a / float64(len(x))
		}
		return sum
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy, xx, yy = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my)
	}
	switch {
	case xx == 0 && yy == 0:
		return 1
	case xx == 0 || yy == 0:
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// TestRankCorrelation compares with values by hand: 1 − 6·Σd²/(n·(n²−1)) without ties.
func TestRankCorrelation(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 20, 40}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8},
		{[]float64{1, 1}, []float64{1, 2}, 0},
	} {
		if got := spearman(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v: %g, not %g", c.x, c.y, got, c.want)
		}
	}
}
