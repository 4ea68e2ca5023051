package irtest

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	_ "github.com/rlx-go/rlx/ir/ops/samples" // of all ops, for whoever imports this package
)

// SampleGraph returns the graph of a single node of an op: a sample with
// inputs "0", "1", … for its operands and outputs for its results.
func SampleGraph(op ir.Op, s ir.Sample) (*ir.Graph, *ir.Node, error) {
	var n *ir.Node
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Port(ir.InputPort, fmt.Sprint(i), a.Type())
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output(fmt.Sprint(i), v)
			n = v.Node()
		}
	})
	return g, n, err
}

// SampleInputs returns the operands of a sample under the names of [SampleGraph].
func SampleInputs(s ir.Sample) map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for i, a := range s.In {
		in[fmt.Sprint(i)] = a
	}
	return in
}
