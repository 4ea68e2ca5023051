package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// OpWhile is a loop with a condition.
const OpWhile ir.Op = "while_loop"

// WhileAttrs describe a loop. The first Consts operands are loop-invariant, all others are
// carries. MaxSteps bounds the number of steps; 0 is no bound.
type WhileAttrs struct{ Consts, MaxSteps int }

// Visit shows the attributes.
func (a *WhileAttrs) Visit(v ir.AttrVisitor) {
	v.Int("consts", &a.Consts)
	v.Int("max_steps", &a.MaxSteps)
}

func init() {
	define(&ir.Def{
		Op: OpWhile,
		Doc: "Runs the second graph, the body, while the first one, the condition, is true, at most max_steps times " +
			"if that is not 0 (JAX's while_loop). Both take the constants and the carries; the body returns the next carries. " +
			"Results are the final carries. Only loops with max_steps have a reverse derivative, which takes as " +
			"many iterations.",
		Constraints: numbered(
			"both graphs take as many operands as the node has, of their types, and have neither parameters nor states",
			"the first graph returns one boolean of rank 0",
			"the second graph returns values of the types of the carries",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &WhileAttrs{} },
		Subgraphs: 2,
		Infer:     inferWhile,
		Eval:      evalWhile,
		JVP:       jvpWhile,
		Partial:   partialWhile,
		Transpose: transposeWhile,
		Batch:     batchWhile,
		Prune:     pruneWhile,
		Lower:     &ir.ControlLowering{},
	})
}

// While describes a [WhileLoop].
type While struct {
	// Consts are loop-invariant operands. The graphs cannot capture values of the
	// surrounding graph.
	Consts []ir.Value
	// Carries are the initial values of the loop-carried state.
	Carries []ir.Value
	// MaxSteps bounds the number of steps; 0 is no bound. Reverse-mode derivatives need a
	// bound, and so do targets without host control flow during a run.
	MaxSteps int
	// Cond returns a bool of rank 0, true if another step follows.
	Cond func(b *ir.Builder, consts, carries []ir.Value) ir.Value
	// Body is one step: it returns the next carries.
	Body func(b *ir.Builder, consts, carries []ir.Value) []ir.Value
}

// WhileLoop runs Body while Cond is true and returns the final carries (JAX's while_loop).
func WhileLoop(b *ir.Builder, l While) []ir.Value {
	if !b.Require(OpWhile, "condition or body", l.Cond != nil && l.Body != nil) {
		return make([]ir.Value, len(l.Carries))
	}
	n := len(l.Consts)
	types := slices.Concat(ir.TypesOf(l.Consts), ir.TypesOf(l.Carries))
	graphs := []*ir.Graph{
		closed(b, "condition", types, func(s *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{l.Cond(s, in[:n], in[n:])}
		}),
		closed(b, "step", types, func(s *ir.Builder, in []ir.Value) []ir.Value { return l.Body(s, in[:n], in[n:]) }),
	}
	out := b.AddNode(OpWhile, &WhileAttrs{n, l.MaxSteps}, graphs, slices.Concat(l.Consts, l.Carries)...)
	if b.Err() != nil {
		return make([]ir.Value, len(l.Carries))
	}
	return out
}

func whileOf(n *ir.Node) (a *WhileAttrs, cond, body *ir.Graph) {
	return n.Attrs().(*WhileAttrs), n.Subgraphs()[0], n.Subgraphs()[1]
}

