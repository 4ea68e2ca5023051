package ops

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/derive"
)

// Ops that own the graphs of their derivative.
const (
	OpLinearCall ir.Op = "linear_call"
	OpCustomVJP  ir.Op = "custom_vjp"
	OpCustomJVP  ir.Op = "custom_jvp"
)

// LinearCallAttrs say how many of the operands are residuals.
type LinearCallAttrs struct{ Residuals int }

// Visit shows the attributes.
func (a *LinearCallAttrs) Visit(v ir.AttrVisitor) { v.Int("residuals", &a.Residuals) }

// CustomVJPAttrs say how many results the function has; those after them are
// residuals.
type CustomVJPAttrs struct{ Results int }

// Visit shows the attributes.
func (a *CustomVJPAttrs) Visit(v ir.AttrVisitor) { v.Int("results", &a.Results) }

func init() {
	define(&ir.Def{
		Op: OpLinearCall,
		Doc: "A linear map given by two graphs: the first takes residuals and the linear operands to the results, the " +
			"second takes residuals and cotangents of the results to cotangents of the linear operands. Transposing " +
			"swaps the graphs; that is how a custom reverse derivative works in forward mode and at higher orders too. " +
			"A graph without operands and results stands for one that does not exist, which is an error where it is used.",
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
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			if failWithoutForward(b, n) {
				return make([]ir.Value, n.NumResults())
			}
			return spliceFirst(b, n, in)
		},
		Samples: linearCallSamples,
	})
	define(&ir.Def{
		Op: OpCustomVJP,
		Doc: "A function with a reverse derivative of its own. The first graph takes the operands to the results and " +
			"residuals, which both are results of the node. The second graph takes the residuals and cotangents of " +
			"the results to cotangents of the operands, and is linear in the cotangents. Integers and booleans have " +
			"no cotangents, neither as operands nor as results.",
		Constraints: numbered(
			"the first graph takes the operands and returns at least as many values as there are results",
			"the second graph takes the residuals and values of the types of the differentiable results, and returns values of the types of the differentiable operands",
			"neither has parameters or states",
		),
		Operands:    []string{"operands..."},
		NewAttrs:    func() ir.Attrs { return &CustomVJPAttrs{} },
		Subgraphs:   2,
		Infer:       inferCustomVJP,
		JVP:         jvpCustomVJP,
		Batch:       batchCustomVJP,
		NoTranspose: notLinear,
		Body:        spliceFirst,
		Samples:     customVJPSamples,
	})
	define(&ir.Def{
		Op: OpCustomJVP,
		Doc: "A function with a forward derivative of its own. The first graph takes the operands to the results. The " +
			"second graph takes the operands and the tangents of the differentiable ones to the tangents of the " +
			"differentiable results, and is linear in the tangents.",
		Constraints: numbered(
			"the first graph takes the operands",
			"the second graph takes the operands and values of the types of the differentiable ones, and returns values of the types of the differentiable results",
			"neither has parameters or states",
		),
		Operands:    []string{"operands..."},
		Subgraphs:   2,
		Infer:       inferCustomJVP,
		JVP:         jvpCustomJVP,
		Batch:       batchCustomJVP,
		NoTranspose: notLinear,
		Body:        spliceFirst,
		Samples:     customJVPSamples,
	})
}

// LinearCall returns what forward returns for the residuals and the linear
// operands; transposed is its transpose by the latter.
func LinearCall(b *ir.Builder, forward, transposed *ir.Graph, residuals, linear []ir.Value) []ir.Value {
	return b.AddNode(OpLinearCall, &LinearCallAttrs{len(residuals)}, []*ir.Graph{forward, transposed}, slices.Concat(residuals, linear)...)
}

// CustomVJP returns the results, and after them the residuals, of forward for
// the operands; backward is its reverse derivative. See the op's documentation
// for what the graphs take and return.
func CustomVJP(b *ir.Builder, forward, backward *ir.Graph, results int, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomVJP, &CustomVJPAttrs{results}, []*ir.Graph{forward, backward}, operands...)
}

// CustomJVP returns the results of f for the operands; jvp is its forward
// derivative. See the op's documentation for what the graphs take and return.
func CustomJVP(b *ir.Builder, f, jvp *ir.Graph, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomJVP, nil, []*ir.Graph{f, jvp}, operands...)
}

// spliceFirst is the body of ops whose first graph gives their results.
func spliceFirst(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	return b.Splice(n.Subgraphs()[0], in)
}

