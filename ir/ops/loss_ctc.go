package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

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
		return ir.Shapef("logs are %s and labels %s, not [time, batch, classes] and i32[batch, most]", logs.Type(), labels.Type())
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
	time, batch, most := logs.Dim(0), logs.Dim(1), labels.Dim(1)
	places := most.Mul(ir.N(2)).Add(ir.N(1))
	blank := Const(b, ir.I32, float64(a.Blank))
	pairs := Pad(b, ExpandDims(b, labels, -1), blank, []int{0, 0, 0}, []int{0, 0, 1}, nil)
	spread := Pad(b, Reshape(b, pairs, batch, most.Mul(ir.N(2))), blank, []int{0, 1}, []int{0, 0}, nil)
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
// sequence. An empty reduction stands for the mean.
func CTCLoss(b *ir.Builder, logs, labels, times, lengths ir.Value, a CTCAttrs) ir.Value {
	return loss(b, OpCTC, &a, &a.Reduction, logs, labels, times, lengths)
}
