package optim

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// The states of a [LossScale], both rank-0 i32.
const (
	// ScaleState is the exponent of the scale relative to Initial: the number of doublings minus
	// the number of halvings.
	ScaleState = StatePrefix + scaleState
	// GoodState is the number of consecutive steps with finite gradients since the scale last
	// changed.
	GoodState = StatePrefix + goodState

	scaleState = "scale"
	goodState  = "good"
)

// scaledOutput is the temporary output with the scaled loss.
const scaledOutput = StatePrefix + "scaled"

// LossScale scales the loss by a power of two before differentiation and unscales the gradients, so
// that small gradients do not underflow in f16 (dynamic loss scaling, Micikevicius et al., Mixed
// Precision Training, 2018). A step with a gradient that is not finite changes nothing, also no state
// of the loss such as running statistics, except that the scale is halved; after Interval consecutive
// good steps the scale is doubled. The constants are those of torch.amp.GradScaler. The scale is kept
// on the device. A zero field means its default.
type LossScale struct {
	Initial  float64 // a power of two from 1 to 2^100; 65536 by default
	Interval int     // in steps, at least 1; 2000 by default
}

// maxScale limits the magnitude of the scale's exponent, so that the scale and its reciprocal are
// normal f32 numbers.
const maxScale = 120

// exponent returns the binary logarithm of Initial. It records an error of kind [ir.ErrAttr] for a
// field outside its domain.
func (l LossScale) exponent(b *ir.Builder) int {
	initial := orDefault(l.Initial, 1<<16)
	fraction, exp := math.Frexp(initial)
	if fraction != 0.5 || initial < 1 || initial > 0x1p100 {
		b.Fail(ir.Attrf("loss scale: Initial is %v; it must be a power of two from 1 to 2^100", initial))
	}
	check(b, "loss scale", hyper{"Interval", float64(l.Interval), notNegative})
	return exp - 1
}

// scaledLoss returns a graph with one more input, the scale, and one more output at the end, the
// loss times the scale.
func scaledLoss(loss *ir.Graph, name string) (*ir.Graph, error) {
	at := slices.IndexFunc(loss.Outputs(), func(o ir.Output) bool { return o.Name == name && !o.State })
	if at < 0 {
		return nil, loss.UnknownOutput(name)
	}
	return ir.Transform(loss.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(loss, nil)
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

// scaling is the loss scale of a step graph.
type scaling struct {
	LossScale
	options       Options
	initial       int      // the exponent of Initial
	doubled, good ir.Value // the states before the step
	finite        ir.Value // whether all gradients of this step are finite
}

// begin adds the states and returns the scale of this step, an f32.
func (l *scaling) begin(b *ir.Builder) ir.Value {
	l.initial = l.exponent(b)
	l.doubled, l.good = b.State(l.options.state(scaleState), ir.I32), b.State(l.options.state(goodState), ir.I32)
	return powerOfTwo(b, ops.Add(b, l.doubled, ops.ConstLike(b, l.doubled, float64(l.initial))))
}

// powerOfTwo returns 2 to an exponent from -126 to 127, exactly, by setting the exponent bits.
func powerOfTwo(b *ir.Builder, exponent ir.Value) ir.Value {
	biased := ops.Add(b, exponent, ops.ConstLike(b, exponent, 127))
	return ops.Bitcast(b, ops.ShiftLeft(b, biased, ops.ConstLike(b, biased, 23)), ir.F32)
}

// unscale divides the gradients by the scale. Whether all are finite is a minimum of truth values, not a largest
// magnitude: NaN on one of several devices would be lost in a maximum of NCCL or MPI.
func (l *scaling) unscale(b *ir.Builder, params []param) {
	reciprocal := powerOfTwo(b, ops.Sub(b, ops.ConstLike(b, l.doubled, float64(-l.initial)), l.doubled))
	finite := make([]ir.Value, len(params))
	for i := range params {
		p := &params[i]
		p.grad = ops.Mul(b, p.grad, ops.Convert(b, reciprocal, p.grad.DType()))
		finite[i] = ops.All(b, ops.IsFinite(b, p.grad))
	}
	l.finite = allOf(b, finite)
}

// allOf returns whether all of some truth values, at least one, are true.
func allOf(b *ir.Builder, x []ir.Value) ir.Value {
	if len(x) == 1 {
		return x[0]
	}
	half := len(x) / 2
	return ops.And(b, allOf(b, x[:half]), allOf(b, x[half:]))
}

// end updates the states.
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

// unlessSkipped returns the new value of a state, or the old value if the step is skipped for
// gradients that are not finite. A nil l skips no step.
func (l *scaling) unlessSkipped(b *ir.Builder, updated, old ir.Value) ir.Value {
	if l == nil || b.Err() != nil {
		return updated
	}
	return ops.Select(b, l.finite, updated, old)
}
