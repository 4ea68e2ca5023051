package autodiff

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// JacobianName returns the name of the output that [JacobianForward] and
// [JacobianReverse] add: "jacobian/y/x".
func JacobianName(output, port string) string { return "jacobian/" + output + "/" + port }

// HessianName returns the name of the output that [Hessian] adds:
// "hessian/x/y".
func HessianName(row, column string) string { return "hessian/" + row + "/" + column }

// JacobianForward returns a graph that computes the outputs of g and the Jacobian of one output by
// each port named in wrt: output "jacobian/y/x" has the shape of y followed by the shape of x. It
// batches the forward derivative over the elements of the port, so use it if the port is smaller
// than the output. The Jacobian is zeros if the output does not depend on the port.
func JacobianForward(g *ir.Graph, output string, wrt ...string) (*ir.Graph, error) {
	return JacobianForwardWith(g, output, Options{Wrt: wrt, Missing: MissingIsZero})
}

// JacobianForwardWith is [JacobianForward] with options; Keep has no effect.
func JacobianForwardWith(g *ir.Graph, output string, o Options) (*ir.Graph, error) {
	return jacobian(g, output, o, jacobianColumns)
}

// JacobianReverse is like [JacobianForward] but batches the reverse derivative over the elements of
// the output: use it if the output is smaller than the ports.
func JacobianReverse(g *ir.Graph, output string, wrt ...string) (*ir.Graph, error) {
	return JacobianReverseWith(g, output, Options{Wrt: wrt, Missing: MissingIsZero})
}

// JacobianReverseWith is [JacobianReverse] with options; Keep has no effect.
func JacobianReverseWith(g *ir.Graph, output string, o Options) (*ir.Graph, error) {
	return jacobian(g, output, o, jacobianRows)
}

// Hessian returns a graph that computes the outputs of g and the second derivatives of the rank-0
// output named loss by each pair of ports named in wrt: output "hessian/x/z" has the shape of x
// followed by the shape of z. None means all parameters. It is computed forward over reverse. If
// the loss does not depend on a port, the error is a [*NoPathError].
func Hessian(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	return HessianWith(g, loss, Options{Wrt: wrt})
}

// HessianWith is [Hessian] with options.
func HessianWith(g *ir.Graph, loss string, o Options) (*ir.Graph, error) {
	const transform = "hessian"
	if err := checkGraph(transform, g); err != nil {
		return nil, err
	}
	wrt := o.Wrt
	if len(wrt) == 0 {
		wrt = differentiable(g, ir.ParamPort)
	}
	d, err := GradWith(g, GradOptions{Loss: loss, Wrt: wrt, Missing: o.Missing, Policy: o.Policy, DropOutputs: true})
	if err != nil {
		return nil, wrap(transform, err)
	}
	prefix := freePrefix(g, gradPrefix)
	h, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(g, nil)
		copyOutputs(b, g, b.Splice(g, in), nil)
		for _, row := range wrt {
			for _, column := range wrt {
				b.Output(HessianName(row, column), jacobianColumns(b, d, in, outputIndex(d, prefix+row), portIndex(g, column)))
			}
		}
	})
	return h, wrap(transform, err)
}

// dense adds the Jacobian of an output of g by a port, given the values of all ports.
type dense func(b *ir.Builder, g *ir.Graph, in []ir.Value, output, port int) ir.Value

func jacobian(g *ir.Graph, output string, o Options, matrix dense) (*ir.Graph, error) {
	const transform = "jacobian"
	if err := checkGraph(transform, g); err != nil {
		return nil, err
	}
	ports, err := portIndices(g, o.Wrt)
	if err != nil {
		return nil, wrap(transform, err)
	}
	at := outputIndex(g, output)
	if at < 0 {
		return nil, wrap(transform, g.UnknownOutput(output))
	}
	if t := g.Outputs()[at].Value.Type(); !derive.Differentiable(t.DType) {
		return nil, wrap(transform, ir.DTypef("output %q is %s; a derivative needs floats", output, t))
	}
	for _, name := range o.Wrt {
		if err := o.Missing.check(g, output, name); err != nil {
			return nil, wrap(transform, err)
		}
	}
	j, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(g, nil)
		copyOutputs(b, g, b.Splice(g, in), nil)
		for _, port := range ports {
			b.Output(JacobianName(output, g.Ports()[port].Name), matrix(b, g, in, at, port))
		}
	})
	return j, wrap(transform, err)
}