// differentiable returns the places of the types that have tangents.
func differentiable(types []ir.Type) []int {
	var out []int
	for i, t := range types {
		if derive.Differentiable(t.DType) {
			out = append(out, i)
		}
	}
	return out
}

// checkReturns makes sure that a graph returns values of the given types.
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

func inferLinearCall(n *ir.Node) ([]ir.Type, error) {
	r, types := n.Attrs().(*LinearCallAttrs).Residuals, n.InTypes()
	if r < 0 || r > len(types) {
		return nil, ir.Attrf("%d residuals of %d operands", r, len(types))
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

// isAbsent reports whether a graph of a linear_call stands for one that does
// not exist.
func isAbsent(g *ir.Graph) bool { return len(g.Ports()) == 0 && len(g.Outputs()) == 0 }

// failWithoutForward records why the first graph of a linear_call does not
// exist, if so: its second graph has no transpose.
func failWithoutForward(b *ir.Builder, n *ir.Node) bool {
	if !isAbsent(n.Subgraphs()[0]) {
		return false
	}
	_, err := transposedGraph(n.Subgraphs()[1], n.Attrs().(*LinearCallAttrs).Residuals, n.Types())
	b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "the transpose of a custom derivative is needed and does not exist: %v", err)))
	return true
}

// jvpLinearCall keeps the map for the tangents of its linear operands, and
// differentiates the graph for those of the residuals.
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

// batchLinearCall batches both graphs so that they stay each other's
// transpose: a linear operand without the batch axis gets the sum over it.
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
		return nil, ir.Attrf("%d results of %d values", results, len(out))
	}
	takes := slices.Concat(out[results:], pick(out, differentiable(out[:results])))
	if err := checkClosed(backward, takes); err != nil {
		return nil, err
	}
	return out, checkReturns(backward, pick(in, differentiable(in)))
}

// jvpCustomVJP applies the transpose of the reverse derivative to the
// tangents, as a linear_call, so that transposing gives the reverse derivative
// back. Residuals have the tangents that the forward graph gives them.
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
	y := LinearCall(b, forwardMap, backward, out[results:], linear)
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
				tangents[i] = tangents[k] // a result kept as a residual: the rule is the node's own
			}
		}
	}
	return tangents
}

// transposedGraph returns the transpose of g by all its ports after the
// residuals, the results having the given types.
func transposedGraph(g *ir.Graph, residuals int, results []ir.Type) (*ir.Graph, error) {
	unknown := make([]bool, len(g.Ports()))
	for i := residuals; i < len(unknown); i++ {
		unknown[i] = true
	}
	h, err := derive.Split(g, unknown, slices.Repeat([]bool{true}, len(g.Outputs())))
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

// The samples are the map x ↦ a·x on vectors of three elements, and the
// function x ↦ x², whose custom derivatives are the true ones.

func linearCallSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	v := ir.TypeOf(ir.F32, ir.N(3))
	scaled := sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Mul(b, in[0], in[1])}
	})
	return []ir.Sample{{
		Name: "scaling", Attrs: &LinearCallAttrs{1}, Subs: []*ir.Graph{scaled, scaled},
		In: []*ir.Array{drawn(ir.F32, 3), ir.Floats(ir.F32, []float64{1, -2, 0.5})},
	}}
}

func customVJPSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	v := ir.TypeOf(ir.F32, ir.N(3))
	forward := sampleGraph([]ir.Type{v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Mul(b, in[0], in[0]), in[0]}
	})
	return []ir.Sample{{
		Name: "square", Attrs: &CustomVJPAttrs{1}, Subs: []*ir.Graph{forward, doubledProduct(v)}, In: []*ir.Array{drawn(ir.F32, 3)},
	}}
}

func customJVPSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	v := ir.TypeOf(ir.F32, ir.N(3))
	f := sampleGraph([]ir.Type{v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Mul(b, in[0], in[0])}
	})
	return []ir.Sample{{Name: "square", Subs: []*ir.Graph{f, doubledProduct(v)}, In: []*ir.Array{drawn(ir.F32, 3)}}}
}

// doubledProduct is (x, t) ↦ 2·x·t, the derivative of the square in both modes.
func doubledProduct(v ir.Type) *ir.Graph {
	return sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Mul(b, Mul(b, in[0], in[1]), ConstLike(b, in[0], 2))}
	})
}
