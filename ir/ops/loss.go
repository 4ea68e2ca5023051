package ops

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// OpCrossEntropy is the loss of a classifier.
const OpCrossEntropy ir.Op = "cross_entropy"

func init() {
	define(&ir.Def{
		Op: OpCrossEntropy,
		Doc: "logsumexp(logits) - logits[label] along the class axis: the negative logarithm of the probability " +
			"that softmax gives to the label. A label outside the classes is an error when the graph runs.",
		Constraints: numbered(
			"logits are of a float type, axis is one of their axes",
			"labels are integers; their shape is that of logits without the axis, and so is that of the result",
		),
		Operands: []string{"logits", "labels"},
		NewAttrs: func() ir.Attrs { return &AxisAttrs{} },
		Infer:    inferCrossEntropy,
		Body:     crossEntropyBody,
	})
}

// CrossEntropy returns −log softmax(logits)[label] of each example, for logits [...,
// classes] of a float type and integer labels [...]. A label outside [0, classes) is an
// error of kind [ir.ErrIndex] when the graph runs.
func CrossEntropy(b *ir.Builder, logits, labels ir.Value) ir.Value {
	return b.Add1(OpCrossEntropy, axisAttrs(logits, -1), logits, labels)
}

// CrossEntropyMean returns the mean of [CrossEntropy] over all examples, of rank 0.
func CrossEntropyMean(b *ir.Builder, logits, labels ir.Value) ir.Value {
	return Mean(b, CrossEntropy(b, logits, labels))
}

func inferCrossEntropy(n *ir.Node) ([]ir.Type, error) {
	t, err := inferAlongAxis(n)
	if err != nil {
		return nil, err
	}
	labels, shape := n.Input(1).Type(), withoutDim(t[0].Shape, n.Attrs().(*AxisAttrs).Axis)
	if err := integers.checkOperand(n, 1); err != nil {
		return nil, err
	}
	if !labels.Shape.Equal(shape) {
		return nil, ir.Shapef("labels are %s, not %s, logits without the class axis", labels.Shape, shape)
	}
	return []ir.Type{{DType: t[0].DType, Shape: shape}}, nil
}

// crossEntropyBody selects the label's logit by comparing class numbers instead of a
// gather: so the loss and its gradient take one pass over the rows.
func crossEntropyBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	axis, logits := n.Attrs().(*AxisAttrs).Axis, wide(b, in[0])
	labels := CheckIndex(b, in[1], logits.Dim(axis), "label")
	wide := BroadcastInDim(b, Convert(b, labels, ir.I32), slices.Clone(logits.Shape()), permute.Others(logits.Rank(), []int{axis}))
	hit := Eq(b, Iota(b, ir.I32, axis, logits.Shape()...), wide)
	picked := ReduceSum(b, Select(b, hit, logits, ZerosLike(b, logits)), axis)
	return []ir.Value{Convert(b, Sub(b, LogSumExp(b, logits, axis), picked), in[0].DType())}
}

// Reductions of a loss over its elements or examples.
const (
	LossMean = "mean"
	LossSum  = "sum"
	LossNone = "none"
)

// LossAttrs hold the reduction: [LossMean], [LossSum] or [LossNone].
type LossAttrs struct{ Reduction string }

// Visit shows the attributes.
func (a *LossAttrs) Visit(v ir.AttrVisitor) { v.Text("reduction", &a.Reduction) }

func (a *LossAttrs) reduction() string { return a.Reduction }

// reducing is implemented by the attributes of all losses.
type reducing interface {
	ir.Attrs
	reduction() string
}

func checkReduction(n *ir.Node) error {
	switch r := n.Attrs().(reducing).reduction(); r {
	case LossMean, LossSum, LossNone:
		return nil
	default:
		return ir.Attrf("reduction is %q, not one of %q, %q and %q", r, LossMean, LossSum, LossNone)
	}
}

