package ops

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// Classification losses with class weights, label smoothing and ignored labels, and cosine
// similarity.
const (
	OpCrossEntropyLoss ir.Op = "cross_entropy_loss"
	OpNLL              ir.Op = "nll"
	OpCosineSimilarity ir.Op = "cosine_similarity"
)

// ClassLossAttrs describe a loss along the class axis. Examples whose label is in Ignored,
// −100 by PyTorch's convention, have loss 0 and do not count in the mean.
type ClassLossAttrs struct {
	LossAttrs
	Axis           int // of the classes
	Ignored        []int
	LabelSmoothing float64 // in [0, 1]: the weight of the uniform distribution
}

// Visit shows the attributes.
func (a *ClassLossAttrs) Visit(v ir.AttrVisitor) {
	a.LossAttrs.Visit(v)
	v.Int("axis", &a.Axis)
	v.Ints("ignored", &a.Ignored)
	v.Float("label_smoothing", &a.LabelSmoothing)
}

// Complete makes the last axis the default.
func (a *ClassLossAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxis(&a.Axis, in, given)
}

func newClassLossAttrs() ir.Attrs { return &ClassLossAttrs{LossAttrs: LossAttrs{LossMean}} }

// CosineAttrs hold the axis of the vectors, and the lower bound of their norms.
type CosineAttrs struct {
	Axis    int
	Epsilon float64
}

// Visit shows the attributes.
func (a *CosineAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Float("epsilon", &a.Epsilon)
}

// Complete makes the last axis the default.
func (a *CosineAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxis(&a.Axis, in, given)
}

func init() {
	reductionDoc := " The reduction is the mean (the default) over the examples that are not ignored, weighted by their class weights, the " +
		"sum, or none."
	constraints := []string{
		"labels are integers; their shape is that of the first operand without the axis",
		"a label is a class or an ignored label; any other is an error when the graph runs",
		"weight, which may be left out, has the type of the first operand and shape [classes]",
		`label_smoothing is in [0, 1]; reduction is "mean", "sum" or "none"`,
	}
	for _, l := range []struct {
		op   ir.Op
		doc  string
		logs func(b *ir.Builder, x ir.Value, axis int) ir.Value
	}{
		{
			OpCrossEntropyLoss, "−log softmax(logits)[label], times the class weight of the label; with " +
				"label_smoothing s, 1 − s times that plus s times the mean over all classes (Szegedy et al., Rethinking the Inception Architecture)." + reductionDoc,
			LogSoftmax,
		},
		{
			OpNLL, "The negative log-likelihood of labels, for log-probabilities: cross_entropy_loss without the softmax." + reductionDoc,
			func(_ *ir.Builder, x ir.Value, _ int) ir.Value { return x },
		},
	} {
		defineComposite(composite{
			op: l.op, doc: l.doc, constraints: constraints,
			operands: []string{"logits", "labels", "weight"}, optional: 1, types: floats,
			newAttrs: newClassLossAttrs, check: checkClassLoss,
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				logs := l.logs(b, wide(b, in[0]), n.Attrs().(*ClassLossAttrs).Axis)
				return Convert(b, classLoss(b, n.Attrs().(*ClassLossAttrs), logs, in), in[0].DType())
			},
		})
	}
	defineComposite(composite{
		op: OpCosineSimilarity, doc: "The sum of x·y along an axis divided by max(‖x‖, epsilon)·max(‖y‖, epsilon), as in PyTorch.",
		operands: []string{"x", "y"}, types: floats, newAttrs: func() ir.Attrs { return &CosineAttrs{Epsilon: 1e-8} },
		constraints: []string{"y has the type of x and is broadcast against it; the result lacks the axis", "epsilon is positive"},
		check: func(n *ir.Node) error {
			a := n.Attrs().(*CosineAttrs)
			if !(a.Epsilon > 0) {
				return ir.Attrf("epsilon is %v, not positive", a.Epsilon)
			}
			if err := oneDType(n); err != nil {
				return err
			}
			return checkAxes([]int{a.Axis}, n.Input(0).Rank())
		},
		body: cosineSimilarity,
	})
}

