package rlx

import "math"

// scores are the fraction of examples on the diagonal of a confusion matrix, and the means over the classes of
// precision, hits/predictions, recall, hits/labels, and F1, 2·hits/(labels + predictions), each 0 for a class
// without any: those of scikit-learn with average="macro" and all classes as labels. balanced is the mean recall over
// the classes that labels have, and mcc Matthews' correlation coefficient, 0 if all labels or all predictions are of one class.
type scores struct{ accuracy, balanced, precision, recall, f1, mcc float64 }

func scoresOf(table [][]float64) (s scores) {
	all, hits, classes, present := 0., 0., float64(len(table)), 0.
	both, labelled, predicted := 0., 0., 0. // of products of the numbers of labels and of predictions of a class
	for i, row := range table {
		labels, predictions := 0., 0.
		for k, n := range row {
			labels, predictions = labels+n, predictions+table[k][i]
		}
		all, hits = all+labels, hits+row[i]
		both, labelled, predicted = both+labels*predictions, labelled+labels*labels, predicted+predictions*predictions
		if labels > 0 {
			present++
		}
		s.precision += quotient(row[i], predictions) / classes
		s.recall += quotient(row[i], labels) / classes
		s.balanced += quotient(row[i], labels)
		s.f1 += quotient(2*row[i], labels+predictions) / classes
	}
	s.accuracy, s.balanced = hits/all, s.balanced/present
	s.mcc = quotient(hits*all-both, math.Sqrt((all*all-labelled)*(all*all-predicted)))
	return s
}

// quotient returns a/b, and 0 where b is 0.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// meanArea returns the mean area under the curve of true against false positives, over pairs of histograms of the scores,
// of negative examples and of positive ones. Pairs without examples of both kinds are left out.
func meanArea(histograms []float64, bins int) float64 {
	sum, classes := 0., 0.
	for ; len(histograms) > 0; histograms = histograms[2*bins:] {
		if area := areaUnderCurve(histograms[:bins], histograms[bins:2*bins]); !math.IsNaN(area) {
			sum, classes = sum+area, classes+1
		}
	}
	return sum / classes
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

// calibrationError returns the expected calibration error of the sums of bins: numbers of examples, probabilities, and
// right predictions.
func calibrationError(sums []float64) float64 {
	bins, all, gap := len(sums)/3, 0., 0.
	for i := range bins {
		all += sums[i]
		gap += math.Abs(sums[bins+i] - sums[2*bins+i])
	}
	return gap / all
}

// makeAdditive turns the mean of the targets and their squared distances to it, elements 1 and 2 of the state of
// [nn.Regression], into the sums of targets and of their squares, which add up over ranks.
func makeAdditive(state []float64) {
	n, mean := state[0], state[1]
	state[1], state[2] = n*mean, state[2]+n*mean*mean
}

// regressionErrors are the mean absolute error, the root of the mean squared error, and the coefficient of determination.
type regressionErrors struct{ mae, rmse, r2 float64 }

// errorsOf returns the errors of sums that makeAdditive made. For targets that are all equal r2 is 1 without an
// error and 0 with one, as in scikit-learn.
func errorsOf(sums []float64) regressionErrors {
	n, squared := sums[0], sums[4]
	e := regressionErrors{mae: sums[3] / n, rmse: math.Sqrt(squared / n)}
	switch spread := sums[2] - sums[1]*sums[1]/n; {
	case spread > 0:
		e.r2 = 1 - squared/spread
	case squared == 0:
		e.r2 = 1
	}
	return e
}
