package nn

import (
	"hash/fnv"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// mode selects between training and inference.
type mode uint8

const (
	unset mode = iota
	training
	inference
)

// context is the state that the layers of one graph share during its construction. Functions such
// as [Frozen] change it during a call.
type context struct {
	mode   mode
	frozen bool                      // declared parameters are frozen
	shared bool                      // parameters may be declared before
	counts map[string]int            // layers without a name, by scope and kind
	lora   *adapter                  // the adapter of Linear; nil for none
	cache  *cache                    // keys and values of earlier positions; nil without a cache
	stored func(name string) Storage // storage of weights; nil for the default
	random *stream
	around *ir.Builder // that of the graph around a block; nil outside of blocks
}

// stream is the random stream of a graph.
type stream struct {
	key   ir.Value        // key of this step; the zero Value before the first draw
	drawn map[uint32]bool // numbers folded into the key so far
}

type contextKey struct{}

func contextOf(b *ir.Builder) *context {
	c, ok := b.Context(contextKey{}).(*context)
	if !ok {
		c = &context{counts: map[string]int{}, random: newStream()}
		b.SetContext(contextKey{}, c)
	}
	return c
}

// newStream returns a stream with number 0 in use: it derives the key of the next step.
func newStream() *stream { return &stream{drawn: map[uint32]bool{0: true}} }

// during calls f with a changed context and restores the context.
func during(b *ir.Builder, change func(c *context), f func()) {
	c := contextOf(b)
	before := *c
	change(c)
	f()
	*c = before
}

// Train makes the layers added after it compute as in training: [Dropout] drops, [BatchNorm] uses
// the statistics of the batch and updates the running ones.
func Train(b *ir.Builder) { contextOf(b).mode = training }

// Infer makes the layers added after it compute as in inference: nothing is dropped, and batch
// norms use the running statistics, which are then parameters.
func Infer(b *ir.Builder) { contextOf(b).mode = inference }

// IsTraining reports whether [Train] is in effect.
func IsTraining(b *ir.Builder) bool { return contextOf(b).mode == training }

// Frozen calls f for a part of a model that is not trained: its layers compute as in inference, and
// its parameters are frozen ([ir.PortOptions]). The error is of kind [ir.ErrGraph] if f is nil.
func Frozen(b *ir.Builder, f func()) {
	if b.Require("nn.frozen", "function", f != nil) {
		during(b, func(c *context) { c.mode, c.frozen = inference, true }, f)
	}
}

// Shared calls f and lets it declare parameters again that it declared in an earlier call without
// Shared: they are the same parameters, and their gradients add up. Names of layers count from 1 in
// it. Each call of a [BatchNorm] moves its running statistics, one after the other; other states, those of a [Cache] and
// of metrics, cannot be shared. The error is of kind [ir.ErrGraph] if f is nil.
func Shared(b *ir.Builder, f func()) {
	if b.Require("nn.shared", "function", f != nil) {
		during(b, func(c *context) { c.shared, c.counts = true, map[string]int{} }, f)
	}
}

// In returns f's value; parameters and states that f declares are in the scope name, as with
// [ir.Builder.Scope].
func In(b *ir.Builder, name string, f func() ir.Value) (y ir.Value) {
	if b.Require("nn.in", "function", f != nil) {
		b.Scope(name, func() { y = f() })
	}
	return y
}

// Residual returns x + f(x). The error is of kind [ir.ErrShape] or [ir.ErrDType] if f(x) does not
// have the type of x, and [ir.ErrGraph] if f is nil.
func Residual(b *ir.Builder, x ir.Value, f func(x ir.Value) ir.Value) ir.Value {
	const op ir.Op = "nn.residual"
	if !b.Require(op, "function", f != nil) {
		return ir.Value{}
	}
	y := f(x)
	switch {
	case b.Err() != nil:
		return ir.Value{}
	case !y.Type().Shape.Equal(x.Shape()):
		b.Failf(op, []ir.Value{x}, ir.Shapef("f(x) is %s: it must have the type of x", y.Type()))
	case y.DType() != x.DType():
		b.Failf(op, []ir.Value{x}, ir.DTypef("f(x) is %s: it must have the type of x", y.Type()))
	}
	return ops.Add(b, x, y)
}

// Tie returns a parameter that was declared before, by its full name: "embedding0/weight". In a block of
// [Stack] that may be a parameter around it. The gradients of all its uses add up. The error is of kind [ir.ErrName] if there is none.
func Tie(b *ir.Builder, name string) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	var names []string
	for at := b; at != nil; at = contextOf(at).around {
		if p, ok := at.Declared(name); ok && p.Kind == ir.ParamPort {
			return p.Value
		}
		for _, p := range at.Ports() {
			if p.Kind == ir.ParamPort {
				names = append(names, p.Name)
			}
		}
	}
	b.Failf("nn.tie", nil, ir.Errorf(ir.ErrName, "%q is no parameter declared so far: it must be one of %q", name, names))
	return ir.Value{}
}

// Key returns a random key, u32[2], that differs from all others of this graph and changes with
// every step. It depends on the state "rng", u32[2], the open scope, the name of the stream
// ("dropout", "sample") and the number of earlier calls with both. The state starts from the seed
// of the training and is saved with checkpoints, so that a resumed training draws the same numbers.
// A graph that draws nothing has no such state.
func Key(b *ir.Builder, name string) ir.Value {
	s := contextOf(b).random
	if b.Err() == nil && !s.key.Valid() {
		b.Unscoped(func() {
			s.key = b.StateWith(RandomState, ir.PortOptions{Initial: rule("key")}, ir.U32, ir.N(2))
			b.SetState(RandomState, ops.FoldIn(b, s.key, ops.Const(b, ir.U32, 0)))
		})
	}
	path := b.ScopeName() + ":" + name
	h := fnv.New32a()
	_, _ = h.Write([]byte(path + "#" + strconv.Itoa(contextOf(b).count(path))))
	number := h.Sum32()
	for s.drawn[number] {
		number++
	}
	s.drawn[number] = true
	return ops.FoldIn(b, s.key, ops.Const(b, ir.U32, float64(number)))
}

// RandomState is the state of the random stream: see [Key].
const RandomState = "rng"

// count returns the number of earlier calls with the same text.
func (c *context) count(text string) int {
	c.counts[text]++
	return c.counts[text] - 1
}
