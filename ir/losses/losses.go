// Package losses has losses over a builder beside those of package ops ([ops.MSE], [ops.BCE],
// [ops.CrossEntropyLoss], [ops.Huber], [ops.Hinge], …), with PyTorch's formulas and defaults. They compose
// ops, so derivatives of every order exist. Operands are of one float type, and are broadcast; they
// are computed in f32 where they are narrower. Reductions are [ops.LossMean], also for "", [ops.LossSum] and
// [ops.LossNone]. At a kink the derivative is that of the constant piece.
//
// Errors are recorded in the builder: of kind [ir.ErrShape] for shapes that do not fit, [ir.ErrDType] for a
// wrong element type and [ir.ErrAttr] for options outside their domain.
package losses

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// BatchMean is a reduction of [KLDiv] besides those of package ops: the sum divided by the size of the
// first axis.
const BatchMean = "batchmean"

// loss is a loss while it is built: its operands, wide and broadcast.
type loss struct {
	argument.Check
	in        []ir.Value
	dtype     ir.DType
	reduction string
}

// begin checks and broadcasts the operands of a loss.
func begin(b *ir.Builder, op ir.Op, reduction string, in ...ir.Value) (l *loss, ok bool) {
	c, ok := argument.Of(b, "losses."+op, in...)
	if !ok || !c.Floats() {
		return nil, false
	}
	l = &loss{Check: c, dtype: in[0].DType()}
	words := []string{ops.LossMean, ops.LossSum, ops.LossNone}
	if op == "kl_div" {
		words = append(words, BatchMean)
	}
	l.reduction = c.Word("Reduction", reduction, words...)
	if b.Err() != nil {
		return nil, false
	}
	for _, x := range ops.Broadcast(b, c.Op, in...) {
		l.in = append(l.in, ops.Convert(b, x, argument.Wide(l.dtype)))
	}
	return l, b.Err() == nil
}

// end reduces the loss of each element or example.
func (l *loss) end(x ir.Value) ir.Value {
	b := l.Builder
	if b.Err() != nil {
		return ir.Value{}
	}
	switch l.reduction {
	case ops.LossMean:
		x = ops.Mean(b, x)
	case ops.LossSum:
		x = ops.ReduceSum(b, x)
	case BatchMean:
		if !l.Shape(x.Rank() > 0, "the operands are of rank 0: the reduction %q needs an axis", BatchMean) {
			return ir.Value{}
		}
		sum := ops.ReduceSum(b, x)
		x = ops.Div(b, sum, ops.DimSize(b, sum.DType(), x.Dim(0)))
	}
	return ops.Convert(b, x, l.dtype)
}

// number is a constant like the operands.
func (l *loss) number(x float64) ir.Value { return ops.ConstLike(l.Builder, l.in[0], x) }

// positive returns max(x, 0), with the derivative 0 at 0.
func (l *loss) positive(x ir.Value) ir.Value { return ops.Relu(l.Builder, x) }

// signed returns whenPositive where the target is positive, and whenNegative elsewhere.
func (l *loss) signed(target, whenPositive, whenNegative ir.Value) ir.Value {
	return ops.Select(l.Builder, ops.Gt(l.Builder, target, ops.ZerosLike(l.Builder, target)), whenPositive, whenNegative)
}

// TripletOptions are the options of [TripletMargin].
type TripletOptions struct {
	// Margin is by how much further the negative example must be; 0 means 1.
	Margin float64
	// P is the order of the norm of the distance; 0 means 2.
	P float64
	// Epsilon is added to each difference; 0 means 1e−6.
	Epsilon float64
	// Swap uses the distance of the positive from the negative example where that is smaller.
	Swap bool
	// Reduction is that of the examples.
	Reduction string
}

