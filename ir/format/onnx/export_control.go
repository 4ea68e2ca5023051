package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// results names the results of a node with graphs.
func (e *exporter) results(n *ir.Node, names []string) []exported {
	out := make([]exported, n.NumResults())
	for i, t := range n.Types() {
		if i < len(names) {
			out[i] = tensorRef{names[i], held(t.DType), t.Shape}.value()
		}
	}
	return out
}

// wholes returns tensors of full shape.
func (e *exporter) wholes(in []exported) []tensorRef {
	out := make([]tensorRef, len(in))
	for i, v := range in {
		out[i] = e.whole(v)
	}
	return out
}

func namesOf(list []tensorRef) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.name
	}
	return out
}

// formals declares inputs of a graph within a node.
func (e *exporter) formals(types []ir.Type) (infos []valueInfo, values []exported) {
	for _, t := range types {
		r := tensorRef{e.fresh("formal"), held(t.DType), t.Shape}
		infos, values = append(infos, infoOf(r.name, r.dtype, r.dims)), append(values, r.value())
	}
	return infos, values
}

// exportCond exports If. Its branches refer to the operands by name.
func exportCond(e *exporter, n *ir.Node, in []exported) []exported {
	branch := func(name string, i int) *attribute {
		return e.within(name, nil, func() []tensorRef { return e.wholes(e.graph(n.Subgraphs()[i], in[1:])) })
	}
	yes, no := branch("then_branch", 0), branch("else_branch", 1)
	if e.err != nil {
		return e.results(n, nil)
	}
	return e.results(n, e.node("If", n.NumResults(), []string{e.whole(in[0]).name}, yes, no))
}

// exportScan exports Scan. Its body refers to the constants by name. A scan without slices gets its
// step numbers as one.
func exportScan(e *exporter, n *ir.Node, in []exported) []exported {
	a, body := n.Attrs().(*ops.ScanAttrs), n.Subgraphs()[0]
	consts, rest := in[:a.Consts], e.wholes(in[a.Consts:])
	for i, c := range consts { // made whole outside of the loop
		consts[i] = exported{e.whole(c), c.shape}
	}
	types := slices.Clone(n.InTypes()[a.Consts:])
	for i := a.Carries; i < len(types); i++ {
		types[i].Shape = types[i].Shape[1:]
	}
	if len(types) == a.Carries {
		rest, types = append(rest, e.counting(a.Length)), append(types, ir.TypeOf(ir.I64))
	}
	if len(types) == 0 || a.Length.Is(0) {
		return e.emptyScan(n, a, rest)
	}
	slicesIn := len(types) - a.Carries
	infos, values := e.formals(types)
	if len(n.Inputs()) == a.Consts+a.Carries {
		values = values[:a.Carries]
	}
	step := e.within("body", infos, func() []tensorRef { return e.wholes(e.graph(body, slices.Concat(consts, values))) })
	direction := func(count int) []int {
		if a.Reverse {
			return slices.Repeat([]int{1}, count)
		}
		return make([]int, count)
	}
	if e.err != nil {
		return e.results(n, nil)
	}
	attrs := []*attribute{step, attrInt("num_scan_inputs", slicesIn), attrList("scan_input_directions", direction(slicesIn))}
	if ys := n.NumResults() - a.Carries; ys > 0 {
		attrs = append(attrs, attrList("scan_output_directions", direction(ys)))
	}
	return e.results(n, e.node("Scan", n.NumResults(), namesOf(rest), attrs...))
}

// emptyScan is a scan of no steps: the carries, and values without elements.
func (e *exporter) emptyScan(n *ir.Node, a *ops.ScanAttrs, rest []tensorRef) []exported {
	out := e.empties(n.Types())
	for i := range a.Carries {
		out[i] = rest[i].value()
	}
	return out
}

// exportWhile exports Loop. Its body ends by computing the condition of the next step.
func exportWhile(e *exporter, n *ir.Node, in []exported) []exported {
	a, cond, body := n.Attrs().(*ops.WhileAttrs), n.Subgraphs()[0], n.Subgraphs()[1]
	consts := make([]exported, a.Consts)
	for i, c := range in[:a.Consts] {
		consts[i] = exported{e.whole(c), c.shape}
	}
	carries := in[a.Consts:]
	first := e.wholes(e.graph(cond, slices.Concat(consts, carries)))
	types := append([]ir.Type{ir.TypeOf(ir.I64), ir.TypeOf(ir.Bool)}, n.InTypes()[a.Consts:]...)
	infos, values := e.formals(types)
	step := e.within("body", infos, func() []tensorRef {
		next := e.graph(body, slices.Concat(consts, values[2:]))
		again := e.graph(cond, slices.Concat(consts, next))
		return e.wholes(append(again, next...))
	})
	if e.err != nil {
		return e.results(n, nil)
	}
	trips := ""
	if a.MaxSteps > 0 {
		trips = e.number(ir.I64, float64(a.MaxSteps)).name
	}
	args := append([]string{trips, first[0].name}, namesOf(e.wholes(carries))...)
	return e.results(n, e.node("Loop", n.NumResults(), args, step))
}
