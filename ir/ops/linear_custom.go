package ops

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

func inferCustomVJP(n *ir.Node) ([]ir.Type, error) {
	forward, backward, results := n.Subgraphs()[0], n.Subgraphs()[1], n.Attrs().(*CustomVJPAttrs).Results
	in, out := n.InTypes(), outputTypes(forward)
	if err := checkClosed(forward, in); err != nil {
		return nil, err
	}
	if results < 0 || results > len(out) {
		return nil, ir.Attrf("results is %d, not in [0, %d], the number of values of the forward graph", results, len(out))
	}
	takes := slices.Concat(out[results:], pick(out, differentiable(out[:results])))
	if err := checkClosed(backward, takes); err != nil {
		return nil, err
	}
	return out, checkReturns(backward, pick(in, differentiable(in)))
}

// jvpCustomVJP applies the transpose of the VJP to the tangents, as a linear_call, so that
// transposing returns the VJP. Residuals have the tangents of the forward graph.
func jvpCustomVJP(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	forward, backward, results := n.Subgraphs()[0], n.Subgraphs()[1], n.Attrs().(*CustomVJPAttrs).Results
	types := n.Types()
	from, to := differentiable(n.InTypes()), differentiable(types[:results])
	linear := make([]ir.Value, len(from))
	for i, at := range from {
		linear[i] = orZeros(b, t[at], in[at])
	}
	tangents := make([]ir.Value, len(out))
	forwardMap, err := transposedGraph(backward, len(types)-results, pick(types, to))
	if err != nil {
		forwardMap = b.Subgraph("absent", func(*ir.Builder) {})
	}
	y := LinearCall(b, forwardMap, backward, keptValues(n, in, out), linear)
	if b.Err() != nil {
		return tangents
	}
	for i, at := range to {
		tangents[at] = y[i]
	}
	_, by := derive.JVP(b, forward, in, t)
	outputs := forward.Outputs()
	for i := results; i < len(out); i++ {
		tangents[i] = by[i]
		for k := range results {
			if outputs[k].Value == outputs[i].Value {
				tangents[i] = tangents[k] // a result that is also a residual has the node's own rule
			}
		}
	}
	return tangents
}

// keptValues returns the residuals of a custom_vjp, replaced by the operands or results
// that they are equal to, so that a loop does not stack them twice.
func keptValues(n *ir.Node, in, out []ir.Value) []ir.Value {
	forward, results := n.Subgraphs()[0], n.Attrs().(*CustomVJPAttrs).Results
	kept := slices.Clone(out[results:])
	values := outputValues(forward)
	for i, v := range values[results:] {
		if port := slices.IndexFunc(forward.Ports(), func(p ir.Port) bool { return p.Value == v }); port >= 0 {
			kept[i] = in[port]
		} else if result := slices.Index(values[:results], v); result >= 0 {
			kept[i] = out[result]
		}
	}
	return kept
}

// transposedGraph returns the transpose of g by all ports after the residuals, for results
// of the given types.
func transposedGraph(g *ir.Graph, residuals int, results []ir.Type) (*ir.Graph, error) {
	unknown := make([]bool, len(g.Ports()))
	for i := residuals; i < len(unknown); i++ {
		unknown[i] = true
	}
	h, err := derive.PartialEval(g, unknown, slices.Repeat([]bool{true}, len(g.Outputs())), nil)
	if err != nil {
		return nil, err
	}
	return ir.Build(g.Name()+"/transposed", func(s *ir.Builder) {
		in := declare(s, "in", slices.Concat(portTypes(g)[:residuals], outputTypes(g)))
		known := s.Splice(h.Known, in[:residuals])
		args := slices.Concat(known, make([]ir.Value, len(results)))
		back := derive.Transpose(s, h.Linear, not(validity(args)), args, in[residuals:])[len(known):]
		for i, t := range results {
			s.Output("out"+strconv.Itoa(i), orZerosOf(s, back[i], t))
		}
	})
}

func batchCustomVJP(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	results, batched := n.Attrs().(*CustomVJPAttrs).Results, marked(axes)
	forward, out := batchedGraph(b, n.Subgraphs()[0], batched, size, nil)
	takes := slices.Concat(out[results:], pick(out, differentiable(n.Types()[:results])))
	backward, _ := batchedGraph(b, n.Subgraphs()[1], takes, size, pick(batched, differentiable(n.InTypes())))
	return CustomVJP(b, forward, backward, results, frontAxes(b, in, axes)...), axesAt(out)
}

func inferCustomJVP(n *ir.Node) ([]ir.Type, error) {
	f, jvp, in := n.Subgraphs()[0], n.Subgraphs()[1], n.InTypes()
	if err := checkClosed(f, in); err != nil {
		return nil, err
	}
	if err := checkClosed(jvp, slices.Concat(in, pick(in, differentiable(in)))); err != nil {
		return nil, err
	}
	out := outputTypes(f)
	return out, checkReturns(jvp, pick(out, differentiable(out)))
}

func jvpCustomJVP(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	args := slices.Clone(in)
	for _, i := range differentiable(n.InTypes()) {
		args = append(args, orZeros(b, t[i], in[i]))
	}
	tangents := make([]ir.Value, len(out))
	for i, v := range b.Splice(n.Subgraphs()[1], args) {
		tangents[differentiable(n.Types())[i]] = v
	}
	return tangents
}

func batchCustomJVP(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	batched := marked(axes)
	all := slices.Repeat([]bool{true}, n.NumResults())
	f, _ := batchedGraph(b, n.Subgraphs()[0], batched, size, all)
	takes := slices.Concat(batched, pick(batched, differentiable(n.InTypes())))
	jvp, _ := batchedGraph(b, n.Subgraphs()[1], takes, size, pick(all, differentiable(n.Types())))
	return CustomJVP(b, f, jvp, frontAxes(b, in, axes)...), axesAt(all)
}
