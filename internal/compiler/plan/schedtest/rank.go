package schedtest

import "math"

// RankCorrelation returns Spearman's rank correlation of two lists of the same length: the correlation of the places of
// their elements in order, where equal elements have the mean of their places. It is 1 where neither
// list varies, 0 where one does not.
func RankCorrelation(x, y []float64) float64 { return correlation(places(x), places(y)) }

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
