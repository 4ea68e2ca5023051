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

// measured are metrics that entries keep in states, by name.
type measured struct {
	metrics   map[string]float64
	confusion map[string][][]float64
}

// takeMetrics returns the metrics of the states in which something was counted, and sets these to zeros. It adds up
// the states of all ranks if they differ.
func (t *Trainer) takeMetrics(ctx context.Context, differ bool) (m measured, err error) {
	for _, s := range t.Program().Persistent() {
		if !strings.HasPrefix(s.Name, nn.MetricPrefix) || s.DType != ir.F32 || !slices.Equal(s.Dims, []int{2}) && len(s.Dims) != 2 {
			continue
		}
		x, err := t.Program().Get(ctx, s.Name)
		if err != nil {
			return m, err
		}
		sums, err := x.Float32s()
		if err != nil {
			return m, err
		}
		counted := make([]float64, len(sums))
		for i, x := range sums {
			counted[i] = float64(x)
		}
		if differ {
			if err := t.addRanks(ctx, counted); err != nil {
				return m, err
			}
		}
		if !slices.ContainsFunc(counted, func(x float64) bool { return x != 0 }) {
			continue
		}
		m.add(s.Name, s.Dims, counted)
		if err := t.Program().Set(ctx, s.Name, Float32s(make([]float32, len(sums)), s.Dims...)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// add adds what the state of a metric holds.
func (m *measured) add(state string, dims []int, sums []float64) {
	if m.metrics == nil {
		m.metrics = map[string]float64{}
	}
	name, mean := strings.TrimPrefix(state, nn.MetricPrefix), sums[0]/sums[1]
	exp, isExp := strings.CutPrefix(state, nn.MetricExpPrefix)
	switch {
	case len(dims) == 1 && isExp:
		m.metrics[exp] = math.Exp(mean)
	case len(dims) == 1:
		m.metrics[name] = mean
	case dims[0] == dims[1]:
		table := slices.Collect(slices.Chunk(sums, dims[1]))
		if m.confusion == nil {
			m.confusion = map[string][][]float64{}
		}
		m.confusion[name] = table
		s := scoresOf(table)
		m.metrics[name+" accuracy"], m.metrics[name+" f1"] = s.accuracy, s.f1
		m.metrics[name+" precision"], m.metrics[name+" recall"] = s.precision, s.recall
	default:
		m.metrics[name] = areaUnderCurve(sums[:dims[1]], sums[dims[1]:])
	}
}

// scores are the fraction of examples on the diagonal of a confusion matrix, and the means over the classes of
// precision, hits/predictions, recall, hits/labels, and F1, 2·hits/(labels + predictions), each 0 for a class
// without any: those of scikit-learn with average="macro" and all classes as labels.
type scores struct{ accuracy, precision, recall, f1 float64 }

func scoresOf(table [][]float64) (s scores) {
	ratio := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	all, hits, classes := 0., 0., float64(len(table))
	for i, row := range table {
		labels, predictions := 0., 0.
		for k, n := range row {
			labels, predictions = labels+n, predictions+table[k][i]
		}
		all, hits = all+labels, hits+row[i]
		s.precision += ratio(row[i], predictions) / classes
		s.recall += ratio(row[i], labels) / classes
		s.f1 += ratio(2*row[i], labels+predictions) / classes
	}
	s.accuracy = hits / all
	return s
}

// areaUnderCurve returns the area under the curve of true against false positives, from histograms
// of the scores of both classes: the probability that a positive example is in a higher bin than a
// negative one, counting one half for the same bin.
func areaUnderCurve(negative, positive []float64) float64 {
	below, all, area := 0., 0., 0.
	for i, n := range positive {
		area += n * (below + negative[i]/2)
		below += negative[i]
		all += n
	}
	return area / (below * all)
}
