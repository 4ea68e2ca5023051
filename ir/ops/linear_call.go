package ops

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// Ops with custom derivatives.
const (
	OpLinearCall ir.Op = "linear_call"
	OpCustomVJP  ir.Op = "custom_vjp"
	OpCustomJVP  ir.Op = "custom_jvp"
)

// LinearCallAttrs hold the number of leading operands that are residuals.
type LinearCallAttrs struct{ Residuals int }

// Visit shows the attributes.
func (a *LinearCallAttrs) Visit(v ir.AttrVisitor) { v.Int("residuals", &a.Residuals) }

// CustomVJPAttrs hold the number of results of the function; those after them are
// residuals.
type CustomVJPAttrs struct{ Results int }

// Visit shows the attributes.
func (a *CustomVJPAttrs) Visit(v ir.AttrVisitor) { v.Int("results", &a.Results) }

func init() {
	define(&ir.Def{
		Op: OpLinearCall,
		Doc: "A linear map given by two graphs: the first takes residuals and the linear operands to the results, the " +
			"second takes residuals and cotangents of the results to cotangents of the linear operands. Transposing " +
			"swaps the graphs, so that a custom VJP works in forward mode and at higher orders too. " +
			"A graph without operands and results stands for a missing one, which is an error if it is used.",
		Constraints: numbered(
			"the first graph takes all operands; it is linear in those after the residuals",
			"the second graph takes the residuals and values of the types of the results, and returns values of the types of the linear operands",
			"neither has parameters or states",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &LinearCallAttrs{} },
		Subgraphs: 2,
		Infer:     inferLinearCall,
		JVP:       jvpLinearCall,
		Transpose: transposeLinearCall,
		Batch:     batchLinearCall,
		Body:      linearCallBody,
	})
	define(&ir.Def{
		Op: OpCustomVJP,
		Doc: "A function with a custom VJP (JAX's custom_vjp). The first graph takes the operands to the results and " +
			"residuals; both are results of the node. The second graph takes the residuals and cotangents of " +
			"the results to cotangents of the operands, and is linear in the cotangents. Integers and booleans have " +
			"no cotangents, neither as operands nor as results.",
		Constraints: numbered(
			"the first graph takes the operands and returns at least as many values as there are results",
			"the second graph takes the residuals and values of the types of the differentiable results, and returns values of the types of the differentiable operands",
			"neither has parameters or states",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &CustomVJPAttrs{} },
		Subgraphs: 2,
		Infer:     inferCustomVJP,
		JVP:       jvpCustomVJP,
		Batch:     batchCustomVJP,
		Body:      spliceFirst,
	})
	define(&ir.Def{
		Op: OpCustomJVP,
		Doc: "A function with a custom JVP (JAX's custom_jvp). The first graph takes the operands to the results. The " +
			"second graph takes the operands and the tangents of the differentiable ones to the tangents of the " +
			"differentiable results, and is linear in the tangents.",
		Constraints: numbered(
			"the first graph takes the operands",
			"the second graph takes the operands and values of the types of the differentiable ones, and returns values of the types of the differentiable results",
			"neither has parameters or states",
		),
		Operands:  []string{"operands..."},
		Subgraphs: 2,
		Infer:     inferCustomJVP,
		JVP:       jvpCustomJVP,
		Batch:     batchCustomJVP,
		Body:      spliceFirst,
	})
}

func linearCallBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	if failWithoutForward(b, n) {
		return make([]ir.Value, n.NumResults())
	}
	return spliceFirst(b, n, in)
}

// LinearCall returns the results of forward for residuals and linear, in which it is
// linear; transposed is its transpose: it takes the residuals and the cotangents of the
// results and returns those of linear.
func LinearCall(b *ir.Builder, forward, transposed *ir.Graph, residuals, linear []ir.Value) []ir.Value {
	return b.AddNode(OpLinearCall, &LinearCallAttrs{len(residuals)}, []*ir.Graph{forward, transposed}, slices.Concat(residuals, linear)...)
}

// CustomVJP returns the results of forward for the operands and, after the first results
// ones, the residuals (JAX's custom_vjp). backward takes the residuals and the cotangents
// of the differentiable results and returns those of the differentiable operands.
func CustomVJP(b *ir.Builder, forward, backward *ir.Graph, results int, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomVJP, &CustomVJPAttrs{results}, []*ir.Graph{forward, backward}, operands...)
}

// CustomJVP returns the results of f for the operands (JAX's custom_jvp). jvp takes the
// operands and the tangents of the differentiable ones and returns those of the
// differentiable results.
func CustomJVP(b *ir.Builder, f, jvp *ir.Graph, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomJVP, nil, []*ir.Graph{f, jvp}, operands...)
}

// spliceFirst is the body of ops whose first graph computes their results.
func spliceFirst(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	return b.Splice(n.Subgraphs()[0], in)
}

