package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Kron is preconditioned gradient descent of Li, Preconditioned Stochastic Gradient Descent (2018), with a
// Kronecker-factored preconditioner that whitens gradients (Li, Black Box Lie Group Preconditioners for
// SGD, 2022). For a matrix, with upper triangular Ql and Qr,
//
//	m ← Momentum·m + (1−Momentum)·g
//	p ← p − lr·(clip(Qlᵀ·Ql·m̂·Qrᵀ·Qr) + WeightDecay·p)
//
// where clip limits the root of the mean square. In the first step and then after every Every steps, with
// a = Ql·m̂·Qrᵀ and the mean bl of b·bᵀ for b = Ql⁻ᵀ·v·Qr⁻¹ over normal v,
//
//	Ql ← Ql − Rate·triu(a·aᵀ − bl)·Ql/|a·aᵀ + bl|
//
// and Qr likewise from aᵀ·a and bᵀ·b, where |x| is the largest sum of absolute values of a row. They start as
// multiples of the identity, chosen so that the first step has a root mean square of 1, and are scaled to have equal
// largest elements. A side of more than 8192 has a diagonal factor, and so has a parameter of another rank, for
// its elements. A zero field means its default.
type Kron struct {
	Momentum    float64 // in (0, 1); 0.9 by default
	Rate        float64 // of the factors, in (0, 1); 0.1 by default
	Every       int     // in steps, positive; 10 by default
	Clip        float64 // positive; 1.1 by default
	WeightDecay float64 // not negative; 0 for none
	Diagonal    bool    // whether all factors are diagonal, which take less memory and time
}

// largestSide is that of a triangular factor.
const largestSide = 8192

func (o Kron) withDefaults() Kron {
	o.Momentum, o.Rate, o.Clip = orDefault(o.Momentum, 0.9), orDefault(o.Rate, 0.1), orDefault(o.Clip, 1.1)
	if o.Every == 0 {
		o.Every = 10
	}
	return o
}

// SlotsFor returns "m", and for a matrix "ql" and "qr", otherwise "q".
func (o Kron) SlotsFor(param ir.Type) []Slot {
	m := Slot{"m", param.Shape}
	if len(param.Shape) != 2 {
		return []Slot{m, {"q", param.Shape}}
	}
	side := func(n ir.Dim) ir.Shape {
		if size, known := n.Const(); o.Diagonal || known && size > largestSide {
			return ir.Shape{n}
		}
		return ir.Shape{n, n}
	}
	return []Slot{m, {"ql", side(param.Shape[0])}, {"qr", side(param.Shape[1])}}
}

// Slots returns all names of SlotsFor.
func (Kron) Slots() []string { return []string{"m", "ql", "qr", "q"} }

