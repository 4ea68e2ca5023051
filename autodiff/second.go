package autodiff

import (
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/derive"
	"github.com/rlx-go/rlx/ir/ops"
)

// HVP returns a graph that computes, beside the outputs of [ValueAndGrad], the
// product of the Hessian of the output named loss and a vector, forward over
// reverse: it adds an input "tangent/x" and an output "hvp/x" for each port
// named in wrt; none stands for all parameters. A port that the loss does not
// depend on is an error.
func HVP(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	if len(wrt) == 0 {
		wrt = differentiable(g, ir.ParamPort)
	}
	gradient := freePrefix(g, gradPrefix)
	first, err := ValueAndGrad(g, loss, wrt...)
	if err != nil {
		return nil, err
	}
	tangent := freePrefix(first, tangentPrefix)
	second, err := JVP(first, wrt...)
	if err != nil {
		return nil, err
	}
	products := freePrefix(second, hvpPrefix)
	// Of the tangents only those of the gradients are wanted.
	h, err := ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(second)
		b.CopyPorts(second, m)
		out := b.Splice(second, portValues(second, m))
		for i, o := range second.Outputs() {
			switch rest, isTangent := strings.CutPrefix(o.Name, tangent); {
			case o.State || !isTangent:
				b.CopyOutput(o, out[i])
			case strings.HasPrefix(rest, gradient):
				b.Output(products+strings.TrimPrefix(rest, gradient), out[i])
			}
		}
	})
	return h, wrap("hvp", err)
}

// NthOrder returns a graph that computes, beside the outputs of g, the first n
// derivatives of one of them by a port of rank 0: output "d1/y", its first
// derivative, to "dn/y". The output may have any shape; all derivatives have
// the same.
func NthOrder(g *ir.Graph, output, wrt string, n int) (*ir.Graph, error) {
	const transform = "nth order"
	ports, err := portIndices(g, []string{wrt})
	if err != nil {
		return nil, wrap(transform, err)
	}
	if p := g.Ports()[ports[0]]; p.Value.Rank() != 0 {
		return nil, wrap(transform, ir.Shapef("port %q is %s; derivatives of higher order are by a scalar", wrt, p.Value.Type()))
	}
	o, ok := g.Output(output)
	if !ok {
		return nil, wrap(transform, ir.Errorf(ir.ErrName, "graph %q has no output %q", g.Name(), output))
	}
	if n < 1 || !o.Value.DType().IsFloat() {
		return nil, wrap(transform, ir.Attrf("order %d of output %q, %s", n, output, o.Value.Type()))
	}
	for k := 1; k <= n; k++ {
		if g, err = along(g, ports[0], output, orderName(k, o.Name)); err != nil {
			return nil, wrap(transform, err)
		}
		output = orderName(k, o.Name)
	}
	return g, nil
}

// orderName names the k-th derivative of an output.
func orderName(k int, output string) string { return position("d", k) + "/" + output }

// along adds to the outputs of g the derivative of one of them by a port of
// rank 0.
func along(g *ir.Graph, port int, output, name string) (*ir.Graph, error) {
	return ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		in, t := portValues(g, m), make([]ir.Value, len(g.Ports()))
		t[port] = ops.OnesLike(b, in[port])
		out, tout := derive.JVP(b, g, in, t)
		copyOutputs(b, g, out, nil)
		for i, o := range g.Outputs() {
			if o.Name == output && !o.State {
				b.Output(name, orZeros(b, tout[i], out[i]))
			}
		}
	})
}
