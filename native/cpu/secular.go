package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
)

// secular solves 1/ρ + Σ xⱼ²/(dⱼ - λ) = 0, whose roots are the eigenvalues of a diagonal matrix plus
// ρ·x·xᵀ. Root i is between poles dᵢ and dᵢ₊₁. It is stored as the distance from the nearest pole, so
// that dⱼ - λ has a small relative error (Li, "Solving secular equations stably and efficiently", 1993).
type secular struct {
	rho       float64
	weights   []float64 // x, of the kept eigenvalues after solve
	poles     []float64 // d, ascending
	origins   []float64 // the nearest pole of each root
	offsets   []float64 // each root's distance from it
	terms     []float64
	tolerance float64 // of the sum, in units of the sum of the absolute terms
}

// solve finds the roots of kept eigenvalues and weights, and appends them to values.
func (s *secular) solve(d []float64, kept []int, values []float64) []float64 {
	s.poles, s.terms = s.poles[:0], s.terms[:0]
	for _, i := range kept {
		s.poles, s.terms = append(s.poles, d[i]), append(s.terms, s.weights[i])
	}
	s.weights = append(s.weights[:0], s.terms...)
	s.origins, s.offsets = s.origins[:0], s.offsets[:0]
	for i := range s.poles {
		origin, offset := s.root(i)
		s.origins, s.offsets = append(s.origins, origin), append(s.offsets, offset)
		values = append(values, origin+offset)
	}
	s.refine()
	return values
}

// root finds a root by rational interpolation: the sum is replaced by a constant and the terms of the
// two poles next to it, with its value and derivatives. Bisection is used where that leaves the
// interval.
func (s *secular) root(i int) (origin, offset float64) {
	last := len(s.poles) - 1
	if last == 0 {
		return s.poles[0], s.rho * s.weights[0] * s.weights[0]
	}
	left := min(i, last-1)
	low, high, near := 0.0, s.rho, i
	at := high / 2
	if i < last {
		high = s.poles[i+1] - s.poles[i]
		at = high / 2
		if e := s.sum(s.poles[i], at, left); e.value < 0 {
			near, low, high = i+1, at-high, 0
			at = low
		} else {
			high = at
		}
	}
	origin = s.poles[near]
	for range sweeps {
		e := s.sum(origin, at, left)
		if math.Abs(e.value) <= s.tolerance*e.size {
			break
		}
		if e.value > 0 {
			high = at
		} else {
			low = at
		}
		next := at + e.step((s.poles[left]-origin)-at, (s.poles[left+1]-origin)-at, low-at, high-at)
		if next == at {
			break
		}
		at = next
	}
	return origin, at
}

// estimate is the value of the sum, the sum of its absolute terms, and the derivatives of the terms up to
// a pole and of those after it.
type estimate struct{ value, size, before, after float64 }

func (s *secular) sum(origin, at float64, left int) estimate {
	negative, before := termSum(s.poles[:left+1], s.weights, origin, at)
	positive, after := termSum(s.poles[left+1:], s.weights[left+1:], origin, at)
	return estimate{1/s.rho + negative + positive, 1/s.rho + math.Abs(negative) + math.Abs(positive), before, after}
}

// termSum returns the sum of terms and that of their derivatives.
func termSum(poles, weights []float64, origin, at float64) (sum, derivative float64) {
	weights = weights[:len(poles)]
	for j, d := range poles {
		x := weights[j] / ((d - origin) - at)
		sum += weights[j] * x
		derivative += x * x
	}
	return sum, derivative
}

// step returns the distance of the interpolation's root, given those of two poles and of the interval's
// ends.
func (e estimate) step(left, right, low, high float64) float64 {
	a := (left+right)*e.value - left*right*(e.before+e.after)
	b := left * right * e.value
	c := e.value - left*e.before - right*e.after
	q := (a + math.Copysign(math.Sqrt(max(a*a-4*b*c, 0)), a)) / 2
	for _, x := range [2]float64{b / q, q / c} {
		if low < x && x < high {
			return x
		}
	}
	return low/2 + high/2
}

// refine replaces the weights by those for which the roots are exact: eigenvectors that are computed from
// them are orthogonal (Gu and Eisenstat, "A stable and efficient algorithm for the rank-one modification
// of the symmetric eigenproblem", 1994). ρ is left out, as vectors are scaled.
func (s *secular) refine() {
	k := len(s.poles)
	s.terms = slices.Grow(s.terms[:0], k)[:k]
	for j := range s.terms {
		s.terms[j] = 1
	}
	for i, pole := range s.poles {
		origin, at := s.origins[i], s.offsets[i]
		ratios(s.terms[:i], s.poles, origin, at, pole)
		s.terms[i] *= (pole - origin) - at
		ratios(s.terms[i+1:], s.poles[i+1:], origin, at, pole)
	}
	for j, x := range s.terms {
		s.weights[j] = math.Copysign(math.Sqrt(math.Abs(x)), s.weights[j])
	}
}

// ratios multiplies terms by (dⱼ - λ)/(dⱼ - pole).
func ratios(terms, poles []float64, origin, at, pole float64) {
	poles = poles[:len(terms)]
	for j, d := range poles {
		terms[j] *= ((d - origin) - at) / (d - pole)
	}
}

// vectorOf stores eigenvector i in the coordinates of the kept eigenvectors: element j at place[j].
func vectorOf[T simd.Float](s *secular, i int, to []T, place []int) {
	origin, at := s.origins[i], s.offsets[i]
	sum := 0.0
	for j, d := range s.poles {
		x := s.weights[j] / ((d - origin) - at)
		s.terms[j] = x
		sum += x * x
	}
	by := 1 / math.Sqrt(sum)
	for j, x := range s.terms {
		to[place[j]] = T(x * by)
	}
}