// Begin checks the hyperparameters and returns the rule.
func (o Kron) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o = o.withDefaults()
	check(b, "kron", hyper{"Momentum", o.Momentum, unit}, hyper{"Rate", o.Rate, unit}, hyper{"Every", float64(o.Every), positive},
		hyper{"Clip", o.Clip, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	first := biasCorrection(b, o.Momentum, count)
	begins := ops.Eq(b, count, ops.OnesLike(b, count))
	every := ops.ConstLike(b, count, float64(max(o.Every, 1)))
	due := ops.Eq(b, ops.Rem(b, ops.Sub(b, count, ops.OnesLike(b, count)), every), ops.ZerosLike(b, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		m := movingAverage(b, slots[0], g, o.Momentum)
		mean := ops.Div(b, m, ops.Convert(b, first, p.DType()))
		next := ops.Cond(b, due, append([]ir.Value{mean}, begun(b, begins, mean, slots[1:])...),
			func(b *ir.Builder, in []ir.Value) []ir.Value { return o.whiten(b, in[0], in[1:]) },
			func(_ *ir.Builder, in []ir.Value) []ir.Value { return in[1:] })
		if b.Err() != nil {
			return p, slots
		}
		step := precondition(b, mean, next)
		limit := ops.Const(b, p.DType(), o.Clip)
		step = ops.Mul(b, step, ops.Div(b, limit, ops.Max(b, rms(b, step), limit)))
		return descend(b, p, l2Decay(b, p, step, o.WeightDecay), rate), append([]ir.Value{m}, next...)
	}
}

// rms returns the root of the mean square.
func rms(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Sqrt(b, ops.Mean(b, ops.Mul(b, x, x)))
}

// begun returns the factors q, at the first step multiples of the identity.
func begun(b *ir.Builder, begins, g ir.Value, q []ir.Value) []ir.Value {
	size := rms(b, g)
	none := ops.Eq(b, size, ops.ZerosLike(b, size))
	each := ops.Pow(b, ops.Select(b, none, ops.OnesLike(b, size), size), ops.Const(b, g.DType(), -0.5/float64(len(q))))
	out := make([]ir.Value, len(q))
	for i, x := range q {
		start := ops.Mul(b, each, ops.OnesLike(b, x))
		if len(q) == 2 && x.Rank() == 2 {
			start = ops.Diag(b, ops.Diagonal(b, start, 0), 0)
		}
		out[i] = ops.Select(b, begins, start, x)
	}
	return out
}

// whiten returns updated factors.
func (o Kron) whiten(b *ir.Builder, g ir.Value, q []ir.Value) []ir.Value {
	if len(q) == 1 { // of elements
		a, inverse := ops.Mul(b, q[0], g), ops.Reciprocal(b, q[0])
		return []ir.Value{side{}.moved(b, q[0], ops.Mul(b, a, a), ops.Mul(b, inverse, inverse), o.Rate)}
	}
	left, right := sideOf(q[0]), sideOf(q[1])
	a := left.times(b, flipped(b, right.times(b, flipped(b, g))))
	l, r := left.inverse(b), right.inverse(b)
	sum := func(x ir.Value) ir.Value { return ops.ReduceSum(b, ops.Mul(b, x, x)) }
	nextLeft := left.moved(b, q[0], left.gram(b, a), ops.Mul(b, left.inverseGram(b, l), sum(r)), o.Rate)
	nextRight := right.moved(b, q[1], right.gram(b, flipped(b, a)), ops.Mul(b, right.inverseGram(b, r), sum(l)), o.Rate)
	largest := func(x ir.Value) ir.Value { return ops.ReduceMax(b, ops.Abs(b, x)) }
	balance := ops.Sqrt(b, ops.Div(b, largest(nextRight), largest(nextLeft)))
	return []ir.Value{ops.Mul(b, nextLeft, balance), ops.Div(b, nextRight, balance)}
}

// precondition returns Qlᵀ·Ql·g·Qrᵀ·Qr.
func precondition(b *ir.Builder, g ir.Value, q []ir.Value) ir.Value {
	if len(q) == 1 {
		return ops.Mul(b, ops.Mul(b, q[0], q[0]), g)
	}
	both := func(s side, x ir.Value) ir.Value { return side{s.q, !s.transposed}.times(b, s.times(b, x)) }
	return flipped(b, both(sideOf(q[1]), flipped(b, both(sideOf(q[0]), g))))
}

// side is a factor: an upper triangular matrix, or the diagonal of one.
type side struct {
	q          ir.Value
	transposed bool
}

func sideOf(q ir.Value) side { return side{q: q} }

func (s side) isDiagonal() bool { return !s.q.Valid() || s.q.Rank() != 2 }

func (s side) times(b *ir.Builder, x ir.Value) ir.Value {
	switch {
	case s.isDiagonal():
		return ops.Mul(b, ops.ExpandDims(b, s.q, 1), x)
	case s.transposed:
		return ops.MatMul(b, flipped(b, s.q), x)
	}
	return ops.MatMul(b, s.q, x)
}

func (s side) inverse(b *ir.Builder) ir.Value {
	if s.isDiagonal() {
		return ops.Reciprocal(b, s.q)
	}
	return ops.TriangularSolve(b, s.q, ops.Diag(b, ops.OnesLike(b, ops.Diagonal(b, s.q, 0)), 0), ops.TriangularAttrs{LeftSide: true})
}

// gram returns x·xᵀ, or its diagonal.
func (s side) gram(b *ir.Builder, x ir.Value) ir.Value {
	if s.isDiagonal() {
		return ops.ReduceSum(b, ops.Mul(b, x, x), 1)
	}
	return ops.MatMul(b, x, flipped(b, x))
}

// inverseGram returns Q⁻ᵀ·Q⁻¹ from the inverse.
func (s side) inverseGram(b *ir.Builder, x ir.Value) ir.Value {
	if s.isDiagonal() {
		return ops.Mul(b, x, x)
	}
	return ops.MatMul(b, flipped(b, x), x)
}

// moved returns q − rate·triu(x − y)·q/|x + y|.
func (s side) moved(b *ir.Builder, q, x, y ir.Value, rate float64) ir.Value {
	size, move := ops.Abs(b, ops.Add(b, x, y)), ops.Sub(b, x, y)
	if s.isDiagonal() {
		move = ops.Mul(b, move, q)
	} else {
		size, move = ops.ReduceSum(b, size, 1), ops.MatMul(b, ops.Triu(b, move, 0), q)
	}
	return ops.Sub(b, q, ops.Div(b, scale(b, move, rate), ops.ReduceMax(b, size)))
}