// differentiable returns the indices of the types that have tangents.
func differentiable(types []ir.Type) []int {
	var out []int
	for i, t := range types {
		if derive.Differentiable(t.DType) {
			out = append(out, i)
		}
	}
	return out
}

// checkReturns reports an error unless g returns values of the given types.
func checkReturns(g *ir.Graph, want []ir.Type) error {
	got := outputTypes(g)
	if len(got) != len(want) {
		return ir.Errorf(ir.ErrGraph, "graph %q returns %d values, %d are wanted", g.Name(), len(got), len(want))
	}
	for i, t := range got {
		if !t.Equal(want[i]) {
			return ir.Shapef("graph %q returns %s as value %d, %s is wanted", g.Name(), t, i, want[i])
		}
	}
	return nil
}

// The samples are the map x ↦ a·x on vectors of three elements, and the
// function x ↦ x², whose custom derivatives are the true ones.

func inferLinearCall(n *ir.Node) ([]ir.Type, error) {
	r, types := n.Attrs().(*LinearCallAttrs).Residuals, n.InTypes()
	if r < 0 || r > len(types) {
		return nil, ir.Attrf("residuals is %d, not in [0, %d], the number of operands", r, len(types))
	}
	forward, transposed := n.Subgraphs()[0], n.Subgraphs()[1]
	out := outputTypes(forward)
	if isAbsent(forward) {
		out = portTypes(transposed)[min(r, len(transposed.Ports())):]
	} else if err := checkClosed(forward, types); err != nil {
		return nil, err
	}
	if isAbsent(transposed) {
		return out, nil
	}
	if err := checkClosed(transposed, slices.Concat(types[:r], out)); err != nil {
		return nil, err
	}
	return out, checkReturns(transposed, types[r:])
}

// isAbsent reports whether a graph of a linear_call stands for a missing one.
func isAbsent(g *ir.Graph) bool { return len(g.Ports()) == 0 && len(g.Outputs()) == 0 }

// failWithoutForward records why the first graph of a linear_call is missing, if it is:
// the second graph has no transpose.
func failWithoutForward(b *ir.Builder, n *ir.Node) bool {
	if !isAbsent(n.Subgraphs()[0]) {
		return false
	}
	_, err := transposedGraph(n.Subgraphs()[1], n.Attrs().(*LinearCallAttrs).Residuals, n.Types())
	b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "the transpose of a custom derivative is needed and does not exist: %v", err)))
	return true
}

// jvpLinearCall applies the map to the tangents of the linear operands and differentiates
// the graph by the residuals.
func jvpLinearCall(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	r := n.Attrs().(*LinearCallAttrs).Residuals
	forward, transposed := n.Subgraphs()[0], n.Subgraphs()[1]
	out := make([]ir.Value, n.NumResults())
	if anyValid(t[r:]) {
		linear := make([]ir.Value, len(in)-r)
		for i := range linear {
			linear[i] = orZeros(b, t[r+i], in[r+i])
		}
		copy(out, LinearCall(b, forward, transposed, in[:r], linear))
	}
	if anyValid(t[:r]) && !failWithoutForward(b, n) {
		_, by := derive.JVP(b, forward, in, slices.Concat(t[:r], make([]ir.Value, len(in)-r)))
		for i := range out {
			out[i] = addTangents(b, out[i], by[i])
		}
	}
	return out
}

func anyValid(list []ir.Value) bool { return slices.Contains(validity(list), true) }

func transposeLinearCall(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	r := n.Attrs().(*LinearCallAttrs).Residuals
	out := make([]ir.Value, len(in))
	if slices.Contains(linear[:r], true) {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "a residual depends on a tangent")))
		return out
	}
	cts := make([]ir.Value, len(ct))
	for i, t := range n.Types() {
		cts[i] = orZerosOf(b, ct[i], t)
	}
	copy(out[r:], LinearCall(b, n.Subgraphs()[1], n.Subgraphs()[0], in[:r], cts))
	return out
}

// batchLinearCall batches both graphs so that they remain transposes of each other: the
// cotangent of an unbatched linear operand is summed over the batch axis.
func batchLinearCall(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	r, batched := n.Attrs().(*LinearCallAttrs).Residuals, marked(axes)
	if failWithoutForward(b, n) {
		return make([]ir.Value, n.NumResults()), repeatInt(-1, n.NumResults())
	}
	forward, out := batchedGraph(b, n.Subgraphs()[0], batched, size, nil)
	transposed := n.Subgraphs()[1]
	if !isAbsent(transposed) {
		transposed, _ = batchedGraph(b, transposed, slices.Concat(batched[:r], out), size, batched[r:])
	}
	in = frontAxes(b, in, axes)
	return LinearCall(b, forward, transposed, in[:r], in[r:]), axesAt(out)
}

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
	values := forward.OutputValues()
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
	return ir.Transform(g.Name()+"/transposed", func(s *ir.Builder) {
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
