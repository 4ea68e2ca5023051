package autodiff

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// variables are what a reverse derivative is by: indices of ports, and of plain outputs that stand
// for intermediate values. Ports come first; otherwise the order is that of the request.
type variables struct{ ports, outputs []int }

// variablesOf looks up names among the ports of g, then among its plain outputs. The errors are
// those of portIndices.
func variablesOf(g *ir.Graph, names []string) (variables, error) {
	var by variables
	var ports []string
	for _, name := range names {
		at := outputIndex(g, name)
		if portIndex(g, name) >= 0 || at < 0 {
			ports = append(ports, name)
			continue
		}
		if t := g.Outputs()[at].Value.Type(); !derive.Differentiable(t.DType) {
			return by, ir.DTypef("output %q is %s, which has no derivatives", name, t)
		}
		for _, other := range by.outputs {
			if g.Outputs()[other].Value == g.Outputs()[at].Value {
				return by, ir.Errorf(ir.ErrName, "output %q of graph %q is asked for twice, also as %q", name, g.Name(), g.Outputs()[other].Name)
			}
		}
		by.outputs = append(by.outputs, at)
	}
	var err error
	by.ports, err = portIndices(g, ports)
	return by, err
}

// name returns the name of variable i.
func (v variables) name(g *ir.Graph, i int) string {
	if i < len(v.ports) {
		return g.Ports()[v.ports[i]].Name
	}
	return g.Outputs()[v.outputs[i-len(v.ports)]].Name
}

// values selects the values of the variables from those of all ports and outputs.
func (v variables) values(in, out []ir.Value) []ir.Value {
	return append(pick(in, v.ports), pick(out, v.outputs)...)
}

// types returns the types of the variables.
func (v variables) types(g *ir.Graph) []ir.Type {
	var in, out []ir.Value
	for _, p := range g.Ports() {
		in = append(in, p.Value)
	}
	for _, o := range g.Outputs() {
		out = append(out, o.Value)
	}
	return typesOf(v.values(in, out))
}

func pick(list []ir.Value, at []int) []ir.Value {
	out := make([]ir.Value, len(at))
	for i, k := range at {
		out[i] = list[k]
	}
	return out
}
