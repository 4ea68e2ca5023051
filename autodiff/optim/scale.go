package optim

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// The states of a [LossScale], rank-0 i32.
const (
	// ScaleState is how often the scale has been doubled, less how often it has
	// been halved.
	ScaleState = StatePrefix + scaleState
	// GoodState is how many steps in a row had finite gradients since the scale
	// last changed.
	GoodState = StatePrefix + goodState

	scaleState = "scale"
	goodState  = "good"
)

// scaledOutput is the loss that gradients are taken of, in between.
const scaledOutput = StatePrefix + "scaled"

// LossScale multiplies the loss, before gradients are taken of it, by a power of
// two, and divides the gradients by it: small gradients are then not lost where
// they pass through f16. A step whose gradients are not all finite changes
// nothing but the scale, which is halved; after Interval good steps in a row it
// is doubled. So the scale finds its own way, after Micikevicius et al. 2018
// ("Mixed Precision Training"), with the constants of torch.amp.GradScaler. All
// of it happens on the device. A zero field stands for its default.
type LossScale struct {
	Initial  float64 // a power of two from 1 to 2^100, 65536 by default
	Interval int     // at least 1, 2000 by default
}

// maxScale bounds the exponent of the scale both ways, so that the scale and its
// reciprocal are normal numbers.
const maxScale = 120

// exponent returns the logarithm of Initial, and records an error of kind
// [ir.ErrAttr] in b where a field is out of its domain.
func (l LossScale) exponent(b *ir.Builder) int {
	initial := or(l.Initial, 1<<16)
	fraction, exp := math.Frexp(initial)
	if fraction != 0.5 || initial < 1 || initial > 0x1p100 {
		b.Fail(ir.Attrf("a loss scale of %v is no power of two from 1 to 2^100", initial))
	}
	if l.Interval < 0 {
		b.Fail(ir.Attrf("a loss scale that is doubled after %d steps", l.Interval))
	}
	return exp - 1
}

// scaledLoss returns a graph with one more input, the scale, and one more
// output, the last one: the loss multiplied by it.
func scaledLoss(loss *ir.Graph, name string) (*ir.Graph, error) {
	at := slices.IndexFunc(loss.Outputs(), func(o ir.Output) bool { return o.Name == name && !o.State })
	if at < 0 {
		return nil, ir.Errorf(ir.ErrName, "graph %q has no output %q", loss.Name(), name)
	}
	return ir.Transform(loss.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(loss)
		b.CopyPorts(loss, m)
		in := make([]ir.Value, len(loss.Ports()))
		for i, p := range loss.Ports() {
			in[i] = m.Get(p.Value)
		}
		scale := b.Input(ScaleState, ir.F32)
		out := b.Splice(loss, in)
		for i, o := range loss.Outputs() {
			b.CopyOutput(o, out[i])
		}
		if b.Err() == nil {
			b.Output(scaledOutput, ops.Mul(b, out[at], ops.Convert(b, scale, out[at].DType())))
		}
	})
}

// scaling is a loss scale at work in a step.
type scaling struct {
	LossScale
	options       Options
	initial       int      // the exponent of the first scale
	doubled, good ir.Value // the states before the step
	finite        ir.Value // whether the gradients of this step all are
}

// begin adds the states and returns the scale of this step, f32.
func (l *scaling) begin(b *ir.Builder) ir.Value {
	l.initial = l.exponent(b)
	l.doubled, l.good = b.State(l.options.state(scaleState), ir.I32), b.State(l.options.state(goodState), ir.I32)
	return powerOfTwo(b, ops.Add(b, l.doubled, ops.ConstLike(b, l.doubled, float64(l.initial))))
}

// powerOfTwo returns 2 to a power from -126 to 127, exactly: its bits.
func powerOfTwo(b *ir.Builder, exponent ir.Value) ir.Value {
	biased := ops.Add(b, exponent, ops.ConstLike(b, exponent, 127))
	return ops.Bitcast(b, ops.ShiftLeft(b, biased, ops.ConstLike(b, biased, 23)), ir.F32)
}

// unscale divides the gradients by the scale and finds out whether all of them
// are finite: whether the largest magnitude is, since that of NaN is NaN.
func (l *scaling) unscale(b *ir.Builder, params []param) {
	reciprocal := powerOfTwo(b, ops.Sub(b, ops.ConstLike(b, l.doubled, float64(-l.initial)), l.doubled))
	most := []ir.Value{ops.Const(b, ir.F32, 0)} // where all parameters are empty
	for i := range params {
		p := &params[i]
		p.grad = ops.Mul(b, p.grad, ops.Convert(b, reciprocal, p.grad.DType()))
		most = append(most, ops.Convert(b, ops.ReduceMax(b, ops.Abs(b, p.grad)), ir.F32))
	}
	l.finite = ops.IsFinite(b, greatest(b, most))
}

// greatest returns the largest of some values, NaN if one is.
func greatest(b *ir.Builder, x []ir.Value) ir.Value {
	if len(x) == 1 {
		return x[0]
	}
	half := len(x) / 2
	return ops.Max(b, greatest(b, x[:half]), greatest(b, x[half:]))
}

// end sets the states for the next step.
func (l *scaling) end(b *ir.Builder) {
	number := func(x int) ir.Value { return ops.ConstLike(b, l.good, float64(x)) }
	interval := l.Interval
	if interval == 0 {
		interval = 2000
	}
	good := ops.Add(b, l.good, number(1))
	full := ops.Ge(b, good, number(interval))
	step := ops.Select(b, l.finite, ops.Select(b, full, number(1), number(0)), number(-1))
	moved := ops.Clamp(b, ops.Add(b, l.doubled, step), number(-maxScale-l.initial), number(maxScale-l.initial))
	b.SetState(l.options.state(scaleState), moved)
	b.SetState(l.options.state(goodState), ops.Select(b, ops.And(b, l.finite, ops.Not(b, full)), good, number(0)))
}

// unlessSkipped returns the new value of a state, or the old one in a step whose
// gradients are not finite. l may be nil: then no step is skipped.
func (l *scaling) unlessSkipped(b *ir.Builder, updated, old ir.Value) ir.Value {
	if l == nil || b.Err() != nil {
		return updated
	}
	return ops.Select(b, l.finite, updated, old)
}