// reduceLoss reduces the elementwise loss by the attributes.
func reduceLoss(b *ir.Builder, n *ir.Node, loss ir.Value) ir.Value {
	switch n.Attrs().(reducing).reduction() {
	case LossMean:
		return Mean(b, loss)
	case LossSum:
		return ReduceSum(b, loss)
	}
	return loss
}

// Elementwise losses of a prediction and a target of one shape.
const (
	OpMSE       ir.Op = "mse"
	OpMAE       ir.Op = "mae"
	OpHuber     ir.Op = "huber"
	OpSmoothL1  ir.Op = "smooth_l1"
	OpBCE       ir.Op = "bce"
	OpBCELogits ir.Op = "bce_with_logits"
	OpHinge     ir.Op = "hinge"
	OpKLDiv     ir.Op = "kl_div"
	OpFocal     ir.Op = "focal"
)

// DeltaLossAttrs add the error above which a loss is linear.
type DeltaLossAttrs struct {
	LossAttrs
	Delta float64
}

// Visit shows the attributes.
func (a *DeltaLossAttrs) Visit(v ir.AttrVisitor) {
	a.LossAttrs.Visit(v)
	v.Float("delta", &a.Delta)
}

// FocalAttrs hold Alpha, the weight of positive examples, with 1 − Alpha for negative
// ones, and Gamma, the focusing exponent. A negative Alpha means no weights. [Focal]
// takes an Alpha of 0 for 0.25 and a Gamma of 0 for 2, the values of Lin et al. 2017; the
// loss without focusing is [BCEWithLogits].
type FocalAttrs struct {
	LossAttrs
	Alpha, Gamma float64
}

// Visit shows the attributes.
func (a *FocalAttrs) Visit(v ir.AttrVisitor) {
	a.LossAttrs.Visit(v)
	v.Float("alpha", &a.Alpha)
	v.Float("gamma", &a.Gamma)
}

const (
	defaultAlpha = 0.25
	defaultGamma = 2
)

// elementLoss describes a loss of the elements of two operands.
type elementLoss struct {
	op       ir.Op
	doc      string
	newAttrs func() ir.Attrs // LossAttrs where nil
	// loss computes the loss of each element, of operands of one shape in f32 or f64.
	loss func(b *ir.Builder, n *ir.Node, x, target ir.Value) ir.Value
}

