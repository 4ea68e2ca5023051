package ops

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// closed builds a graph for a node to own, with operands of the given types and f's values
// as results. It returns nil after an error, which is recorded in b.
func closed(b *ir.Builder, name string, types []ir.Type, f func(b *ir.Builder, in []ir.Value) []ir.Value) *ir.Graph {
	return b.Subgraph(name, func(s *ir.Builder) {
		for i, v := range f(s, declare(s, "in", types)) {
			s.Output("out"+strconv.Itoa(i), v)
		}
	})
}

// declare declares inputs of the given types; an invalid type gives the zero Value.
func declare(b *ir.Builder, prefix string, types []ir.Type) []ir.Value {
	in := make([]ir.Value, len(types))
	for i, t := range types {
		if t.DType.Valid() {
			in[i] = b.Port(ir.InputPort, prefix+strconv.Itoa(i), t)
		}
	}
	return in
}

// checkClosed returns an error of kind [ir.ErrGraph] unless g takes operands of the given
// types and has neither parameters nor states, as a graph that a node owns must.
func checkClosed(g *ir.Graph, operands []ir.Type) error {
	ports := g.Ports()
	if len(ports) != len(operands) {
		return ir.Errorf(ir.ErrGraph, "graph %q takes %d operands, %d are given", g.Name(), len(ports), len(operands))
	}
	for i, p := range ports {
		if p.Kind != ir.InputPort {
			return ir.Errorf(ir.ErrGraph, "%q of graph %q is a %s", p.Name, g.Name(), p.Kind)
		}
		if !p.Value.Type().Equal(operands[i]) {
			return ir.Shapef("operand %d of graph %q is %s, %s is given", i, g.Name(), p.Value.Type(), operands[i])
		}
	}
	for _, o := range g.Outputs() {
		if o.State {
			return ir.Errorf(ir.ErrGraph, "output %q of graph %q is a state", o.Name, g.Name())
		}
	}
	return nil
}

func portTypes(g *ir.Graph) []ir.Type {
	out := make([]ir.Type, len(g.Ports()))
	for i, p := range g.Ports() {
		out[i] = p.Value.Type()
	}
	return out
}

func outputTypes(g *ir.Graph) []ir.Type {
	out := make([]ir.Type, len(g.Outputs()))
	for i, o := range g.Outputs() {
		out[i] = o.Value.Type()
	}
	return out
}

func outputValues(g *ir.Graph) []ir.Value {
	out := make([]ir.Value, len(g.Outputs()))
	for i, o := range g.Outputs() {
		out[i] = o.Value
	}
	return out
}

// spliceValues splices the part of g that values depend on, and returns them. Unused ports
// may be the zero Value in in.
func spliceValues(b *ir.Builder, g *ir.Graph, in, values []ir.Value) []ir.Value {
	live := needed(g, values)
	m := ir.NewMapping(g)
	for i, p := range g.Ports() {
		m.Set(p.Value, in[i])
	}
	for _, n := range g.Nodes() {
		if live[n.ID()] && n.Op() != ir.OpPort {
			m.SetAll(n, b.Copy(n, m.Inputs(n)))
		}
	}
	out := make([]ir.Value, len(values))
	for i, v := range values {
		out[i] = m.Get(v)
	}
	return out
}

// splicePart is [spliceValues] for the outputs of g at indices at.
func splicePart(b *ir.Builder, g *ir.Graph, in []ir.Value, at []int) []ir.Value {
	return spliceValues(b, g, in, pick(outputValues(g), at))
}

func typesOf(in []ir.Value) []ir.Type {
	out := make([]ir.Type, len(in))
	for i, v := range in {
		out[i] = v.Type()
	}
	return out
}

// where returns the indices of the true entries.
func where(list []bool) []int {
	var out []int
	for i, x := range list {
		if x {
			out = append(out, i)
		}
	}
	return out
}

// not negates every entry.
func not(list []bool) []bool {
	out := make([]bool, len(list))
	for i, x := range list {
		out[i] = !x
	}
	return out
}

func validity(list []ir.Value) []bool {
	out := make([]bool, len(list))
	for i, v := range list {
		out[i] = v.Valid()
	}
	return out
}

// tangentOutputs reports which outputs of g have a tangent if the marked ports have one.
func tangentOutputs(b *ir.Builder, g *ir.Graph, moving []bool) []bool {
	out := make([]bool, len(g.Outputs()))
	_, err := ir.Build(g.Name(), func(s *ir.Builder) {
		types := portTypes(g)
		in := declare(s, "in", types)
		_, t := derive.JVP(s, g, in, declare(s, "t", only(types, moving)))
		copy(out, validity(t))
	})
	if err != nil {
		b.Fail(err)
	}
	return out
}

// only returns types with the unmarked ones made invalid.
func only(types []ir.Type, marked []bool) []ir.Type {
	out := make([]ir.Type, len(types))
	for _, i := range where(marked) {
		out[i] = types[i]
	}
	return out
}

// batchedGraph returns g batched along a leading axis of the marked ports, and which
// outputs have it, also leading. If want is not nil it selects the outputs that have it:
// others are summed over it, and unbatched ones broadcast along it.
func batchedGraph(b *ir.Builder, g *ir.Graph, batched []bool, size ir.Dim, want []bool) (*ir.Graph, []bool) {
	types, axes := portTypes(g), make([]int, len(batched))
	for i := range axes {
		if axes[i] = -1; batched[i] {
			axes[i] = 0
			types[i].Shape = append(ir.Shape{size}, types[i].Shape...)
		}
	}
	outBatched := make([]bool, len(g.Outputs()))
	bg := closed(b, g.Name(), types, func(s *ir.Builder, in []ir.Value) []ir.Value {
		out, at := derive.Batch(s, g, in, axes, size)
		for i := range out {
			outBatched[i] = at[i] >= 0
			switch {
			case outBatched[i] && want != nil && !want[i]:
				out[i] = ReduceSum(s, out[i], at[i])
			case outBatched[i] || want != nil && want[i]:
				out[i] = BatchAt(s, out[i], at[i], 0, size)
			}
		}
		return out
	})
	if want != nil {
		outBatched = want
	}
	return bg, outBatched
}

// frontAxes moves the batch axis of each operand, if it has one, to the front.
func frontAxes(b *ir.Builder, in []ir.Value, axes []int) []ir.Value {
	out := make([]ir.Value, len(in))
	for i, v := range in {
		if out[i] = v; axes[i] >= 0 {
			out[i] = MoveAxis(b, v, axes[i], 0)
		}
	}
	return out
}

// marked reports which operands have a batch axis; axesAt is the inverse for leading batch
// axes.
func marked(axes []int) []bool {
	out := make([]bool, len(axes))
	for i, a := range axes {
		out[i] = a >= 0
	}
	return out
}

func axesAt(batched []bool) []int {
	out := repeatInt(-1, len(batched))
	for _, i := range where(batched) {
		out[i] = 0
	}
	return out
}