func checkClassLoss(n *ir.Node) error {
	a, x := n.Attrs().(*ClassLossAttrs), n.Input(0).Type()
	if err := checkReduction(n); err != nil {
		return err
	}
	if !(a.LabelSmoothing >= 0 && a.LabelSmoothing <= 1) {
		return ir.Attrf("label_smoothing is %v, not in [0, 1]", a.LabelSmoothing)
	}
	if err := checkAxes([]int{a.Axis}, len(x.Shape)); err != nil {
		return err
	}
	labels := n.Input(1).Type()
	if err := integers.checkOperand(n, 1); err != nil {
		return err
	}
	if want := withoutDim(x.Shape, a.Axis); !labels.Shape.Equal(want) {
		return ir.Shapef("labels are %s, not %s, logits without the class axis", labels.Shape, want)
	}
	if len(n.Inputs()) > 2 {
		if want := ir.TypeOf(x.DType, x.Shape[a.Axis]); !n.Input(2).Type().Equal(want) {
			return ir.Shapef("the weight is %s, not %s", n.Input(2).Type(), want)
		}
	}
	return nil
}

// classLoss selects the label's entry by comparing class numbers instead of a gather: so
// the loss and its gradient take one pass over the rows.
func classLoss(b *ir.Builder, a *ClassLossAttrs, logs ir.Value, in []ir.Value) ir.Value {
	axis, shape := a.Axis, logs.Shape()
	others := permute.Others(logs.Rank(), []int{axis})
	labels := Convert(b, in[1], ir.I32)
	counts := Ones(b, ir.Bool, labels.Shape()...)
	for _, label := range a.Ignored {
		counts = And(b, counts, Ne(b, labels, ConstLike(b, labels, float64(label))))
	}
	labels = Select(b, counts, labels, ZerosLike(b, labels))
	labels = CheckIndex(b, labels, shape[axis], "label")
	hit := Eq(b, Iota(b, ir.I32, axis, shape...), BroadcastInDim(b, labels, shape, others))
	sum := func(x ir.Value) ir.Value { return ReduceSum(b, x, axis) }

	zero, weights := ZerosLike(b, logs), OnesLike(b, logs)
	if len(in) > 2 {
		weights = BroadcastInDim(b, wide(b, in[2]), shape, []int{axis})
	}
	weighted := Mul(b, logs, weights)
	losses := Neg(b, sum(Select(b, hit, weighted, zero)))
	if s := a.LabelSmoothing; s > 0 {
		spread := Div(b, Neg(b, sum(weighted)), DimSize(b, logs.DType(), shape[axis]))
		losses = Add(b, Mul(b, losses, ConstLike(b, losses, 1-s)), Mul(b, spread, ConstLike(b, spread, s)))
	}
	losses = Select(b, counts, losses, ZerosLike(b, losses))
	switch a.Reduction {
	case LossNone:
		return losses
	case LossSum:
		return ReduceSum(b, losses)
	}
	counted := sum(Select(b, hit, weights, zero))
	return Div(b, ReduceSum(b, losses), ReduceSum(b, Select(b, counts, counted, ZerosLike(b, counted))))
}

// cosineSimilarity bounds the squared norms from below, so that a zero vector has a
// derivative.
func cosineSimilarity(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a := n.Attrs().(*CosineAttrs)
	x := Broadcast(b, n.Op(), in...)
	if b.Err() != nil {
		return ir.Value{}
	}
	axis := a.Axis + x[0].Rank() - in[0].Rank()
	inverse := func(v ir.Value) ir.Value {
		s := ReduceSum(b, Square(b, v), axis)
		return Rsqrt(b, Max(b, s, ConstLike(b, s, a.Epsilon*a.Epsilon)))
	}
	v, w := wide(b, x[0]), wide(b, x[1])
	dot := ReduceSum(b, Mul(b, v, w), axis)
	return Convert(b, Mul(b, Mul(b, dot, inverse(v)), inverse(w)), in[0].DType())
}