// outputIndex returns the index of a plain output, or -1.
func outputIndex(g *ir.Graph, name string) int {
	for i, o := range g.Outputs() {
		if o.Name == name && !o.State {
			return i
		}
	}
	return -1
}

// jacobianColumns computes the Jacobian by forward mode, one column for each element of the port.
func jacobianColumns(b *ir.Builder, g *ir.Graph, in []ir.Value, output, port int) ir.Value {
	x, y := g.Ports()[port].Value.Type(), g.Outputs()[output].Value.Type()
	tangent := b.Subgraph(g.Name(), func(b *ir.Builder) {
		in, t := inputs(b, g), make([]ir.Value, len(g.Ports()))
		t[port] = b.Port(ir.InputPort, freePrefix(g, tangentPrefix)+g.Ports()[port].Name, x)
		out, tout := derive.JVP(b, g, in, t)
		b.Output("tangent", orZeros(b, tout[output], out[output]))
	})
	all, axis := batchOverBasis(b, tangent, in, x)
	all = ops.BatchAt(b, all, axis, len(y.Shape), x.Shape.Size())
	return reshape(b, all, y.Shape, x.Shape)
}

// jacobianRows computes the Jacobian by reverse mode, one row for each element of the output.
func jacobianRows(b *ir.Builder, g *ir.Graph, in []ir.Value, output, port int) ir.Value {
	x, y := g.Ports()[port].Value.Type(), g.Outputs()[output].Value.Type()
	p, err := linearise(g, variables{ports: []int{port}}, nil)
	if err != nil {
		b.Fail(err)
		return ir.Value{}
	}
	gradient := b.Subgraph(g.Name(), func(b *ir.Builder) {
		in, ct := inputs(b, g), make([]ir.Value, len(g.Outputs()))
		ct[output] = b.Port(ir.InputPort, freePrefix(g, cotangentPrefix)+g.Outputs()[output].Name, y)
		_, residuals := p.forward(b, in)
		b.Output("gradient", orZeros(b, p.backward(b, residuals, ct)[0], in[port]))
	})
	all, axis := batchOverBasis(b, gradient, in, y)
	all = ops.BatchAt(b, all, axis, 0, y.Shape.Size())
	return reshape(b, all, y.Shape, x.Shape)
}

// inputs declares the ports of g as inputs.
func inputs(b *ir.Builder, g *ir.Graph) []ir.Value {
	in := make([]ir.Value, len(g.Ports()))
	for i, p := range g.Ports() {
		in[i] = b.Port(ir.InputPort, p.Name, p.Value.Type())
	}
	return in
}

// batchOverBasis adds g, a graph linear in its last port, batched over the standard basis of type t for
// that port. It returns the output and the batch axis.
func batchOverBasis(b *ir.Builder, g *ir.Graph, in []ir.Value, t ir.Type) (ir.Value, int) {
	if b.Err() != nil {
		return ir.Value{}, -1
	}
	n := t.Shape.Size()
	row, column := ops.Iota(b, ir.I32, 0, n, n), ops.Iota(b, ir.I32, 1, n, n)
	basis := reshape(b, ops.Convert(b, ops.Eq(b, row, column), t.DType), ir.Shape{n}, t.Shape)
	axes := make([]int, len(in)+1)
	for i := range in {
		axes[i] = -1
	}
	out, outAxes := derive.Batch(b, g, append(in[:len(in):len(in)], basis), axes, n)
	return out[0], outAxes[0]
}

// reshape returns v with the shape s followed by t.
func reshape(b *ir.Builder, v ir.Value, s, t ir.Shape) ir.Value {
	return ops.Reshape(b, v, append(s.Clone(), t...)...)
}
