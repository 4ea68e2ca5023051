package ops

import (
	"slices"
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

// spliceValues splices the part of g that values depend on, and returns them. Unused ports
// may be the zero Value in in.
func spliceValues(b *ir.Builder, g *ir.Graph, in, values []ir.Value) []ir.Value {
	live := needed(g, values)
	m := ir.NewMapping(g)
	m.SetPorts(g, in)
	for _, n := range g.Nodes() {
		if live[n.ID()] && n.Op() != ir.OpPort {
			b.CopyNode(n, m)
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
	return spliceValues(b, g, in, pick(g.OutputValues(), at))
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
func tangentOutputs(b *ir.Builder, g *ir.Graph, active []bool) []bool {
	out := make([]bool, len(g.Outputs()))
	_, err := ir.Transform(g.Name(), func(s *ir.Builder) {
		types := portTypes(g)
		in := declare(s, "in", types)
		_, t := derive.JVP(s, g, in, declare(s, "t", only(types, active)))
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

// keepResiduals chooses the residuals of the halves of a graph that runs steps times. It returns
// halves whose linear one recomputes those that are not kept: the choice of keep, under a checkpoint,
// or, of a loop without a keeper, what [arithmetic] gives of others. Nodes that do not vary, by ID of
// the known half, are kept; nil: all vary, as there is no loop. If everything needed is kept, it returns h.
func keepResiduals(b *ir.Builder, h *derive.PartialResult, unknown []bool, keep ir.Keeper, varying []bool, steps ir.Dim) *derive.PartialResult {
	if keep == nil && varying == nil || h.Residuals() == 0 || b.Err() != nil {
		return h
	}
	values := h.Known.OutputValues()
	r := &restart{h: h, known: values[:len(values)-h.Residuals()], needed: values[len(values)-h.Residuals():], lean: keep != nil}
	var kept []bool
	if keep != nil {
		chosen := slices.DeleteFunc(slices.Clone(r.needed), func(v ir.Value) bool { return varying != nil && !varying[v.Node().ID()] })
		choice, err := keep(h.Known, chosen, steps)
		if err != nil || choice == nil {
			b.Fail(err)
			return h
		}
		kept = slices.Clone(choice)
		for i, v := range varying {
			kept[i] = kept[i] || !v
		}
	} else if kept = r.keptOfLoop(varying); kept == nil {
		return h
	}
	r.walk(kept)
	return r.halves(b, where(not(unknown)))
}

// restart splits halves again: the known one returns the values that the needed ones are
// recomputed from, and the linear one recomputes these.
type restart struct {
	h             *derive.PartialResult
	known, needed []ir.Value // outputs of the known half: results and residuals
	from          []ir.Value // ports of the known half and kept values
	again         []bool     // recomputed, by node of the known half
	lean          bool       // recomputed under a checkpoint
}

// arithmetic are ops that take less time than stacking their results in a loop and reading them from the stack.
var arithmetic = []ir.Op{OpAdd, OpSub, OpMul, OpMulZero, OpNeg, OpConvert, OpBroadcastInDim}

// keptOfLoop returns the nodes of a loop's body to keep, by ID: all but arithmetic on values that are needed, too, as
// s·(1 − s) of the sigmoid s, and on constants. It returns nil if nothing needed is recomputed.
func (r *restart) keptOfLoop(varying []bool) []bool {
	kept := make([]bool, len(varying))
	for _, n := range r.h.Known.Nodes() {
		kept[n.ID()] = n.Op() == ir.OpPort || len(n.Inputs()) > 0 && !slices.Contains(arithmetic, n.Op()) ||
			slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool {
				return kept[v.Node().ID()] && !(varying[n.ID()] && slices.Contains(r.needed, v))
			})
	}
	if slices.ContainsFunc(r.needed, func(v ir.Value) bool { return varying[v.Node().ID()] && !kept[v.Node().ID()] }) {
		return kept
	}
	return nil
}

// walk finds the nodes to recompute, and their inputs.
func (r *restart) walk(kept []bool) {
	r.again = make([]bool, len(r.h.Known.Nodes()))
	for stack := slices.Clone(r.needed); len(stack) > 0; {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch n := v.Node(); {
		case n.Op() == ir.OpPort || kept[n.ID()]:
			if !slices.Contains(r.from, v) {
				r.from = append(r.from, v)
			}
		case !r.again[n.ID()]:
			r.again[n.ID()] = true
			stack = append(stack, n.Inputs()...)
		}
	}
}

// halves returns the new halves; known are the known ports of the whole graph.
func (r *restart) halves(b *ir.Builder, known []int) *derive.PartialResult {
	h := &derive.PartialResult{OutUnknown: r.h.OutUnknown}
	for _, v := range r.from {
		port := slices.IndexFunc(r.h.Known.Ports(), func(p ir.Port) bool { return p.Value == v })
		if port >= 0 {
			port = known[port]
		}
		h.ResidualPort = append(h.ResidualPort, port)
	}
	h.Known = closed(b, r.h.Known.Name(), portTypes(r.h.Known), func(s *ir.Builder, in []ir.Value) []ir.Value {
		return spliceValues(s, r.h.Known, in, slices.Concat(r.known, r.from))
	})
	types := slices.Concat(ir.TypesOf(r.from), portTypes(r.h.Linear)[r.h.Residuals():])
	h.Linear = closed(b, r.h.Linear.Name(), types, func(s *ir.Builder, in []ir.Value) []ir.Value {
		if r.lean {
			return Checkpoint(s, closed(s, r.h.Linear.Name(), types, r.linear), len(r.from), in...)
		}
		return r.linear(s, in)
	})
	return h
}

// linear recomputes the needed values and runs the linear half.
func (r *restart) linear(b *ir.Builder, in []ir.Value) []ir.Value {
	m := ir.NewMapping(r.h.Known)
	for i, v := range r.from {
		m.Set(v, in[i])
	}
	for _, n := range r.h.Known.Nodes() {
		if r.again[n.ID()] {
			b.CopyNode(n, m)
		}
	}
	args := make([]ir.Value, len(r.needed))
	for i, v := range r.needed {
		args[i] = m.Get(v)
	}
	return b.Splice(r.h.Linear, slices.Concat(args, in[len(r.from):]))
}

// pruneScan drops unused results, carries that neither the results nor the steps use, and
// operands that the steps do not use.
func pruneScan(b *ir.Builder, n *ir.Node, in []ir.Value, used []bool) []ir.Value {
	a, body := scanOf(n)
	out := slices.Clone(used)
	takes := portsNeeded(body, out)
	// A carry that a step uses must be computed by the step before.
	for grown := true; grown; takes = portsNeeded(body, out) {
		grown = false
		for i, needed := range takes[a.Consts : a.Consts+a.Carries] {
			if needed && !out[i] {
				out[i], grown = true, true
			}
		}
	}
	copy(takes[a.Consts:], out[:a.Carries])
	consts, carries, _ := scanGroups(a, takes)
	attrs := *a
	attrs.Consts, attrs.Carries = len(where(consts)), len(where(carries))
	return prunedNode(b, n, &attrs, in, takes, out)
}

// pruneCond drops unused results, and operands that neither branch uses.
func pruneCond(b *ir.Builder, n *ir.Node, in []ir.Value, used []bool) []ir.Value {
	branches := n.Subgraphs()
	takes := union(portsNeeded(branches[0], used), portsNeeded(branches[1], used))
	return prunedNode(b, n, nil, in, append([]bool{true}, takes...), used)
}

// prunedNode adds a node like n with a subset of operands and results. The operands of its
// graphs are the node's last ones.
func prunedNode(b *ir.Builder, n *ir.Node, attrs ir.Attrs, in []ir.Value, takes, out []bool) []ir.Value {
	if !slices.Contains(takes, false) && !slices.Contains(out, false) {
		return nil
	}
	subs := make([]*ir.Graph, len(n.Subgraphs()))
	for i, g := range n.Subgraphs() {
		subs[i] = restricted(b, g, takes[len(takes)-len(g.Ports()):], out)
	}
	results := b.CopyWith(n, attrs, subs, pick(in, where(takes)))
	return placeResults(b, results, out)
}

// placeResults returns a value for each element of out: the results in order where it is true, nil
// elsewhere.
func placeResults(b *ir.Builder, results []ir.Value, out []bool) []ir.Value {
	all := make([]ir.Value, len(out))
	if b.Err() != nil {
		return all
	}
	for i, at := range where(out) {
		all[at] = results[i]
	}
	return all
}

// nodesNeeded marks, by ID, the nodes that the given outputs of g depend on.
func nodesNeeded(g *ir.Graph, out []bool) []bool {
	return needed(g, pick(g.OutputValues(), where(out)))
}

// needed marks, by ID, the nodes that the given values of g depend on.
func needed(g *ir.Graph, values []ir.Value) []bool {
	needed := make([]bool, len(g.Nodes()))
	for _, v := range values {
		needed[v.Node().ID()] = true
	}
	for _, n := range slices.Backward(g.Nodes()) {
		for _, v := range n.Inputs() {
			needed[v.Node().ID()] = needed[v.Node().ID()] || needed[n.ID()]
		}
	}
	return needed
}

// portsNeeded marks the ports that the given outputs of g depend on.
func portsNeeded(g *ir.Graph, out []bool) []bool {
	needed := nodesNeeded(g, out)
	ports := make([]bool, len(g.Ports()))
	for i, p := range g.Ports() {
		ports[i] = needed[p.Value.Node().ID()]
	}
	return ports
}

// restricted returns g with a subset of its outputs, and of its ports, which must include
// all that these outputs depend on.
func restricted(b *ir.Builder, g *ir.Graph, ports, out []bool) *ir.Graph {
	needed := nodesNeeded(g, out)
	return b.Subgraph(g.Name(), func(s *ir.Builder) {
		m := ir.NewMapping(g)
		for _, i := range where(ports) {
			p := g.Ports()[i]
			m.Set(p.Value, s.Port(p.Kind, p.Name, p.Value.Type()))
		}
		for _, n := range g.Nodes() {
			if needed[n.ID()] && n.Op() != ir.OpPort {
				s.CopyNode(n, m)
			}
		}
		for _, i := range where(out) {
			s.CopyOutput(g.Outputs()[i], m.Get(g.Outputs()[i].Value))
		}
	})
}