func init() {
	plain := func(f func(b *ir.Builder, x, target ir.Value) ir.Value) func(*ir.Builder, *ir.Node, ir.Value, ir.Value) ir.Value {
		return func(b *ir.Builder, _ *ir.Node, x, target ir.Value) ir.Value { return f(b, x, target) }
	}
	delta := func() ir.Attrs { return &DeltaLossAttrs{LossAttrs{LossMean}, 1} }
	for _, l := range []elementLoss{
		{
			op: OpMSE, doc: "The squared error (x − target)².",
			loss: plain(func(b *ir.Builder, x, target ir.Value) ir.Value { return Square(b, Sub(b, x, target)) }),
		},
		{
			op: OpMAE, doc: "The absolute error |x − target|. The derivative where they are equal is 0.",
			loss: plain(func(b *ir.Builder, x, target ir.Value) ir.Value { return Abs(b, Sub(b, x, target)) }),
		},
		{
			op: OpHuber, doc: "Half the squared error e up to delta, and delta·(|e| − delta/2) beyond (Huber, Robust Estimation of a Location Parameter).",
			newAttrs: delta, loss: huber,
		},
		{
			op: OpSmoothL1, doc: "huber divided by delta, which PyTorch calls beta: |e| − delta/2 beyond delta.",
			newAttrs: delta,
			loss: func(b *ir.Builder, n *ir.Node, x, target ir.Value) ir.Value {
				return Div(b, huber(b, n, x, target), ConstLike(b, x, n.Attrs().(*DeltaLossAttrs).Delta))
			},
		},
		{
			op: OpBCE, doc: "The binary cross-entropy −target·log x − (1 − target)·log(1 − x) of probabilities x; logarithms are clamped to −100 from below, as " +
				"in PyTorch. bce_with_logits is more accurate.",
			loss: plain(bce),
		},
		{
			op: OpBCELogits, doc: "The binary cross-entropy of the probabilities sigmoid(x): softplus(x) − x·target.",
			loss: plain(bceWithLogits),
		},
		{
			op: OpHinge, doc: "max(0, 1 − x·target), for targets of 1 and −1. The derivative at the kink is 0.",
			loss: plain(func(b *ir.Builder, x, target ir.Value) ir.Value {
				return positivePart(b, Sub(b, OnesLike(b, x), Mul(b, x, target)))
			}),
		},
		{
			op: OpKLDiv, doc: "target·(log(target) − x), 0 where the target is 0: the Kullback–Leibler divergence of log-probabilities x from " +
				"probabilities target. The mean is over all elements, not over examples (PyTorch's batchmean).",
			loss: plain(func(b *ir.Builder, x, target ir.Value) ir.Value {
				return Sub(b, XLogY(b, target, target), Mul(b, target, x))
			}),
		},
		{
			op: OpFocal, doc: "bce_with_logits times (1 − p)^gamma, where p is the probability given to the target, and times alpha for targets of 1 " +
				"and 1 − alpha for those of 0, unless alpha is negative (Lin et al., Focal Loss for Dense Object Detection).",
			newAttrs: func() ir.Attrs { return &FocalAttrs{LossAttrs{LossMean}, defaultAlpha, defaultGamma} },
			loss:     focal,
		},
	} {
		defineElementLoss(l)
	}
}

func defineElementLoss(l elementLoss) {
	if l.newAttrs == nil {
		l.newAttrs = func() ir.Attrs { return &LossAttrs{LossMean} }
	}
	defineComposite(composite{
		op: l.op, doc: l.doc + " The reduction is the mean (the default) or the sum over all elements, or none.",
		operands: []string{"x", "target"}, types: floats, newAttrs: l.newAttrs,
		constraints: []string{
			"target has the type of x",
			`reduction is "mean", "sum" or "none"`,
		},
		check: checkElementLoss,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			loss := l.loss(b, n, wide(b, in[0]), wide(b, in[1]))
			return Convert(b, reduceLoss(b, n, loss), in[0].DType())
		},
	})
}

func checkElementLoss(n *ir.Node) error {
	if _, err := sameTypes(n, floats); err != nil {
		return err
	}
	if a, ok := n.Attrs().(*DeltaLossAttrs); ok && !(a.Delta > 0) {
		return ir.Attrf("delta is %v, not positive", a.Delta)
	}
	return checkReduction(n)
}

// huber is half the squared error, with the error clamped to delta, plus delta times the
// excess.
func huber(b *ir.Builder, n *ir.Node, x, target ir.Value) ir.Value {
	delta := ConstLike(b, x, n.Attrs().(*DeltaLossAttrs).Delta)
	half, e := ConstLike(b, x, 0.5), Sub(b, x, target)
	a := Abs(b, e)
	line := Mul(b, delta, Sub(b, a, Mul(b, delta, half)))
	return Select(b, Le(b, a, delta), Mul(b, half, Square(b, e)), line)
}

func bce(b *ir.Builder, x, target ir.Value) ir.Value {
	logarithm := func(l ir.Value) ir.Value { return downTo(b, l, -100) }
	rest := Sub(b, OnesLike(b, target), target)
	hits := Mul(b, target, logarithm(Log(b, x)))
	return Neg(b, Add(b, hits, Mul(b, rest, logarithm(Log1p(b, Neg(b, x))))))
}

func bceWithLogits(b *ir.Builder, x, target ir.Value) ir.Value {
	return Sub(b, Softplus(b, x), Mul(b, x, target))
}

