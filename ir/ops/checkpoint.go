package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// OpCheckpoint is a rematerialised part of a graph: reverse mode saves its operands alone.
const OpCheckpoint ir.Op = "checkpoint"

// CheckpointAttrs hold the number of leading operands that the part is recomputed from:
// none in the forward pass.
type CheckpointAttrs struct{ Residuals int }

// Visit shows the attributes.
func (a *CheckpointAttrs) Visit(v ir.AttrVisitor) { v.Int("residuals", &a.Residuals) }

func init() {
	define(&ir.Def{
		Op: OpCheckpoint,
		Doc: "The results of a graph, for which reverse mode saves only the operands and recomputes the rest " +
			"(JAX's checkpoint). Derivatives and transposes of the node are such nodes too, so that this holds at every " +
			"order, and in the bodies of loops. The first residuals operands are those that the graph " +
			"is recomputed from: each is the operand of a rematerialize there.",
		Constraints: numbered(
			"the graph takes the operands, and has neither parameters nor states",
			"residuals is at most the number of operands",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &CheckpointAttrs{} },
		Subgraphs: 1,
		Infer:     inferCheckpoint,
		JVP:       jvpCheckpoint,
		Partial:   partialCheckpoint,
		Transpose: transposeCheckpoint,
		Batch:     batchCheckpoint,
		Prune:     pruneCheckpoint,
		Body:      checkpointBody,
	})
}

// Checkpoint returns the results of g for the operands; reverse mode recomputes them from
// the operands (JAX's checkpoint). The first residuals operands are those of a part that
// is already recomputed.
func Checkpoint(b *ir.Builder, g *ir.Graph, residuals int, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCheckpoint, &CheckpointAttrs{residuals}, []*ir.Graph{g}, operands...)
}

func checkpointOf(n *ir.Node) (residuals int, g *ir.Graph) {
	return n.Attrs().(*CheckpointAttrs).Residuals, n.Subgraphs()[0]
}

func inferCheckpoint(n *ir.Node) ([]ir.Type, error) {
	r, g := checkpointOf(n)
	if r < 0 || r > len(n.Inputs()) {
		return nil, ir.Attrf("residuals is %d, not in [0, %d], the number of operands", r, len(n.Inputs()))
	}
	return outputTypes(g), checkClosed(g, n.InTypes())
}

func checkpointBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	r, g := checkpointOf(n)
	in = slices.Clone(in)
	for i := range r {
		in[i] = Rematerialize(b, in[i])
	}
	return b.Splice(g, in)
}

// jvpCheckpoint makes one node of the node and its derivative.
func jvpCheckpoint(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	r, g := checkpointOf(n)
	active := validity(t)
	outActive := tangentOutputs(b, g, active)
	joint := closed(b, g.Name(), slices.Concat(ir.TypesOf(in), pick(ir.TypesOf(in), where(active))), func(s *ir.Builder, ports []ir.Value) []ir.Value {
		tangents := make([]ir.Value, len(in))
		for i, at := range where(active) {
			tangents[at] = ports[len(in)+i]
		}
		o, to := derive.JVP(s, g, ports[:len(in)], tangents)
		return slices.Concat(o, pick(to, where(outActive)))
	})
	results := Checkpoint(b, joint, r, slices.Concat(in, pick(t, where(active)))...)
	return takeJoint(b, out, results, outActive)
}

// takeJoint returns the tangents of a node's results from those of a joint node: it computes the primal results
// too, which replace out, and then the tangents of the active ones.
func takeJoint(b *ir.Builder, out, joint []ir.Value, active []bool) []ir.Value {
	tangents := make([]ir.Value, len(out))
	if b.Err() != nil {
		return tangents
	}
	copy(out, joint)
	for i, at := range where(active) {
		tangents[at] = joint[len(out)+i]
	}
	return tangents
}

