package schedtest_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
)

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
		{[]float64{1, 1}, []float64{2, 2}, 1},
	} {
		if got := schedtest.RankCorrelation(c.x, c.y); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%v and %v: %g, not %g", c.x, c.y, got, c.want)
		}
	}
}