func inferWhile(n *ir.Node) ([]ir.Type, error) {
	a, cond, body := whileOf(n)
	if a.Consts < 0 || a.Consts > len(n.Inputs()) || a.MaxSteps < 0 {
		return nil, ir.Attrf("consts is %d, of %d operands, and max_steps %d: neither must be negative, nor consts more than there are", a.Consts, len(n.Inputs()), a.MaxSteps)
	}
	for _, g := range []*ir.Graph{cond, body} {
		if err := checkClosed(g, n.InTypes()); err != nil {
			return nil, err
		}
	}
	if out := outputTypes(cond); len(out) != 1 || !out[0].Equal(ir.TypeOf(ir.Bool)) {
		return nil, ir.DTypef("graph %q must return one bool[]", cond.Name())
	}
	carries, out := n.InTypes()[a.Consts:], outputTypes(body)
	if len(out) != len(carries) {
		return nil, ir.Errorf(ir.ErrGraph, "the graph returns %d values for %d carries", len(out), len(carries))
	}
	for i, c := range carries {
		if !out[i].Equal(c) {
			return nil, ir.Shapef("carry %d is %s before a step and %s after it", i, c, out[i])
		}
	}
	return out, nil
}

func evalWhile(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, cond, body := whileOf(n)
	consts, carries := in[:a.Consts], in[a.Consts:]
	for step := 0; a.MaxSteps == 0 || step < a.MaxSteps; step++ {
		on, err := c.Call(cond, slices.Concat(consts, carries))
		if err != nil {
			return nil, err
		}
		if on[0].I[0] == 0 {
			break
		}
		if carries, err = c.Call(body, slices.Concat(consts, carries)); err != nil {
			return nil, err
		}
	}
	return carries, nil
}

// pruneWhile drops carries that neither the results nor the steps use, and constants that
// the steps do not use.
func pruneWhile(b *ir.Builder, n *ir.Node, in []ir.Value, used []bool) []ir.Value {
	a, cond, body := whileOf(n)
	out := slices.Clone(used)
	takes := portsNeeded(cond, []bool{true})
	for grown := true; grown; {
		grown = false
		takes = union(takes, portsNeeded(body, out))
		for i, needed := range takes[a.Consts:] {
			if needed && !out[i] {
				out[i], grown = true, true
			}
		}
	}
	copy(takes[a.Consts:], out)
	if !slices.Contains(takes, false) {
		return nil
	}
	graphs := []*ir.Graph{restricted(b, cond, takes, []bool{true}), restricted(b, body, takes, out)}
	attrs := &WhileAttrs{len(where(takes[:a.Consts])), a.MaxSteps}
	results := b.CopyWith(n, attrs, graphs, pick(in, where(takes)))
	return placeResults(b, results, out)
}

// jvpWhile makes one loop of the node and its derivative, with the same condition:
// constants and carries are each followed by their tangents.
func jvpWhile(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a, cond, body := whileOf(n)
	active := validity(t)
	outActive := settle(active[a.Consts:], func() []bool { return tangentOutputs(b, body, active) })
	groups := []int{a.Consts, len(out)}
	filled := make([]ir.Value, len(in))
	for _, i := range where(active) {
		filled[i] = orZeros(b, t[i], in[i])
	}
	types := weave(groups, active, portTypes(body), portTypes(body))
	graphs := []*ir.Graph{
		closed(b, cond.Name(), types, func(s *ir.Builder, ports []ir.Value) []ir.Value {
			values, _ := unweave(groups, active, ports)
			return s.Splice(cond, values)
		}),
		closed(b, body.Name(), types, func(s *ir.Builder, ports []ir.Value) []ir.Value {
			values, tangents := unweave(groups, active, ports)
			o, to := derive.JVP(s, body, values, tangents)
			for _, i := range where(outActive) {
				to[i] = orZeros(s, to[i], o[i])
			}
			return weave(groups[1:], outActive, o, to)
		}),
	}
	attrs := &WhileAttrs{a.Consts + len(where(active[:a.Consts])), a.MaxSteps}
	results := b.AddNode(OpWhile, attrs, graphs, weave(groups, active, in, filled)...)
	if b.Err() != nil {
		return make([]ir.Value, len(out))
	}
	values, tangents := unweave(groups[1:], outActive, results)
	copy(out, values) // the loop computes the primal results too
	return tangents
}

