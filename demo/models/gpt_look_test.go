package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/models"
)

// The weights that the page shows are those of attention computed by hand from the parameters, and the
// probabilities those whose logarithms the evaluation, which has the attention op, averages.
func TestTheLookInsideIsWhatTheModelComputes(t *testing.T) {
	w := newWriter(t)
	tokens := []int32{4, 9, 0, 3, 3, 7}
	next := []int32{9, 0, 3, 3, 7, 1}
	out := w.call("look", rlx.Inputs{models.Tokens: rlx.Int32s(tokens, 1, w.model.Context)})
	got := w.floats(out[models.Weights])
	for i, want := range w.weightsByHand(tokens) {
		if !(math.Abs(float64(got[i])-want) <= 1e-5) {
			t.Fatalf("weight %d of %d is %v, by hand %v", i, len(got), got[i], want)
		}
	}
	expected, loss := w.floats(out[models.Expected]), 0.0
	for i, token := range next {
		loss -= math.Log(float64(expected[i*w.model.Vocab+int(token)])) / float64(len(next))
	}
	measured := w.floats(w.call("eval", rlx.Inputs{
		models.Tokens: rlx.Int32s(append(tokens, tokens...), 2, w.model.Context),
		models.Next:   rlx.Int32s(append(next, next...), 2, w.model.Context),
	})[models.Loss])[0]
	if !(math.Abs(loss-float64(measured)) <= 1e-5*loss) {
		t.Errorf("the probabilities give a loss of %v, the evaluation %v", loss, measured)
	}
}

func (w writer) floats(x rlx.Tensor) []float32 {
	w.t.Helper()
	values, err := x.Float32s()
	if err != nil {
		w.t.Fatal(err)
	}
	return values
}

func (w writer) param(name string) []float32 {
	w.t.Helper()
	x, err := w.program.Get(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.floats(x)
}

// weightsByHand computes the weights of causal attention in the first block: [heads,context,context].
func (w writer) weightsByHand(tokens []int32) []float64 {
	m := w.model
	table, positions, scale, qkv := w.param("table"), w.param("positions"), w.param("block0/norm1"), w.param("block0/qkv")
	size := m.Width / m.Heads
	projected := make([][]float64, m.Context) // queries, keys and values of each token
	for i, token := range tokens {
		x, mean, variance := make([]float64, m.Width), 0.0, 0.0
		for j := range x {
			x[j] = float64(table[int(token)*m.Width+j] + positions[i*m.Width+j])
			mean += x[j] / float64(m.Width)
		}
		for _, v := range x {
			variance += (v - mean) * (v - mean) / float64(m.Width)
		}
		projected[i] = make([]float64, 3*m.Width)
		for j, v := range x {
			v = (v - mean) / math.Sqrt(variance+1e-5) * float64(scale[j])
			for k := range projected[i] {
				projected[i][k] += v * float64(qkv[j*3*m.Width+k])
			}
		}
	}
	weights := make([]float64, m.Heads*m.Context*m.Context)
	for head := range m.Heads {
		for from := range m.Context {
			row, sum := weights[(head*m.Context+from)*m.Context:], 0.0
			for to := range from + 1 {
				score := 0.0
				for d := range size {
					score += projected[from][head*size+d] * projected[to][m.Width+head*size+d]
				}
				row[to] = math.Exp(score / math.Sqrt(float64(size)))
				sum += row[to]
			}
			for to := range from + 1 {
				row[to] /= sum
			}
		}
	}
	return weights
}
