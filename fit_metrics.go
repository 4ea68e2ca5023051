package rlx

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native"
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
// the states of all ranks if they differ, and those of regressions.
func (t *Trainer) takeMetrics(ctx context.Context, differ bool) (m measured, err error) {
	for _, s := range t.Program().Persistent() {
		if !isMetric(s) {
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
		isRegression := strings.HasPrefix(s.Name, nn.MetricRegressionPrefix) // each rank keeps its own
		if isRegression {
			makeAdditive(counted)
		}
		if differ || isRegression {
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

// isMetric reports whether a state is one of the functions of package nn that measure.
func isMetric(s native.Slot) bool {
	if !strings.HasPrefix(s.Name, nn.MetricPrefix) || s.DType != ir.F32 {
		return false
	}
	switch d := s.Dims; {
	case strings.HasPrefix(s.Name, nn.MetricRegressionPrefix):
		return len(d) == 1 && d[0] == 5
	case strings.HasPrefix(s.Name, nn.MetricCalibrationPrefix):
		return len(d) == 2 && d[0] == 3
	case len(d) == 1:
		return d[0] == 2
	case len(d) == 2:
		return d[0] == d[1] || d[0] == 2 || d[0] == 1 && d[1] == 2
	default:
		return len(d) == 3 && d[1] == 2
	}
}

// add adds what the state of a metric holds.
func (m *measured) add(state string, dims []int, sums []float64) {
	if m.metrics == nil {
		m.metrics = map[string]float64{}
	}
	name := strings.TrimPrefix(state, nn.MetricPrefix)
	if exp, ok := strings.CutPrefix(state, nn.MetricExpPrefix); ok && len(dims) == 1 {
		m.metrics[exp] = math.Exp(sums[0] / sums[1])
	} else if of, ok := strings.CutPrefix(state, nn.MetricRegressionPrefix); ok {
		e := errorsOf(sums)
		m.metrics[of+" mae"], m.metrics[of+" rmse"], m.metrics[of+" r2"] = e.mae, e.rmse, e.r2
	} else if of, ok := strings.CutPrefix(state, nn.MetricCalibrationPrefix); ok {
		m.metrics[of+" ece"] = calibrationError(sums)
	} else if len(dims) == 1 || dims[0] == 1 {
		m.metrics[name] = sums[0] / sums[1]
	} else if len(dims) == 3 || dims[0] != dims[1] {
		m.metrics[name] = meanArea(sums, dims[len(dims)-1])
	} else {
		m.addConfusion(name, slices.Collect(slices.Chunk(sums, dims[1])))
	}
}

// addConfusion adds a confusion matrix and its scores.
func (m *measured) addConfusion(name string, table [][]float64) {
	if m.confusion == nil {
		m.confusion = map[string][][]float64{}
	}
	m.confusion[name] = table
	s := scoresOf(table)
	m.metrics[name+" accuracy"], m.metrics[name+" balanced accuracy"] = s.accuracy, s.balanced
	m.metrics[name+" precision"], m.metrics[name+" recall"] = s.precision, s.recall
	m.metrics[name+" f1"], m.metrics[name+" mcc"] = s.f1, s.mcc
}