// TripletMargin returns max(0, d(anchor, positive) − d(anchor, negative) + margin), where d is the norm of
// the difference along the last axis (torch.nn.functional.triplet_margin_loss). Operands are [..., size].
func TripletMargin(b *ir.Builder, anchor, positive, negative ir.Value, o ...TripletOptions) ir.Value {
	opts := first(o)
	l, ok := begin(b, "triplet_margin", opts.Reduction, anchor, positive, negative)
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	margin, p, epsilon := cmp.Or(opts.Margin, 1), cmp.Or(opts.P, 2), cmp.Or(opts.Epsilon, 1e-6)
	l.Attr(margin > 0 && p > 0 && epsilon > 0, "Margin is %v, P %v and Epsilon %v: none may be negative", margin, p, epsilon)
	if !l.Shape(l.in[0].Rank() > 0, "the operands are of rank 0: they must be [..., size]") {
		return ir.Value{}
	}
	distance := func(x, y ir.Value) ir.Value {
		return ops.Norm(b, ops.Add(b, ops.Sub(b, x, y), l.number(epsilon)), p, -1)
	}
	near, far := distance(l.in[0], l.in[1]), distance(l.in[0], l.in[2])
	if opts.Swap {
		far = ops.Min(b, far, distance(l.in[1], l.in[2]))
	}
	return l.end(l.positive(ops.Add(b, ops.Sub(b, near, far), ops.ConstLike(b, near, margin))))
}

// MarginOptions are the options of [MarginRanking], [HingeEmbedding] and [CosineEmbedding].
type MarginOptions struct {
	// Margin is the margin; 0 means 0, and for HingeEmbedding 1.
	Margin float64
	// Reduction is that of the elements, or examples.
	Reduction string
}

// MarginRanking returns max(0, −target·(x − y) + margin), for targets of 1 where x should be the larger
// and −1 where y should (torch.nn.functional.margin_ranking_loss).
func MarginRanking(b *ir.Builder, x, y, target ir.Value, o ...MarginOptions) ir.Value {
	opts := first(o)
	l, ok := begin(b, "margin_ranking", opts.Reduction, x, y, target)
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	product := ops.Mul(b, l.in[2], ops.Sub(b, l.in[0], l.in[1]))
	return l.end(l.positive(ops.Sub(b, l.number(opts.Margin), product)))
}

// HingeEmbedding returns x for targets of 1, and max(0, margin − x) for targets of −1
// (torch.nn.functional.hinge_embedding_loss).
func HingeEmbedding(b *ir.Builder, x, target ir.Value, o ...MarginOptions) ir.Value {
	opts := first(o)
	l, ok := begin(b, "hinge_embedding", opts.Reduction, x, target)
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	away := l.positive(ops.Sub(b, l.number(cmp.Or(opts.Margin, 1)), l.in[0]))
	return l.end(l.signed(l.in[1], l.in[0], away))
}

// CosineEmbedding returns 1 − cos(x, y) for targets of 1, and max(0, cos(x, y) − margin) for targets of −1,
// where cos is the cosine of the angle of the vectors along the last axis
// (torch.nn.functional.cosine_embedding_loss). x and y are [..., size], target [...].
func CosineEmbedding(b *ir.Builder, x, y, target ir.Value, o ...MarginOptions) ir.Value {
	opts := first(o)
	if !b.Require("losses.cosine_embedding", "operand", target.Valid()) {
		return ir.Value{}
	}
	l, ok := begin(b, "cosine_embedding", opts.Reduction, x, y, ops.ExpandDims(b, target, -1))
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	l.Attr(opts.Margin >= -1 && opts.Margin <= 1, "Margin is %v: it must be in [-1, 1]", opts.Margin)
	sum := func(x ir.Value) ir.Value { return ops.ReduceSum(b, x, -1) }
	squares := func(x ir.Value) ir.Value { // 1e−12 is PyTorch's guard
		s := sum(ops.Square(b, x))
		return ops.Add(b, s, ops.ConstLike(b, s, 1e-12))
	}
	product := ops.Mul(b, squares(l.in[0]), squares(l.in[1]))
	cos := ops.Div(b, sum(ops.Mul(b, l.in[0], l.in[1])), ops.Sqrt(b, product))
	away := l.positive(ops.Sub(b, cos, ops.ConstLike(b, cos, opts.Margin)))
	targets := ops.Convert(b, target, cos.DType())
	return l.end(l.signed(ops.BroadcastTo(b, targets, cos.Shape()), ops.Sub(b, ops.OnesLike(b, cos), cos), away))
}

// SoftMargin returns log(1 + e^(−target·x)), for targets of 1 and −1
// (torch.nn.functional.soft_margin_loss). The reduction is as everywhere.
func SoftMargin(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	l, ok := begin(b, "soft_margin", reduction, x, target)
	if !ok {
		return ir.Value{}
	}
	return l.end(ops.Softplus(b, ops.Neg(b, ops.Mul(b, l.in[0], l.in[1]))))
}

// GaussianOptions are the options of [GaussianNLL].
type GaussianOptions struct {
	// Full adds the constant log(2π)/2.
	Full bool
	// Epsilon is the least variance; 0 means 1e−6. The derivative by a variance below is that at the bound.
	Epsilon float64
	// Reduction is that of the elements.
	Reduction string
}

