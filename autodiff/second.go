package autodiff

import (
	"strings"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// HVP returns a graph that computes the outputs of [ValueAndGrad] and the product of a vector and
// the Hessian of the rank-0 output named loss, forward over reverse. It adds an input "tangent/x"
// and an output "hvp/x", both of the type of x, for each port x named in wrt; none means all
// parameters. If the loss does not depend on a port, the error is a [*NoPathError].
func HVP(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	return HVPWith(g, loss, Options{Wrt: wrt})
}

// HVPWith is [HVP] with options.
func HVPWith(g *ir.Graph, loss string, o Options) (*ir.Graph, error) {
	if err := checkGraph("hvp", g); err != nil {
		return nil, err
	}
	wrt := o.Wrt
	if len(wrt) == 0 {
		wrt = differentiable(g, ir.ParamPort)
	}
	gradient := freePrefix(g, gradPrefix)
	first, err := GradWith(g, GradOptions{Loss: loss, Wrt: wrt, Missing: o.Missing, Policy: o.Policy})
	if err != nil {
		return nil, err
	}
	tangent := freePrefix(first, tangentPrefix)
	second, err := JVP(first, wrt...)
	if err != nil {
		return nil, err
	}
	products := freePrefix(second, hvpPrefix)
	// Keep only the tangents of the gradients.
	h, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		out := b.Splice(second, b.CopyPorts(second, nil))
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

// NthOrder returns a graph that computes the outputs of g and the first n derivatives of one output
// y by a port of rank 0: outputs "d1/y" to "dn/y", all of the shape of y. They come from one Taylor
// series, as those of [Jet]; in a WebAssembly build from repeated JVPs. The derivatives are zeros
// if the output does not depend on the port.
func NthOrder(g *ir.Graph, output, wrt string, n int) (*ir.Graph, error) {
	return NthOrderWith(g, output, wrt, n, MissingIsZero)
}

// NthOrderWith is [NthOrder] with a choice for an output that does not depend on the port.
func NthOrderWith(g *ir.Graph, output, wrt string, n int, missing Missing) (*ir.Graph, error) {
	const transform = "nth order"
	if err := checkGraph(transform, g); err != nil {
		return nil, err
	}
	port, ok := g.Port(wrt)
	if ok && port.Value.Rank() != 0 {
		return nil, wrap(transform, ir.Shapef("port %q is %s; a derivative of higher order needs a scalar", wrt, port.Value.Type()))
	}
	d, err := nthOrder(g, output, wrt, n)
	if err == nil {
		err = missing.check(g, output, wrt)
	}
	return d, wrap(transform, err)
}

// check returns a [*NoPathError] if m requires one and the output does not depend on the port.
// Both must exist.
func (m Missing) check(g *ir.Graph, output, wrt string) error {
	if m != MissingIsError {
		return nil
	}
	return checkPaths(g, []int{portIndex(g, wrt)}, []int{outputIndex(g, output)})
}

// MaxOrder is the highest order of a derivative. The coefficients of a series are scaled by
// factorials, and 170! is the largest that an f64 holds.
const MaxOrder = 170

// differentiableOutput returns the index of an output and checks the order n.
func differentiableOutput(g *ir.Graph, name string, n int) (int, error) {
	at := outputIndex(g, name)
	if at < 0 {
		return 0, g.UnknownOutput(name)
	}
	if t := g.Outputs()[at].Value.Type(); n < 1 || n > MaxOrder || !derive.Differentiable(t.DType) {
		return 0, ir.Attrf("derivative of order %d of output %q, %s", n, name, t)
	}
	return at, nil
}

// Directional returns a graph that computes the outputs of g and the derivatives of one output y up
// to order n, each along its own direction. The inputs "direction1/x" to "directionn/x"
// ([DirectionName]) have the type of port x, which wrt names; the numbers continue after existing
// directions of x. Output "dk/y" ([OrderName]) is the k-th derivative contracted with the first k
// directions; for n = 2 and a rank-0 y it is ⟨u, H·v⟩. The derivatives are zeros if the output does
// not depend on the port.
func Directional(g *ir.Graph, output, wrt string, n int) (*ir.Graph, error) {
	return DirectionalWith(g, output, wrt, n, MissingIsZero)
}

// DirectionalWith is [Directional] with a choice for an output that does not depend on the port.
func DirectionalWith(g *ir.Graph, output, wrt string, n int, missing Missing) (*ir.Graph, error) {
	if err := checkGraph("directional", g); err != nil {
		return nil, err
	}
	taken := 0
	for portIndex(g, DirectionName(taken+1, wrt)) >= 0 {
		taken++
	}
	d, err := repeatedJVP(g, output, wrt, n, func(b *ir.Builder, k int, x ir.Value) ir.Value {
		return b.Port(ir.InputPort, DirectionName(taken+k, wrt), x.Type())
	})
	if err == nil {
		err = missing.check(g, output, wrt)
	}
	return d, wrap("directional", err)
}

// direction returns the tangent of port x for the k-th differentiation.
type direction func(b *ir.Builder, k int, x ir.Value) ir.Value

// repeatedJVP differentiates an output n times by one port, in forward mode.
func repeatedJVP(g *ir.Graph, output, wrt string, n int, v direction) (*ir.Graph, error) {
	ports, err := portIndices(g, []string{wrt})
	if err != nil {
		return nil, err
	}
	if _, err := differentiableOutput(g, output, n); err != nil {
		return nil, err
	}
	name := output
	for k := 1; k <= n && err == nil; k++ {
		d := OrderName(k, name)
		g, err = along(g, ports[0], output, d, func(b *ir.Builder, x ir.Value) ir.Value { return v(b, k, x) })
		output = d
	}
	return g, err
}

// along adds the derivative of an output by a port in a direction to the outputs of g.
func along(g *ir.Graph, port int, output, name string, v func(b *ir.Builder, x ir.Value) ir.Value) (*ir.Graph, error) {
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		in, t := b.CopyPorts(g, nil), make([]ir.Value, len(g.Ports()))
		t[port] = v(b, in[port])
		out, tout := derive.JVP(b, g, in, t)
		copyOutputs(b, g, out, nil)
		at := outputIndex(g, output)
		b.Output(name, orZeros(b, tout[at], out[at]))
	})
}
