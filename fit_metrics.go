package rlx

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
)

// rowsIn returns the number of examples of a batch: the size of the longest first axis.
func rowsIn(batch Inputs) int {
	rows := 0
	for _, x := range batch {
		if len(x.Dims) > 0 {
			rows = max(rows, x.Dims[0])
		}
	}
	return rows
}

// readMetrics sets the metrics of a report from the states of the step, and sets these to zeros.
func readMetrics(ctx context.Context, p *Program, r *Report) error {
	for _, s := range p.Persistent() {
		name, is := strings.CutPrefix(s.Name, nn.MetricPrefix)
		if !is || s.DType != ir.F32 || !slices.Equal(s.Dims, []int{2}) && len(s.Dims) != 2 {
			continue
		}
		x, err := p.Get(ctx, s.Name)
		if err != nil {
			return err
		}
		sums, err := x.Float32s()
		if err != nil {
			return err
		}
		if r.Metrics == nil {
			r.Metrics = map[string]float64{}
		}
		r.addMetric(s.Name, name, s.Dims, sums)
		if err := p.Set(ctx, s.Name, Float32s(make([]float32, len(sums)), s.Dims...)); err != nil {
			return err
		}
	}
	return nil
}

// addMetric adds what the state of a metric holds.
func (r *Report) addMetric(state, name string, dims []int, sums []float32) {
	mean := float64(sums[0]) / float64(sums[1])
	exp, isExp := strings.CutPrefix(state, nn.MetricExpPrefix)
	switch {
	case len(dims) == 1 && isExp:
		r.Metrics[exp] = math.Exp(mean)
	case len(dims) == 1:
		r.Metrics[name] = mean
	case dims[0] == dims[1]:
		table := make([][]float64, dims[0])
		for i, row := range slices.Collect(slices.Chunk(sums, dims[1])) {
			for _, n := range row {
				table[i] = append(table[i], float64(n))
			}
		}
		if r.Confusion == nil {
			r.Confusion = map[string][][]float64{}
		}
		r.Confusion[name] = table
		r.Metrics[name+" accuracy"], r.Metrics[name+" f1"] = accuracyAndF1(table)
	default:
		r.Metrics[name] = areaUnderCurve(sums[:dims[1]], sums[dims[1]:])
	}
}

// accuracyAndF1 returns the fraction of examples on the diagonal of a confusion matrix, and the mean
// over the classes of F1 = 2·hits/(labels + predictions), 0 for a class without either, as
// scikit-learn's f1_score with average="macro".
func accuracyAndF1(table [][]float64) (accuracy, f1 float64) {
	all, hits := 0., 0.
	for i, row := range table {
		either := 0.
		for k, n := range row {
			all += n
			either += n + table[k][i]
		}
		hits += row[i]
		if either > 0 {
			f1 += 2 * row[i] / either
		}
	}
	return hits / all, f1 / float64(len(table))
}

// areaUnderCurve returns the area under the curve of true against false positives, from histograms
// of the scores of both classes: the probability that a positive example is in a higher bin than a
// negative one, counting one half for the same bin.
func areaUnderCurve(negative, positive []float32) float64 {
	below, all, area := 0., 0., 0.
	for i, n := range positive {
		area += float64(n) * (below + float64(negative[i])/2)
		below += float64(negative[i])
		all += float64(n)
	}
	return area / (below * all)
}
