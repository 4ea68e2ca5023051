package optim

import (
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// HistoryCount is the state of [History] that counts the steps, a rank-0 i32.
const HistoryCount = historyPrefix + "count"

const historyPrefix = "history/"

// HistoryState returns the state that keeps the values of an output: "history/loss" for "loss".
func HistoryState(output string) string { return historyPrefix + output }

// History returns a training step that also keeps the last n values of an output, an f32 of rank 0,
// on the device, so that the host can read them in batches. The state "history/" followed by the
// output's name, f32[n], is a ring buffer: the value of step k, from 0, is at index k modulo n. The
// state "history/count" ([HistoryCount]) counts the steps. Both start as zeros. The error is of
// kind [ir.ErrName] for an unknown output, [ir.ErrShape] or [ir.ErrDType] for an output that is not
// a rank-0 f32, and [ir.ErrAttr] for n below 1.
func History(step *ir.Graph, output string, n int) (*ir.Graph, error) {
	if err := step.NotNil(); err != nil {
		return nil, err
	}
	out, ok := step.Output(output)
	if !ok || out.State {
		return nil, step.UnknownOutput(output)
	}
	switch t := out.Value.Type(); {
	case len(t.Shape) != 0:
		return nil, ir.Errorf(ir.ErrShape, "history: output %q is %s; it must be a scalar", output, t)
	case t.DType != ir.F32:
		return nil, ir.Errorf(ir.ErrDType, "history: output %q is %s; it must be f32", output, t)
	case n < 1:
		return nil, ir.Errorf(ir.ErrAttr, "history: n is %d; it must be 1 or greater", n)
	}
	return ir.Transform(step.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(step, nil)
		ring := b.State(HistoryState(output), ir.F32, ir.N(n))
		count := b.State(HistoryCount, ir.I32)
		for i, v := range b.Splice(step, in) {
			o := step.Outputs()[i]
			b.CopyOutput(o, v)
			if o.Name == output && !o.State {
				here := ops.Eq(b, ops.Iota(b, ir.I32, 0, ir.N(n)), ops.Rem(b, count, ops.Const(b, ir.I32, float64(n))))
				b.SetState(HistoryState(output), ops.Select(b, here, v, ring))
			}
		}
		b.SetState(HistoryCount, ops.Add(b, count, ops.Const(b, ir.I32, 1)))
	})
}

// Init returns a graph that sets the optimizer states of a graph made by [Step] to their initial
// value, zeros. It does not set the parameters.
func Init(step *ir.Graph) (*ir.Graph, error) {
	if err := step.NotNil(); err != nil {
		return nil, err
	}
	return ir.Build(step.Name()+"/init", func(b *ir.Builder) {
		for _, p := range step.Ports() {
			if !IsState(p) {
				continue
			}
			t := p.Value.Type()
			b.Port(p.Kind, p.Name, t)
			b.SetState(p.Name, ops.Zeros(b, t.DType, t.Shape...))
		}
	})
}

// IsState reports whether a port is a state of an optimizer; such states start as zeros.
func IsState(p ir.Port) bool {
	return p.Kind == ir.StatePort && strings.HasPrefix(p.Name, StatePrefix)
}
