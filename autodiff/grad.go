package autodiff

import "github.com/rlx-go/rlx/ir"

// Missing says what a transform makes of a port that no output it looks at
// depends on in a differentiable way. Those that take options ([GradWith],
// [VJPWith], [JVPWith], [HVPWith], [HessianWith], [JetWith], [SplitVJP]) all do as
// it says. Of those without, [VJP], [JVP], [Jet] and Jacobians give zeros, and
// [Grad], [ValueAndGrad], [HVP], [Hessian] and [GradOf] an error.
type Missing uint8

const (
	// MissingIsError makes it an error, a [*NoPathError]: as a rule the graph
	// is wrong.
	MissingIsError Missing = iota
	// MissingIsZero makes it zeros.
	MissingIsZero
)

// Options say what the transforms of a whole graph compute, and those of the
// second derivatives of a loss.
type Options struct {
	// Wrt names the ports that the derivative is by; none stands for what the
	// transform without options takes.
	Wrt []string
	// Missing says what to do about a port without a derivative.
	Missing Missing
	// Keep says what reverse mode keeps of the way forward; nil keeps all that
	// it needs. Forward mode keeps nothing in any case.
	Keep Policy
}

// GradOptions say what [GradWith] computes.
type GradOptions struct {
	// Loss names a plain output of rank 0 and of a floating element type.
	Loss string
	// Wrt names the ports that the derivative is by, and plain outputs, which
	// stand for the values on the way to the loss that they give out; none stands
	// for all parameters of a floating or complex element type.
	Wrt []string
	// Missing says what to do about a port that the loss does not depend on.
	Missing Missing
	// Keep says what is kept of the way forward for the way back; nil keeps all
	// that is needed there.
	Keep Policy
	// DropOutputs leaves the plain outputs of the graph away. The updates of
	// states always stay.
	DropOutputs bool
}

// Grad returns a graph of the gradients "grad/x" of the output named loss, a
// scalar, by the ports named in wrt; none stands for all parameters. A plain output
// may be named too: it stands for the value on the way that it gives out. The plain
// outputs of g are dropped, the updates of states kept. A port that the loss
// does not depend on is an error, see [GradWith].
func Grad(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	return GradWith(g, GradOptions{Loss: loss, Wrt: wrt, DropOutputs: true})
}

// ValueAndGrad is like [Grad] and keeps all outputs of g under their names.
func ValueAndGrad(g *ir.Graph, loss string, wrt ...string) (*ir.Graph, error) {
	return GradWith(g, GradOptions{Loss: loss, Wrt: wrt})
}

// GradWith is [Grad] and [ValueAndGrad] with options.
func GradWith(g *ir.Graph, o GradOptions) (*ir.Graph, error) {
	if err := given("grad", g); err != nil {
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
	r := reverse{name: "grad", wrt: o.Wrt, inner: true, missing: o.Missing, keep: o.Keep, outputs: []int{output}, cotangents: oneAt(g, output)}
	if o.DropOutputs {
		r.give = func(string) bool { return false }
	}
	return r.apply(g)
}

// VJP returns a graph that computes, beside the outputs of g, the product of a
// vector and the Jacobian. It adds an input "cotangent/y" for each plain output
// of a floating or complex element type, and an output "grad/x" for each port
// named in wrt (none: for every port of such a type), zeros where no output
// depends on it.
func VJP(g *ir.Graph, wrt ...string) (*ir.Graph, error) {
	return VJPWith(g, Options{Wrt: wrt, Missing: MissingIsZero})
}

// VJPWith is [VJP] with options.
func VJPWith(g *ir.Graph, o Options) (*ir.Graph, error) {
	if err := given("vjp", g); err != nil {
		return nil, err
	}
	if len(o.Wrt) == 0 {
		o.Wrt = differentiable(g)
	}
	prefix := freePrefix(g, cotangentPrefix)
	outputs := plainOutputs(g)
	r := reverse{name: "vjp", wrt: o.Wrt, missing: o.Missing, keep: o.Keep, outputs: outputs}
	r.cotangents = func(b *ir.Builder, out []ir.Value) []ir.Value {
		ct := make([]ir.Value, len(out))
		for _, i := range outputs {
			ct[i] = b.Port(ir.InputPort, prefix+g.Outputs()[i].Name, out[i].Type())
		}
		return ct
	}
	return r.apply(g)
}