// CrossEntropyLoss returns [CrossEntropy] along any axis of logits with class weights,
// ignored labels, label smoothing and a reduction. weight, [classes], may be left out (the
// zero Value). An axis of 0 means the last one; negative axes count from the end, so
// the first of n axes is −n. An empty reduction means the mean.
func CrossEntropyLoss(b *ir.Builder, logits, labels, weight ir.Value, a ClassLossAttrs) ir.Value {
	a.Axis = classAxis(a.Axis, logits.Rank())
	return loss(b, OpCrossEntropyLoss, &a, &a.Reduction, given(logits, labels, weight)...)
}

func classAxis(axis, rank int) int { return fromFront([]int{cmp.Or(axis, -1)}, rank)[0] }

// NLL is [CrossEntropyLoss] for log-probabilities: the negative log-likelihood.
func NLL(b *ir.Builder, logs, labels, weight ir.Value, a ClassLossAttrs) ir.Value {
	a.Axis = classAxis(a.Axis, logs.Rank())
	return loss(b, OpNLL, &a, &a.Reduction, given(logs, labels, weight)...)
}

// CosineSimilarity returns Σ x·y / (max(‖x‖, epsilon)·max(‖y‖, epsilon)) along axis, which
// the result lacks. y is broadcast against x; epsilon is positive and has no default.
func CosineSimilarity(b *ir.Builder, x, y ir.Value, axis int, epsilon float64) ir.Value {
	return b.Add1(OpCosineSimilarity, &CosineAttrs{fromFront([]int{axis}, x.Rank())[0], epsilon}, x, y)
}

// OpCTC is connectionist temporal classification, a loss for unaligned sequences.
const OpCTC ir.Op = "ctc_loss"

// CTCAttrs hold the blank class, and whether an infinite loss, of a sequence too short for
// its labels, counts as 0.
type CTCAttrs struct {
	LossAttrs
	Blank        int
	ZeroInfinity bool
}

// Visit shows the attributes.
func (a *CTCAttrs) Visit(v ir.AttrVisitor) {
	a.LossAttrs.Visit(v)
	v.Int("blank", &a.Blank)
	v.Bool("zero_infinity", &a.ZeroInfinity)
}

func init() {
	defineComposite(composite{
		op: OpCTC, operands: []string{"logs", "labels", "times", "lengths"}, types: floats,
		newAttrs: func() ir.Attrs { return &CTCAttrs{LossAttrs: LossAttrs{LossMean}} },
		doc: "−log p(labels), with p summed over all alignments of the labels with the steps, with repetitions and blanks (Graves " +
			"et al., Connectionist Temporal Classification): for log-probabilities [time, batch, classes], labels i32[batch, max labels], and the " +
			"numbers of valid steps and labels of each sequence, i32[batch]. The reduction is the mean (the default) of each loss divided by its number of labels, " +
			"the sum, or none, as in PyTorch. It is computed in f32 for narrower types.",
		constraints: []string{
			"the operands have the types stated", "a valid label is a class other than blank",
			`reduction is "mean", "sum" or "none"; blank is a class`,
		},
		check: checkCTC,
		body:  ctcLoss,
	})
}

func checkCTC(n *ir.Node) error {
	if err := checkReduction(n); err != nil {
		return err
	}
	a, logs, labels := n.Attrs().(*CTCAttrs), n.Input(0), n.Input(1)
	if logs.Rank() != 3 || labels.Rank() != 2 || labels.DType() != ir.I32 || labels.Dim(0) != logs.Dim(1) {
		return ir.Shapef("logs are %s and labels %s, not [time, batch, classes] and i32[batch, labels]", logs.Type(), labels.Type())
	}
	for i, v := range n.Inputs()[2:] {
		if want := ir.TypeOf(ir.I32, logs.Dim(1)); !v.Type().Equal(want) {
			return ir.Shapef("%s are %s, not %s", n.Def().Operands[2+i], v.Type(), want)
		}
	}
	if classes, ok := logs.Dim(2).Const(); a.Blank < 0 || ok && a.Blank >= classes {
		return ir.Attrf("blank is %d, not in [0, %s), the classes", a.Blank, logs.Dim(2))
	}
	return nil
}