// GaussianNLL returns (log v + (x − target)²/v)/2, the negative log-likelihood of targets by normal
// distributions of means x and variances v (torch.nn.functional.gaussian_nll_loss).
func GaussianNLL(b *ir.Builder, x, target, variance ir.Value, o ...GaussianOptions) ir.Value {
	opts := first(o)
	l, ok := begin(b, "gaussian_nll", opts.Reduction, x, target, variance)
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	epsilon := cmp.Or(opts.Epsilon, 1e-6)
	l.Attr(epsilon > 0, "Epsilon is %v: it must not be negative", epsilon)
	// The clamp is not differentiated, as in PyTorch: a variance below the bound can grow.
	v := l.in[2]
	v = ops.Add(b, v, ops.StopGradient(b, l.positive(ops.Sub(b, l.number(epsilon), v))))
	terms := ops.Add(b, ops.Log(b, v), ops.Div(b, ops.Square(b, ops.Sub(b, l.in[0], l.in[1])), v))
	y := ops.Mul(b, terms, l.number(0.5))
	if opts.Full {
		y = ops.Add(b, y, l.number(math.Log(2*math.Pi)/2))
	}
	return l.end(y)
}

// PoissonOptions are the options of [PoissonNLL].
type PoissonOptions struct {
	// Rates is for x that are rates; by default they are logarithms of rates.
	Rates bool
	// Full adds Stirling's approximation of log(target!) for targets above 1.
	Full bool
	// Epsilon is added to rates before their logarithm; 0 means 1e−8.
	Epsilon float64
	// Reduction is that of the elements.
	Reduction string
}

// PoissonNLL returns e^x − target·x, the negative log-likelihood of targets by Poisson distributions of
// rates e^x, without the constant, or x − target·log(x + ε) of rates x
// (torch.nn.functional.poisson_nll_loss).
func PoissonNLL(b *ir.Builder, x, target ir.Value, o ...PoissonOptions) ir.Value {
	opts := first(o)
	l, ok := begin(b, "poisson_nll", opts.Reduction, x, target)
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	rate, log := ops.Exp(b, l.in[0]), l.in[0]
	if opts.Rates {
		rate, log = l.in[0], ops.Log(b, ops.Add(b, l.in[0], l.number(cmp.Or(opts.Epsilon, 1e-8))))
	}
	y := ops.Sub(b, rate, ops.Mul(b, l.in[1], log))
	if opts.Full {
		one := l.number(1)
		t := ops.Max(b, l.in[1], one) // also where it is masked, its logarithm is finite
		half := ops.Mul(b, l.number(0.5), ops.Log(b, ops.Mul(b, l.number(2*math.Pi), t)))
		stirling := ops.Add(b, ops.Sub(b, ops.Mul(b, t, ops.Log(b, t)), t), half)
		y = ops.Add(b, y, ops.Select(b, ops.Gt(b, l.in[1], one), stirling, l.number(0)))
	}
	return l.end(y)
}

// KLOptions are the options of [KLDiv].
type KLOptions struct {
	// LogTarget is for targets that are logarithms of probabilities.
	LogTarget bool
	// Reduction is that of the elements, or [BatchMean], the mean over examples that the definition has.
	Reduction string
}

// KLDiv returns target·(log target − x), the Kullback–Leibler divergence of log-probabilities x from
// probabilities target, 0 where the target is 0 (torch.nn.functional.kl_div).
func KLDiv(b *ir.Builder, x, target ir.Value, o ...KLOptions) ir.Value {
	opts := first(o)
	l, ok := begin(b, "kl_div", opts.Reduction, x, target)
	if !ok || !l.options(len(o)) {
		return ir.Value{}
	}
	if opts.LogTarget {
		return l.end(ops.MulZero(b, ops.Exp(b, l.in[1]), ops.Sub(b, l.in[1], l.in[0])))
	}
	return l.end(ops.Sub(b, ops.XLogY(b, l.in[1], l.in[1]), ops.MulZero(b, l.in[1], l.in[0])))
}

// options requires at most one option struct.
func (l *loss) options(n int) bool {
	return l.Attr(n <= 1, "%d option structs are given: there must be one at most", n)
}

func first[T any](o []T) (given T) {
	if len(o) > 0 {
		given = o[0]
	}
	return given
}
