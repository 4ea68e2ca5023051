//go:build !js

package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// nthOrder is [NthOrder] without the check of the port's rank.
func nthOrder(g *ir.Graph, output, wrt string, n int) (*ir.Graph, error) {
	at, err := differentiableOutput(g, output, n)
	if err != nil {
		return nil, err
	}
	ports, err := portIndices(g, []string{wrt})
	if err != nil {
		return nil, err
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		in, curve := b.CopyPorts(g, nil), make([][]ir.Value, len(g.Ports()))
		curve[ports[0]] = []ir.Value{ops.OnesLike(b, in[ports[0]])}
		out := alongCurve(b, g, in, curve, n)
		copyOutputs(b, g, column(out, 0), nil)
		for k := 1; k <= n; k++ {
			b.Output(OrderName(k, output), orZeros(b, out[at][k], out[at][0]))
		}
	})
}