// ctcLoss scans over the steps with the log-probabilities of all label prefixes, with
// blanks before, between and after the labels.
func ctcLoss(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, logs, labels, lengths := n.Attrs().(*CTCAttrs), wide(b, in[0]), in[1], in[3]
	if b.Err() != nil {
		return ir.Value{}
	}
	time, batch, maxLabels := logs.Dim(0), logs.Dim(1), labels.Dim(1)
	places := maxLabels.Mul(ir.N(2)).Add(ir.N(1))
	blank := Const(b, ir.I32, float64(a.Blank))
	pairs := Pad(b, ExpandDims(b, labels, -1), blank, []int{0, 0, 0}, []int{0, 0, 1}, nil)
	spread := Pad(b, Reshape(b, pairs, batch, maxLabels.Mul(ir.N(2))), blank, []int{0, 1}, []int{0, 0}, nil)
	steps := ir.Shape{time, batch, places}
	emitted := TakeAlongAxis(b, logs, BroadcastTo(b, spread, steps), 2, OutsideClip)
	none := Const(b, logs.DType(), math.Inf(-1), batch, places)
	place := Iota(b, ir.I32, 1, batch, places)
	at := func(i int) ir.Value { return ConstLike(b, place, float64(i)) }
	first := Select(b, Eq(b, place, at(0)), ZerosLike(b, none), none)
	// skipping the blank between two labels is allowed unless they are equal
	before := Pad(b, spread, blank, []int{0, 2}, []int{0, -2}, nil)
	jumps := And(b, Ne(b, spread, blank), Ne(b, spread, before))

	last, _ := Scan(b, Loop{
		Consts: []ir.Value{jumps, in[2]}, Carries: []ir.Value{first},
		Xs: []ir.Value{emitted, Iota(b, ir.I32, 0, time)},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			alpha := carries[0]
			none := ConstLike(b, alpha, math.Inf(-1))
			from := func(steps int) ir.Value {
				return Pad(b, alpha, Const(b, alpha.DType(), math.Inf(-1)), []int{0, steps}, []int{0, -steps}, nil)
			}
			ways := Stack(b, 0, alpha, from(1), Select(b, consts[0], from(2), none))
			sum := Add(b, LogSumExp(b, ways, 0), xs[0])
			counts := ExpandDims(b, Lt(b, xs[1], consts[1]), -1)
			return []ir.Value{Select(b, counts, sum, alpha)}, nil
		},
	})
	ends := Mul(b, ExpandDims(b, lengths, -1), Const(b, ir.I32, 2))
	final := Or(b, Eq(b, place, ends), Eq(b, place, minus(b, ends, 1)))
	loss := Neg(b, LogSumExp(b, Select(b, final, last[0], none), 1))
	if a.ZeroInfinity {
		loss = Select(b, IsFinite(b, loss), loss, ZerosLike(b, loss))
	}
	switch a.Reduction {
	case LossMean:
		count := Convert(b, Max(b, lengths, OnesLike(b, lengths)), loss.DType())
		loss = Mean(b, Div(b, loss, count))
	case LossSum:
		loss = ReduceSum(b, loss)
	}
	return Convert(b, loss, in[0].DType())
}

// CTCLoss returns the CTC loss of labels, i32[batch, max labels], for log-probabilities
// logs, [time, batch, classes] (Graves et al., Connectionist Temporal Classification).
// times and lengths, i32[batch], hold the number of valid steps and labels of each
// sequence. An empty reduction means the mean.
func CTCLoss(b *ir.Builder, logs, labels, times, lengths ir.Value, a CTCAttrs) ir.Value {
	return loss(b, OpCTC, &a, &a.Reduction, logs, labels, times, lengths)
}
