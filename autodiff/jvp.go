package autodiff

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// JVP returns a graph that computes the outputs of g and a Jacobian-vector product: the derivative
// in a direction. It adds an input "tangent/x" for each port x named in wrt, of the type of x; none
// means all ports of a floating or complex element type. It adds an output "tangent/y" for each
// plain output y of such a type, of the type of y; zeros if the output does not depend on the
// ports.
func JVP(g *ir.Graph, wrt ...string) (*ir.Graph, error) {
	return JVPWith(g, Options{Wrt: wrt, Missing: MissingIsZero})
}

// JVPWith is [JVP] with options.
func JVPWith(g *ir.Graph, o Options) (*ir.Graph, error) {
	if err := checkGraph("jvp", g); err != nil {
		return nil, err
	}
	if len(o.Wrt) == 0 {
		o.Wrt = differentiable(g)
	}
	prefix := freePrefix(g, tangentPrefix)
	ports, err := portIndices(g, o.Wrt)
	if err != nil {
		return nil, wrap("jvp", err)
	}
	if o.Missing == MissingIsError {
		if err := checkPaths(g, ports, plainOutputs(g)); err != nil {
			return nil, wrap("jvp", err)
		}
	}
	j, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		in, t := b.CopyPorts(g, nil), make([]ir.Value, len(g.Ports()))
		for _, i := range ports {
			p := g.Ports()[i]
			t[i] = b.Port(ir.InputPort, prefix+p.Name, p.Value.Type())
		}
		out, tout := derive.JVP(b, g, in, t)
		copyOutputs(b, g, out, nil)
		for _, i := range plainOutputs(g) {
			b.Output(prefix+g.Outputs()[i].Name, orZeros(b, tout[i], out[i]))
		}
	})
	return j, wrap("jvp", err)
}

// checkPaths returns a [*NoPathError] for the first port that none of the outputs depends on, or
// an error of a rule.
func checkPaths(g *ir.Graph, ports, outputs []int) error {
	for _, port := range ports {
		reaches := false
		_, err := ir.Transform(g.Name(), func(b *ir.Builder) {
			in, t := inputs(b, g), make([]ir.Value, len(g.Ports()))
			p := g.Ports()[port]
			t[port] = b.Port(ir.InputPort, freePrefix(g, tangentPrefix)+p.Name, p.Value.Type())
			_, tout := derive.JVP(b, g, in, t)
			for _, i := range outputs {
				reaches = reaches || tout[i].Valid()
			}
		})
		if err != nil {
			return err
		}
		if !reaches {
			return noPath(g, port, outputs)
		}
	}
	return nil
}

// copyOutputs declares the outputs of g with the given values, and drops the plain outputs that
// keep does not accept; nil keeps all.
func copyOutputs(b *ir.Builder, g *ir.Graph, out []ir.Value, keep func(name string) bool) {
	for i, o := range g.Outputs() {
		if o.State || keep == nil || keep(o.Name) {
			b.CopyOutput(o, out[i])
		}
	}
}

// orZeros returns t, or zeros like x if t is invalid, known to be zero.
func orZeros(b *ir.Builder, t, x ir.Value) ir.Value {
	if t.Valid() {
		return t
	}
	return ops.ZerosLike(b, x)
}
