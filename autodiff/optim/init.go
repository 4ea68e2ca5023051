package optim

import (
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Init returns a graph that sets the optimizer states of a graph made by [Step] to their initial
// value, zeros. It does not set the parameters.
func Init(step *ir.Graph) (*ir.Graph, error) {
	if err := step.Given(); err != nil {
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
