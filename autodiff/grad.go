package autodiff

import "github.com/rlx-go/rlx/ir"

// Missing selects what a transform does with a port that none of the differentiated outputs depends
// on differentiably. The transforms with options ([GradWith], [VJPWith], [JVPWith], [HVPWith],
// [HessianWith], [JetWith], [SplitVJP]) follow it. Without options, [VJP], [JVP], [Jet] and the
// Jacobians return zeros; [Grad], [ValueAndGrad], [HVP], [Hessian] and [GradOf] return an error.
type Missing uint8

const (
	// MissingIsError returns a [*NoPathError], since a missing path usually means a mistake in the
	// graph. It is the default.
	MissingIsError Missing = iota
	// MissingIsZero returns zeros.
	MissingIsZero
)

// Options are the options of the transforms of whole graphs and of the second derivatives of a
// loss.
type Options struct {
	// Wrt names the ports to differentiate by; none means those of the transform without options.
	Wrt []string
	// Missing selects what to do with a port without a derivative.
	Missing Missing
	// Policy chooses the residuals that reverse mode stores; nil stores all that it needs. Forward
	// mode ignores it.
	Policy Policy
}

// GradOptions are the options of [GradWith].
type GradOptions struct {
	// Loss names the loss: a plain output of rank 0 and of a floating element type.
	Loss string
	// Wrt names the ports to differentiate by. It may also name plain outputs, which stand for
	// intermediate values of the graph. None means all parameters of a floating or complex element
	// type.
	Wrt []string
	// Missing selects what to do with a port that the loss does not depend on.
	Missing Missing
	// Policy chooses the residuals that reverse mode stores; nil stores all that it needs.
	Policy Policy
	// DropOutputs drops the plain outputs of the graph. State updates are always kept.
	DropOutputs bool
}

// Grad returns a graph that computes the gradients of the rank-0 output named loss, as outputs
// "grad/x" of the type of x, by the ports named in wrt; none means all parameters. wrt may also
// name plain outputs, which stand for intermediate values. The plain outputs of g are dropped, its
// state updates kept. If the loss does not depend on a port, the error is a [*NoPathError]; see
// [GradWith].
func Grad(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	return GradWith(g, GradOptions{Loss: loss, Wrt: wrt, DropOutputs: true})
}

// ValueAndGrad is [Grad] that keeps the outputs of g under their names.
func ValueAndGrad(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	return GradWith(g, GradOptions{Loss: loss, Wrt: wrt})
}

// GradWith is [Grad] and [ValueAndGrad] with options.
func GradWith(g *ir.Graph, o GradOptions) (*ir.Graph, error) {
	if err := checkGraph("grad", g); err != nil {
		return nil, err
	}
	output, err := scalarOutput(g, o.Loss)
	if err != nil {
		return nil, wrap("grad", err)
	}
	if len(o.Wrt) == 0 {
		o.Wrt = differentiable(g, ir.ParamPort)
	}
	if len(o.Wrt) == 0 {
		return nil, wrap("grad", ir.Errorf(ir.ErrName, "graph %q has no parameters: name the ports to differentiate by", g.Name()))
	}
	r := reverse{name: "grad", wrt: o.Wrt, inner: true, missing: o.Missing, keep: o.Policy, outputs: []int{output}, cotangents: oneAt(g, output)}
	if o.DropOutputs {
		r.give = func(string) bool { return false }
	}
	return r.apply(g)
}

// VJP returns a graph that computes the outputs of g and a vector-Jacobian product. It adds an
// input "cotangent/y" for each plain output y of a floating or complex element type, of the type of
// y. It adds an output "grad/x" for each port x named in wrt, of the type of x; none means all
// ports of such types. The gradient is zeros if no output depends on the port.
func VJP(g *ir.Graph, wrt ...string) (*ir.Graph, error) {
	return VJPWith(g, Options{Wrt: wrt, Missing: MissingIsZero})
}

// VJPWith is [VJP] with options.
func VJPWith(g *ir.Graph, o Options) (*ir.Graph, error) {
	if err := checkGraph("vjp", g); err != nil {
		return nil, err
	}
	if len(o.Wrt) == 0 {
		o.Wrt = differentiable(g)
	}
	prefix := freePrefix(g, cotangentPrefix)
	outputs := plainOutputs(g)
	r := reverse{name: "vjp", wrt: o.Wrt, missing: o.Missing, keep: o.Policy, outputs: outputs}
	r.cotangents = func(b *ir.Builder, out []ir.Value) []ir.Value {
		ct := make([]ir.Value, len(out))
		for _, i := range outputs {
			ct[i] = b.Port(ir.InputPort, prefix+g.Outputs()[i].Name, out[i].Type())
		}
		return ct
	}
	return r.apply(g)
}
