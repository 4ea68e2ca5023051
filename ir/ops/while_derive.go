package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// jvpWhile makes one loop of the node and its derivative, with the same condition:
// constants and carries are each followed by their tangents.
func jvpWhile(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a, cond, body := whileOf(n)
	moving := validity(t)
	outMoving := settle(moving[a.Consts:], func() []bool { return tangentOutputs(b, body, moving) })
	groups := []int{a.Consts, len(out)}
	filled := make([]ir.Value, len(in))
	for _, i := range where(moving) {
		filled[i] = orZeros(b, t[i], in[i])
	}
	types := weave(groups, moving, portTypes(body), portTypes(body))
	graphs := []*ir.Graph{
		closed(b, cond.Name(), types, func(s *ir.Builder, ports []ir.Value) []ir.Value {
			values, _ := unweave(groups, moving, ports)
			return s.Splice(cond, values)
		}),
		closed(b, body.Name(), types, func(s *ir.Builder, ports []ir.Value) []ir.Value {
			values, tangents := unweave(groups, moving, ports)
			o, to := derive.JVP(s, body, values, tangents)
			for _, i := range where(outMoving) {
				to[i] = orZeros(s, to[i], o[i])
			}
			return weave(groups[1:], outMoving, o, to)
		}),
	}
	attrs := &WhileAttrs{a.Consts + len(where(moving[:a.Consts])), a.MaxSteps}
	results := b.AddNode(OpWhile, attrs, graphs, weave(groups, moving, in, filled)...)
	if b.Err() != nil {
		return make([]ir.Value, len(out))
	}
	values, tangents := unweave(groups[1:], outMoving, results)
	copy(out, values) // the loop computes the primal results too
	return tangents
}

// counted returns a graph that computes a bounded loop as a scan of max_steps steps with a
// flag that is true while the loop runs. It has the derivatives of the loop.
func counted(b *ir.Builder, n *ir.Node) *ir.Graph {
	a, cond, body := whileOf(n)
	if a.MaxSteps == 0 {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "a loop without max_steps has no reverse derivative: how much it must keep is not known")))
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
			most := ReduceMax(s, Convert(s, s.Splice(on, in)[0], ir.I32), 0)
			return []ir.Value{Gt(s, most, Const(s, ir.I32, 0))}
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