// counted returns a graph that computes a bounded loop as a scan of max_steps steps with a
// flag that is true while the loop runs. It has the derivatives of the loop.
func counted(b *ir.Builder, n *ir.Node) *ir.Graph {
	a, cond, body := whileOf(n)
	if a.MaxSteps == 0 {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "a loop without max_steps has no reverse derivative: the number of residuals is unknown")))
		return nil
	}
	return closed(b, "counted", n.InTypes(), func(s *ir.Builder, in []ir.Value) []ir.Value {
		carries, _ := Scan(s, Loop{
			Consts: in[:a.Consts], Carries: slices.Concat([]ir.Value{Ones(s, ir.Bool)}, in[a.Consts:]), Length: ir.N(a.MaxSteps),
			Body: func(s *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
				operands := slices.Concat(consts, carries[1:])
				on := And(s, carries[0], s.Splice(cond, operands)[0])
				stay := func(_ *ir.Builder, in []ir.Value) []ir.Value { return in[a.Consts:] }
				step := func(s *ir.Builder, in []ir.Value) []ir.Value { return s.Splice(body, in) }
				return slices.Concat([]ir.Value{on}, Cond(s, on, operands, step, stay)), nil
			},
		})
		return carries[1:]
	})
}

func partialWhile(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) ([]ir.Value, []bool) {
	g := counted(b, n)
	if b.Err() != nil {
		return make([]ir.Value, n.NumResults()), make([]bool, n.NumResults())
	}
	return derive.Partial(b, g, in, unknown, keep)
}

func transposeWhile(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	g := counted(b, n)
	if b.Err() != nil {
		return make([]ir.Value, len(in))
	}
	return derive.Transpose(b, g, linear, in, ct)
}

// batchWhile batches condition and body. If the condition is batched, the loop runs while
// any member's condition holds, and finished members keep their carries.
func batchWhile(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a, cond, body := whileOf(n)
	batched := marked(axes)
	carries := batched[a.Consts:]
	differs := false
	outBatched := settle(carries, func() []bool {
		_, on := batchedGraph(b, cond, batched, size, nil)
		_, out := batchedGraph(b, body, batched, size, nil)
		if differs = on[0]; differs {
			return slices.Repeat([]bool{true}, len(out))
		}
		return slices.Clone(out)
	})
	on, _ := batchedGraph(b, cond, batched, size, []bool{differs})
	step, _ := batchedGraph(b, body, batched, size, outBatched)
	if b.Err() != nil {
		return make([]ir.Value, n.NumResults()), axesAt(outBatched)
	}
	graphs := []*ir.Graph{on, step}
	if differs {
		graphs = anyMember(b, on, step, a.Consts)
	}
	operands := slices.Clone(in)
	for i := range in {
		if batched[i] {
			operands[i] = BatchAt(b, in[i], axes[i], 0, size)
		}
	}
	return b.AddNode(OpWhile, a, graphs, operands...), axesAt(outBatched)
}

// anyMember returns the condition and body of a loop that runs while the condition of any
// member holds, in which finished members keep their carries.
func anyMember(b *ir.Builder, on, step *ir.Graph, consts int) []*ir.Graph {
	return []*ir.Graph{
		closed(b, on.Name(), portTypes(on), func(s *ir.Builder, in []ir.Value) []ir.Value {
			running := ReduceMax(s, Convert(s, s.Splice(on, in)[0], ir.I32), 0)
			return []ir.Value{Gt(s, running, Const(s, ir.I32, 0))}
		}),
		closed(b, step.Name(), portTypes(step), func(s *ir.Builder, in []ir.Value) []ir.Value {
			going := s.Splice(on, in)[0]
			next := s.Splice(step, in)
			for i, x := range next {
				next[i] = Select(s, BroadcastInDim(s, going, x.Shape(), []int{0}), x, in[consts+i])
			}
			return next
		}),
	}
}
