package ops_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const drawnNumbers = 8000

func parameter(b *ir.Builder, x float64) ir.Value {
	return ops.Const(b, ir.F32, x, ir.N(drawnNumbers))
}

// checkShares compares the share of numbers up to some points with the
// probability that there is for that, within five standard errors.
func checkShares(t *testing.T, name string, x []float64, points, shares []float64) {
	t.Helper()
	for i, p := range points {
		count := 0.0
		for _, v := range x {
			if v <= p {
				count++
			}
		}
		got, want := count/float64(len(x)), shares[i]
		if !(math.Abs(got-want) <= 5*math.Sqrt(want*(1-want)/float64(len(x)))) {
			t.Errorf("%s: a share of %v is at most %v, want %v", name, got, p, want)
		}
	}
}

// Points and probabilities are those of scipy.stats 1.17.1: ppf of 0.1, 0.5 and
// 0.9 for gamma and beta, cdf for poisson.
func TestNumbersByRejectionHaveTheirDistribution(t *testing.T) {
	tenths := []float64{0.1, 0.5, 0.9}
	for alpha, points := range map[float64][]float64{
		0.3: {0.0003237246218234327, 0.07313113586695198, 0.8848107733602443},
		1:   {0.10536051565782636, 0.6931471805599455, 2.302585092994046},
		4.5: {2.0840795040730535, 4.1714163461264775, 7.3418282866299185},
	} {
		x := evalBuilt(t, func(b *ir.Builder) ir.Value { return ops.Gamma(b, ops.Key(b, 5), parameter(b, alpha)) })
		checkShares(t, "gamma "+strconv.FormatFloat(alpha, 'g', -1, 64), x.F, points, tenths)
	}
	x := evalBuilt(t, func(b *ir.Builder) ir.Value {
		return ops.Beta(b, ops.Key(b, 6), parameter(b, 0.5), parameter(b, 2))
	})
	checkShares(t, "beta", x.F, []float64{0.004457681887621376, 0.12061475842818319, 0.5318774334735805}, tenths)
	for _, c := range []struct {
		rate           float64
		points, shares []float64
	}{
		{0.5, []float64{0, 1}, []float64{0.6065306597126334, 0.9097959895689501}},
		{3, []float64{1, 3, 5}, []float64{0.1991482734714558, 0.6472318887822313, 0.9160820579686966}},
		{9.5, []float64{6, 9, 14}, []float64{0.1649492443008156, 0.5218260222372076, 0.9400080113903243}},
		{25, []float64{19, 25, 32}, []float64{0.1335748340856504, 0.5529214200244148, 0.9285439687599415}},
		{400, []float64{374, 400, 426}, []float64{0.10018593428916837, 0.5132938289661275, 0.9064163820416369}},
		{1e6, []float64{997947, 998719, 1000000, 1001282, 1002054}, []float64{0.020034542916045114, 0.10016591857940674, 0.5002659614862837, 0.9001475281659639, 0.9800103981895811}},
		{2.5e8, []float64{249967528, 249979737, 250000000, 250020263, 250032473}, []float64{0.02000179208141293, 0.10000557624652646, 0.5000168208834715, 0.9000031467096355, 0.980001047823047}},
	} {
		k := evalBuilt(t, func(b *ir.Builder) ir.Value {
			return ops.Convert(b, ops.Poisson(b, ops.Key(b, 7), parameter(b, c.rate)), ir.F64)
		})
		checkShares(t, "poisson "+strconv.FormatFloat(c.rate, 'g', -1, 64), k.F, c.points, c.shares)
	}
	bad := evalBuilt(t, func(b *ir.Builder) ir.Value {
		return ops.Poisson(b, ops.Key(b, 7), ops.Literal(b, ir.Floats(ir.F32, []float64{-1, math.NaN(), 0})))
	})
	if !slices.Equal(bad.I, []int64{-1, -1, 0}) {
		t.Errorf("rates −1, NaN and 0 give %v", bad.I)
	}
	none := evalBuilt(t, func(b *ir.Builder) ir.Value {
		return ops.Gamma(b, ops.Key(b, 7), ops.Literal(b, ir.Floats(ir.F32, []float64{0, -1})))
	})
	if !math.IsNaN(none.F[0]) || !math.IsNaN(none.F[1]) {
		t.Errorf("shapes 0 and −1 give %v", none.F)
	}
}

// TestPermutationIsThatOfJAX uses jax.random.permutation(key(42), 12) of JAX
// 0.10.2, and the first six of permutation(key(7), 5000), which is sorted twice.
func TestPermutationIsThatOfJAX(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		size int
		want []int64
	}{{42, 12, []int64{7, 4, 2, 5, 3, 6, 10, 11, 8, 9, 0, 1}}, {7, 5000, []int64{801, 2388, 2559, 1874, 528, 2226}}} {
		x := evalBuilt(t, func(b *ir.Builder) ir.Value { return ops.Permutation(b, ops.Key(b, c.seed), c.size) })
		if got := x.I[:len(c.want)]; !slices.Equal(got, c.want) {
			t.Errorf("%d numbers: %v, want %v", c.size, got, c.want)
		}
	}
}

// TestTokensAreDrawnFromRemainingCandidates draws from logits that are logarithms of
// probabilities, 0.5, 0.25, 0.125, 0.0625 and 0.0625.
func TestTokensAreDrawnFromRemainingCandidates(t *testing.T) {
	p := []float64{0.0625, 0.5, 0.125, 0.25, 0.0625}
	for name, c := range map[string]struct {
		a    ops.SampleAttrs
		want []float64
	}{
		"all":         {ops.SampleAttrs{Temperature: 1, TopP: 1}, p},
		"the best":    {ops.SampleAttrs{TopP: 1}, []float64{0, 1, 0, 0, 0}},
		"the first 2": {ops.SampleAttrs{Temperature: 1, TopK: 2, TopP: 1}, []float64{0, 2. / 3, 0, 1. / 3, 0}},
		"three quarters and a little": {
			ops.SampleAttrs{Temperature: 1, TopP: 0.76}, []float64{0, 4. / 7, 1. / 7, 2. / 7, 0},
		},
		"half of the first 3": {ops.SampleAttrs{Temperature: 1, TopK: 3, TopP: 0.5}, []float64{0, 1, 0, 0, 0}},
		"cold":                {ops.SampleAttrs{Temperature: 0.5, TopP: 1}, []float64{1. / 86, 64. / 86, 4. / 86, 16. / 86, 1. / 86}},
	} {
		logits := make([]float64, len(p))
		for i, v := range p {
			logits[i] = math.Log(v)
		}
		tokens := evalBuilt(t, func(b *ir.Builder) ir.Value {
			row := ops.Literal(b, ir.Floats(ir.F32, logits))
			rows := ops.BroadcastTo(b, row, ir.Dims(drawnNumbers, len(p)))
			return ops.SampleToken(b, ops.Key(b, 11), rows, c.a)
		})
		counts := make([]float64, len(p))
		for _, token := range tokens.I {
			counts[token]++
		}
		for i, want := range c.want {
			if !(math.Abs(counts[i]/drawnNumbers-want) <= 5*math.Sqrt(want*(1-want)/drawnNumbers)) {
				t.Errorf("%s: token %d has the share %v, want %v", name, i, counts[i]/drawnNumbers, want)
			}
		}
	}
}
