package autodiff_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
)

// TestThirdDerivativesMatchFiniteDifferences moves all operands of a
// sample along a line and compares the third derivative along it with the central
// difference of the second, by Richardson's rule from two steps.
func TestThirdDerivativesMatchFiniteDifferences(t *testing.T) {
	checked := map[ir.Op]int{}
	eachSample(t, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if d.NoGrad != "" || s.NoGrad != "" || isComplex(s) || elements(s) > 160 || !inDoubles(s) {
			return
		}
		if d.Op == "reduce_prod" && elements(s) > 60 {
			return // the third derivative has a term for each three factors: those of 8 factors are the same code
		}
		g, in := sampleGraph(t, d.Op, s)
		if _, refused := autodiff.JVP(g); refused != nil || !isFinite(t, g, in) {
			return
		}
		j, err := autodiff.Jet(g, 3)
		must(t, j, err)
		at := func(s float64) values { return eval(t, j, onLine(j, in, s)) }
		const h = 2e-3
		middle, near, far := at(0), [2]values{at(-h), at(h)}, [2]values{at(-2 * h), at(2 * h)}
		for _, o := range g.Outputs() {
			name := autodiff.SeriesName(3, o.Name)
			if middle[name] == nil {
				continue
			}
			second := autodiff.SeriesName(2, o.Name)
			for i, got := range middle[name].F {
				slope := func(v [2]values, h float64) float64 { return (v[1][second].F[i] - v[0][second].F[i]) / (2 * h) }
				fine, rough := slope(near, h), slope(far, 2*h)
				want, unsure := (4*fine-rough)/3, math.Abs(fine-rough)
				scale := max(1, math.Abs(got), math.Abs(middle[second].F[i]))
				if !(unsure < 1e-2*scale) {
					continue // a kink or a jump is near, as where singular vectors change sign
				}
				checked[d.Op]++
				if !(math.Abs(got-want) <= max(max(s.Tol, 1e-6)*scale, unsure)) {
					t.Errorf("%s[%d] is %v, differences give %v", name, i, got, want)
					return
				}
			}
		}
	})
	// Ops that are easily forgotten: factorisations, transforms, recurrences, losses.
	for _, op := range []ir.Op{
		"cholesky", "lu", "qr", "svd", "eigh", "det", "slogdet", "inv", "pinv", "expm", "spd_sqrtm", "spd_logm", "solve", "lstsq",
		"dft", "lstm", "gru", "rnn", "bce_with_logits", "huber", "focal", "kl_div", "cross_entropy_loss", "softmax", "lgamma",
	} {
		if checked[op] == 0 {
			t.Errorf("no sample of %s was compared", op)
		}
	}
}

// inDoubles reports whether the constants of rules are not rounded to short types.
func inDoubles(s ir.Sample) bool {
	for _, x := range s.In {
		if x.DType == ir.F16 || x.DType == ir.BF16 {
			return false
		}
	}
	return true
}

// onLine gives a jet the point x + s·v and the line through it, for the direction
// of curveOf.
func onLine(j *ir.Graph, in values, s float64) values {
	out := values{}
	for name, x := range in {
		v := curveOf(x, 1)[1]
		p := x.Clone()
		for i := range p.F {
			p.F[i] += s * v.F[i]
		}
		out[name] = p
		for k, d := range []*ir.Array{v, ir.NewArray(x.DType, x.Dims...), ir.NewArray(x.DType, x.Dims...)} {
			out[autodiff.SeriesName(k+1, name)] = d
		}
	}
	return onlyPorts(j, out)
}