func focal(b *ir.Builder, n *ir.Node, x, target ir.Value) ir.Value {
	a, one := n.Attrs().(*FocalAttrs), OnesLike(b, x)
	// between the values for targets of 1 and of 0
	mix := func(hit, miss ir.Value) ir.Value {
		return Add(b, Mul(b, target, hit), Mul(b, Sub(b, one, target), miss))
	}
	missed := mix(Sigmoid(b, Neg(b, x)), Sigmoid(b, x)) // 1 − p
	loss := Mul(b, bceWithLogits(b, x, target), Pow(b, missed, ConstLike(b, x, a.Gamma)))
	if a.Alpha < 0 {
		return loss
	}
	return Mul(b, loss, mix(ConstLike(b, x, a.Alpha), ConstLike(b, x, 1-a.Alpha)))
}

// loss adds a loss; an empty reduction means the mean.
func loss(b *ir.Builder, op ir.Op, a ir.Attrs, reduction *string, in ...ir.Value) ir.Value {
	if *reduction == "" {
		*reduction = LossMean
	}
	return b.Add1(op, a, in...)
}

func plainLoss(b *ir.Builder, op ir.Op, x, target ir.Value, reduction string) ir.Value {
	a := &LossAttrs{reduction}
	return loss(b, op, a, &a.Reduction, x, target)
}

func deltaLoss(b *ir.Builder, op ir.Op, x, target ir.Value, delta float64, reduction string) ir.Value {
	a := &DeltaLossAttrs{LossAttrs{reduction}, delta}
	return loss(b, op, a, &a.Reduction, x, target)
}

// MSE returns the squared error (x − target)², for operands of one float type and shape.
// The reduction of this and the other losses is [LossMean], also for "", [LossSum] or
// [LossNone].
func MSE(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	return plainLoss(b, OpMSE, x, target, reduction)
}

// MAE returns the absolute error |x − target|; see [MSE] for the reduction.
func MAE(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	return plainLoss(b, OpMAE, x, target, reduction)
}

// Huber returns e²/2 for errors e up to delta and delta·(|e| − delta/2) beyond (Huber,
// Robust Estimation of a Location Parameter). delta is positive.
func Huber(b *ir.Builder, x, target ir.Value, delta float64, reduction string) ir.Value {
	return deltaLoss(b, OpHuber, x, target, delta, reduction)
}

// SmoothL1 returns [Huber] divided by delta, which PyTorch calls beta.
func SmoothL1(b *ir.Builder, x, target ir.Value, delta float64, reduction string) ir.Value {
	return deltaLoss(b, OpSmoothL1, x, target, delta, reduction)
}

// BCE returns the binary cross-entropy of probabilities x. [BCEWithLogits] is more
// accurate.
func BCE(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	return plainLoss(b, OpBCE, x, target, reduction)
}

// BCEWithLogits returns the binary cross-entropy of the probabilities
// sigmoid(x).
func BCEWithLogits(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	return plainLoss(b, OpBCELogits, x, target, reduction)
}

// Hinge returns max(0, 1 − x·target).
func Hinge(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	return plainLoss(b, OpHinge, x, target, reduction)
}

// KLDiv returns target·(log(target) − x), the Kullback–Leibler divergence of
// log-probabilities x from probabilities target.
func KLDiv(b *ir.Builder, x, target ir.Value, reduction string) ir.Value {
	return plainLoss(b, OpKLDiv, x, target, reduction)
}

// Focal returns the focal loss of the probabilities sigmoid(x) (Lin et al., Focal Loss for
// Dense Object Detection). Zero fields of a take their defaults: see [FocalAttrs].
func Focal(b *ir.Builder, x, target ir.Value, a FocalAttrs) ir.Value {
	a.Alpha, a.Gamma = cmp.Or(a.Alpha, defaultAlpha), cmp.Or(a.Gamma, defaultGamma)
	return loss(b, OpFocal, &a, &a.Reduction, x, target)
}
