package rlx

import (
	"context"
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// watchState is the state of [Training.Watch], an i32 of rank 0: 1 + the index of the first watched
// value that was not finite, in the first step in which one was not; 0 until then.
const watchState = "watch/first"

// watch returns the graph of a loss with one more output, of the name and type of [watchState], for this step alone;
// and the names of the watched values, in order: the parameters and float inputs, then for each label the last
// node that has it, and each node without a label. Values in subgraphs are not watched.
func watch(loss *ir.Graph) (*ir.Graph, []string, error) {
	if err := loss.NotNil(); err != nil {
		return nil, nil, err
	}
	last := map[string]*ir.Node{}
	for _, n := range loss.Nodes() {
		last[n.Label()] = n
	}
	var names []string
	g, err := ir.Transform(loss.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(loss)
		b.CopyPorts(loss, m)
		var wrong []ir.Value // for each name, whether it is not finite
		for _, n := range loss.Nodes() {
			if n.Op() != ir.OpPort {
				b.CopyNode(n, m)
			}
			if n.Op() == ir.OpConstant || n.Label() != "" && last[n.Label()] != n {
				continue
			}
			for _, v := range n.Results() {
				if v.DType().IsFloat() {
					names, wrong = append(names, watchName(n)), append(wrong, ops.Not(b, ops.All(b, ops.IsFinite(b, ops.StopGradient(b, m.Get(v))))))
				}
			}
		}
		b.CopyOutputs(loss, m)
		first := ops.Const(b, ir.I32, 0)
		for i := len(wrong) - 1; i >= 0; i-- {
			first = ops.Select(b, wrong[i], ops.Const(b, ir.I32, float64(i+1)), first)
		}
		b.Output(watchState, first)
	})
	return g, names, err
}

// keepFirst returns a training step whose output of [watch] is the state: a step that a loss scale skips, which
// changes no state of the loss, is the very one to look for.
func keepFirst(step *ir.Graph) (*ir.Graph, error) {
	return ir.Transform(step.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(step, nil)
		old := b.State(watchState, ir.I32)
		for i, v := range b.Splice(step, in) {
			if o := step.Outputs()[i]; o.Name != watchState {
				b.CopyOutput(o, v)
				continue
			}
			b.SetState(watchState, ops.Select(b, ops.Eq(b, old, ops.ZerosLike(b, old)), v, old))
		}
	})
}

// watchName returns `param "w"`, `layer "h/0/attn"` for a node with a label, or `exp f32[4]`.
func watchName(n *ir.Node) string {
	switch {
	case n.Op() != ir.OpPort && n.Label() != "":
		return fmt.Sprintf("layer %q (%s)", n.Label(), n.Op())
	case n.Op() != ir.OpPort && n.Pos() != ir.Pos{}:
		return fmt.Sprintf("%s at %s", n, n.Pos())
	}
	return n.String()
}

// watchedValues are the names of the values of [Training.Watch], in order; nil without it.
type watchedValues []string

// diverged returns the error of a loss that is not finite.
func (w watchedValues) diverged(ctx context.Context, p *Program, step int, loss float32) error {
	first := ""
	if w != nil {
		if x, err := p.Get(ctx, watchState); err == nil {
			if i, err := x.Int32s(); err == nil && len(i) == 1 && i[0] > 0 && int(i[0]) <= len(w) {
				first = "; the first value that is not finite is that of " + w[i[0]-1]
			}
		}
	}
	return fmt.Errorf("step %d: %w: the loss is %v%s", step, ErrDiverged, loss, first)
}