// partialCheckpoint adds a node for the known results and one that computes the rest from
// the known operands, its residuals: it recomputes what it needs of the first node, except
// what keep saves in the bodies of loops.
func partialCheckpoint(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) ([]ir.Value, []bool) {
	flat, outUnknown := partialGraph(b, n, unknown, keep)
	out := make([]ir.Value, n.NumResults())
	if b.Err() != nil {
		return out, outUnknown
	}
	add := func(results, ports []int, residuals int) {
		if len(results) == 0 {
			return
		}
		for i, v := range Checkpoint(b, reordered(b, flat, ports, results), residuals, pick(in, ports)...) {
			out[results[i]] = v
		}
	}
	needs := func(results []bool) (ports []int) { return where(portsNeeded(flat, results)) }
	isUnknown := func(port int) bool { return unknown[port] }
	before, _ := checkpointOf(n)
	ports := needs(not(outUnknown))
	again, _ := slices.BinarySearch(ports, before)
	add(where(not(outUnknown)), ports, again)
	ports = needs(outUnknown)
	known := slices.DeleteFunc(slices.Clone(ports), isUnknown)
	ports = slices.Concat(known, slices.DeleteFunc(ports, func(port int) bool { return !isUnknown(port) }))
	add(where(outUnknown), ports, len(known))
	return out, outUnknown
}

// partialGraph returns the graph of a node with each of its nodes known or unknown as a
// whole, and which of its outputs are unknown.
func partialGraph(b *ir.Builder, n *ir.Node, unknown []bool, keep ir.Keeper) (flat *ir.Graph, outUnknown []bool) {
	_, g := checkpointOf(n)
	if keep == nil { // everything is saved, but loops prefer memory over time
		keep = func(*ir.Graph, []ir.Value, ir.Dim) ([]bool, error) { return nil, nil }
	}
	outUnknown = make([]bool, n.NumResults())
	flat = closed(b, g.Name(), portTypes(g), func(s *ir.Builder, in []ir.Value) (out []ir.Value) {
		out, outUnknown = derive.Partial(s, g, in, unknown, keep)
		return out
	})
	return flat, outUnknown
}

// reordered returns g with the given ports and outputs only, in the given order.
func reordered(b *ir.Builder, g *ir.Graph, ports, outputs []int) *ir.Graph {
	return closed(b, g.Name(), pick(portTypes(g), ports), func(s *ir.Builder, in []ir.Value) []ir.Value {
		all := make([]ir.Value, len(g.Ports()))
		for i, at := range ports {
			all[at] = in[i]
		}
		return splicePart(s, g, all, outputs)
	})
}

// transposeCheckpoint makes one node of the transpose; the operands that are not
// cotangents are its residuals.
func transposeCheckpoint(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	back := make([]ir.Value, len(in))
	flat, _ := partialGraph(b, n, linear, nil)
	if b.Err() != nil {
		return back
	}
	known, given := where(not(linear)), where(validity(ct))
	var active []int
	g := closed(b, flat.Name(), slices.Concat(ir.TypesOf(pick(in, known)), ir.TypesOf(pick(ct, given))),
		func(s *ir.Builder, ports []ir.Value) []ir.Value {
			args, cts := make([]ir.Value, len(in)), make([]ir.Value, len(ct))
			for i, at := range known {
				args[at] = ports[i]
			}
			for i, at := range given {
				cts[at] = ports[len(known)+i]
			}
			out := derive.Transpose(s, flat, linear, args, cts)
			active = where(validity(out))
			return pick(out, active)
		})
	if b.Err() != nil || len(active) == 0 {
		return back
	}
	for i, v := range Checkpoint(b, g, len(known), slices.Concat(pick(in, known), pick(ct, given))...) {
		back[active[i]] = v
	}
	return back
}

func batchCheckpoint(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	residuals, g := checkpointOf(n)
	batched, out := batchedGraph(b, g, marked(axes), size, nil)
	return Checkpoint(b, batched, residuals, frontAxes(b, in, axes)...), axesAt(out)
}

// pruneCheckpoint drops unused results, and operands that the others do not need.
func pruneCheckpoint(b *ir.Builder, n *ir.Node, in []ir.Value, used []bool) []ir.Value {
	residuals, g := checkpointOf(n)
	takes := portsNeeded(g, used)
	return prunedNode(b, n, &CheckpointAttrs{len(where(takes[:residuals]))}, in, takes, used)
}
