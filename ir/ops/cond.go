package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// OpCond runs one of two graphs.
const OpCond ir.Op = "cond"

func init() {
	define(&ir.Def{
		Op: OpCond,
		Doc: "Runs the first graph if the predicate is true and the second one if it is false, on all other " +
			"operands, and returns its results (XLA's Conditional).",
		Constraints: numbered(
			"the predicate is a boolean of rank 0",
			"both graphs take the other operands, and have neither parameters nor states",
			"both graphs return values of the same types",
		),
		Operands:  []string{"predicate", "operands..."},
		Subgraphs: 2,
		Infer:     inferCond,
		Eval: func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			if in[0].I[0] != 0 {
				return c.Call(n.Subgraphs()[0], in[1:])
			}
			return c.Call(n.Subgraphs()[1], in[1:])
		},
		JVP:       jvpCond,
		Partial:   partialCond,
		Transpose: transposeCond,
		Batch:     batchCond,
		Prune:     pruneCond,
		Lower:     &ir.ControlLowering{},
	})
}

// Branch builds one of the graphs of a [Cond] from its operands.
type Branch = func(b *ir.Builder, in []ir.Value) []ir.Value

// Cond returns the results of whenTrue if predicate, a bool of rank 0, is true, and of
// whenFalse otherwise. Both return values of the same types. The branches cannot capture
// values of the surrounding graph: they take operands.
func Cond(b *ir.Builder, predicate ir.Value, operands []ir.Value, whenTrue, whenFalse Branch) []ir.Value {
	if !b.Require(OpCond, "branch", whenTrue != nil && whenFalse != nil) {
		return make([]ir.Value, 1)
	}
	types := ir.TypesOf(operands)
	branches := []*ir.Graph{closed(b, "when_true", types, whenTrue), closed(b, "when_false", types, whenFalse)}
	return b.AddNode(OpCond, nil, branches, slices.Concat([]ir.Value{predicate}, operands)...)
}

// Switch returns the results of the branch of a number, an integer of rank 0 that is clamped to those of
// the branches (JAX's switch). Branches are as in [Cond]. It adds a tree of them: a run tests
// ⌈log₂ branches⌉ conditions.
func Switch(b *ir.Builder, number ir.Value, operands []ir.Value, branches ...Branch) []ir.Value {
	const op ir.Op = "switch"
	if !b.Require(op, "branch", len(branches) > 0) || !b.Require(op, "number", number.Valid()) {
		return make([]ir.Value, 1)
	}
	if t := number.Type(); !t.DType.IsInteger() || len(t.Shape) > 0 {
		b.Failf(op, []ir.Value{number}, ir.DTypef("the number is %s, not an integer of rank 0", t))
		return make([]ir.Value, 1)
	}
	if !b.Require(op, "branch", !slices.ContainsFunc(branches, func(f Branch) bool { return f == nil })) {
		return make([]ir.Value, 1)
	}
	if len(branches) == 1 {
		return branches[0](b, operands)
	}
	number = wide(b, number) // 8 and 16 bits may not represent all branches
	return switchTree(b, slices.Concat([]ir.Value{number}, operands), 0, branches)
}

// switchTree runs one of the branches, which are numbered from first on.
func switchTree(b *ir.Builder, in []ir.Value, first int, branches []Branch) []ir.Value {
	if len(branches) == 1 {
		return branches[0](b, in[1:])
	}
	half := len(branches) / 2
	part := func(first int, branches []Branch) Branch {
		return func(b *ir.Builder, in []ir.Value) []ir.Value { return switchTree(b, in, first, branches) }
	}
	low := Lt(b, in[0], ConstLike(b, in[0], float64(first+half)))
	return Cond(b, low, in, part(first, branches[:half]), part(first+half, branches[half:]))
}

func inferCond(n *ir.Node) ([]ir.Type, error) {
	if len(n.Inputs()) == 0 || !n.Input(0).Type().Equal(ir.TypeOf(ir.Bool)) {
		return nil, ir.DTypef("the predicate is %s, not bool[]", n.Input(0).Type())
	}
	var out []ir.Type
	for i, g := range n.Subgraphs() {
		if err := checkClosed(g, n.InTypes()[1:]); err != nil {
			return nil, err
		}
		types := outputTypes(g)
		if i == 0 {
			out = types
			continue
		}
		if len(types) != len(out) {
			return nil, ir.Errorf(ir.ErrGraph, "the graphs return %d and %d values", len(out), len(types))
		}
		for k, t := range types {
			if !t.Equal(out[k]) {
				return nil, ir.Shapef("result %d is %s of one graph and %s of the other", k, out[k], t)
			}
		}
	}
	return out, nil
}

// union is the elementwise or of two lists.
func union(x, y []bool) []bool {
	out := slices.Clone(x)
	for i := range out {
		out[i] = out[i] || y[i]
	}
	return out
}

// batchCond batches both branches. If the predicate is batched, both are computed and each
// member selects its own.
func batchCond(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	batched := marked(axes[1:])
	operands := frontAxes(b, in, axes)
	branches := make([]*ir.Graph, 2)
	want := make([]bool, n.NumResults())
	for i := range want {
		want[i] = axes[0] >= 0
	}
	for _, g := range n.Subgraphs() {
		_, out := batchedGraph(b, g, batched, size, nil)
		want = union(want, out)
	}
	for k, g := range n.Subgraphs() {
		branches[k], _ = batchedGraph(b, g, batched, size, want)
	}
	if axes[0] < 0 || b.Err() != nil {
		return b.AddNode(OpCond, nil, branches, operands...), axesAt(want)
	}
	whenTrue, whenFalse := b.Splice(branches[0], operands[1:]), b.Splice(branches[1], operands[1:])
	out := make([]ir.Value, len(whenTrue))
	for i, x := range whenTrue {
		predicate := BroadcastInDim(b, operands[0], x.Shape(), []int{0})
		out[i] = Select(b, predicate, x, whenFalse[i])
	}
	return out, axesAt(want)
}

// jvpCond makes one node of the branches and their derivatives. A result has a tangent if
// it has one in either branch.
func jvpCond(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	branches := n.Subgraphs()
	active := validity(t[1:])
	outActive := union(tangentOutputs(b, branches[0], active), tangentOutputs(b, branches[1], active))
	operands := slices.Concat(in[1:], pick(t[1:], where(active)))
	joint := make([]*ir.Graph, 2)
	for k, g := range branches {
		joint[k] = closed(b, g.Name(), ir.TypesOf(operands), func(s *ir.Builder, ports []ir.Value) []ir.Value {
			tangents := make([]ir.Value, len(active))
			for i, at := range where(active) {
				tangents[at] = ports[len(active)+i]
			}
			o, to := derive.JVP(s, g, ports[:len(active)], tangents)
			for _, i := range where(outActive) {
				to[i] = orZeros(s, to[i], o[i])
			}
			return slices.Concat(o, pick(to, where(outActive)))
		})
	}
	return takeJoint(b, out, b.AddNode(OpCond, nil, joint, slices.Concat(in[:1], operands)...), outActive)
}

// linearCond is the linear part of a cond. Its branches take the residuals and then the
// unknown operands.
type linearCond struct {
	branches   [2]*ir.Graph
	residuals  []ir.Value
	unknown    []int // indices of the unknown operands after the predicate
	outUnknown []bool
	outTypes   []ir.Type // of the unknown results
}

// splitCond is partial evaluation: it runs the known part in b and returns its results
// (the zero Value for unknown ones) and the linear part. in need not hold values for
// unknown operands.
func splitCond(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) ([]ir.Value, *linearCond) {
	out := make([]ir.Value, n.NumResults())
	if unknown[0] {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "the predicate depends on a tangent")))
		return out, nil
	}
	s := &condSplit{n: n, in: in[1:], unknown: unknown[1:], keep: keep}
	s.halve(b)
	if b.Err() != nil {
		return out, nil
	}
	s.assignSlots()
	s.runKnown(b, in[0], out)
	if b.Err() != nil {
		return out, nil
	}
	return out, s.linear(b)
}

// condSplit is the state of [splitCond]: the halves of both branches.
type condSplit struct {
	n          *ir.Node
	in         []ir.Value
	unknown    []bool
	keep       ir.Keeper
	h          [2]*derive.PartialResult
	outUnknown []bool
	// direct are the known operands that a linear branch uses directly.
	direct []int
	// slots are the types of the residuals that the known node returns. slot maps each
	// residual of each branch to its slot or, if negative, to operand -slot-1 of direct.
	slots     []ir.Type
	slot      [2][]int
	slotValue []ir.Value
}

// halve splits both branches, with the same unknown results.
func (s *condSplit) halve(b *ir.Builder) {
	var force []bool
	for range 2 {
		all := make([]bool, s.n.NumResults())
		for k, g := range s.n.Subgraphs() {
			h, err := derive.PartialEval(g, s.unknown, force, s.keep)
			if err != nil {
				b.Fail(err)
				return
			}
			s.h[k], all = h, union(all, h.OutUnknown)
		}
		force = all
	}
	s.outUnknown = force
	for k, h := range s.h {
		s.h[k] = keepResiduals(b, h, s.unknown, s.keep, nil, ir.N(1))
	}
}

// assignSlots lets residuals of the two branches share slots of the same type.
func (s *condSplit) assignSlots() {
	for k, h := range s.h {
		taken := make([]bool, len(s.slots))
		for r, port := range h.ResidualPort {
			if port >= 0 {
				at := slices.Index(s.direct, port)
				if at < 0 {
					at, s.direct = len(s.direct), append(s.direct, port)
				}
				s.slot[k] = append(s.slot[k], -at-1)
				continue
			}
			t := h.Linear.Ports()[r].Value.Type()
			at := 0
			for at < len(taken) && (taken[at] || !s.slots[at].Equal(t)) {
				at++
			}
			if at == len(taken) {
				s.slots, taken = append(s.slots, t), append(taken, false)
			}
			taken[at] = true
			s.slot[k] = append(s.slot[k], at)
		}
	}
}

// runKnown adds the known node: the known results, then the slots, with zeros for the
// slots that a branch does not use.
func (s *condSplit) runKnown(b *ir.Builder, predicate ir.Value, out []ir.Value) {
	known := where(not(s.outUnknown))
	if len(known)+len(s.slots) == 0 {
		return
	}
	operands := pick(s.in, where(not(s.unknown)))
	branches := make([]*ir.Graph, 2)
	for k, h := range s.h {
		branches[k] = closed(b, h.Known.Name(), ir.TypesOf(operands), func(sb *ir.Builder, in []ir.Value) []ir.Value {
			all := sb.Splice(h.Known, in)
			slots := make([]ir.Value, len(s.slots))
			for r, at := range s.slot[k] {
				if at >= 0 {
					slots[at] = all[len(known)+r]
				}
			}
			for i, t := range s.slots {
				slots[i] = orZerosOf(sb, slots[i], t)
			}
			return slices.Concat(all[:len(known)], slots)
		})
	}
	results := b.AddNode(OpCond, nil, branches, slices.Concat([]ir.Value{predicate}, operands)...)
	if b.Err() != nil {
		return
	}
	for i, at := range known {
		out[at] = results[i]
	}
	s.slotValue = results[len(known):]
}

// linear returns the linear branches with their residuals.
func (s *condSplit) linear(b *ir.Builder) *linearCond {
	l := &linearCond{
		residuals: slices.Concat(pick(s.in, s.direct), s.slotValue), unknown: where(s.unknown), outUnknown: s.outUnknown,
		outTypes: pick(s.n.Types(), where(s.outUnknown)),
	}
	unknownTypes := pick(s.n.InTypes()[1:], l.unknown)
	for k, h := range s.h {
		types := slices.Concat(ir.TypesOf(l.residuals), unknownTypes)
		l.branches[k] = closed(b, h.Linear.Name(), types, func(sb *ir.Builder, in []ir.Value) []ir.Value {
			var args []ir.Value
			for _, at := range s.slot[k] {
				if at < 0 {
					at = -at - 1
				} else {
					at += len(s.direct)
				}
				args = append(args, in[at])
			}
			return sb.Splice(h.Linear, slices.Concat(args, in[len(l.residuals):]))
		})
	}
	return l
}

func partialCond(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) ([]ir.Value, []bool) {
	out, l := splitCond(b, n, in, unknown, keep)
	if b.Err() != nil {
		return out, make([]bool, len(out))
	}
	if !slices.Contains(l.outUnknown, true) {
		return out, l.outUnknown
	}
	results := b.AddNode(OpCond, nil, l.branches[:], slices.Concat(in[:1], l.residuals, pick(in[1:], l.unknown))...)
	if b.Err() != nil {
		return out, make([]bool, len(out))
	}
	for i, at := range where(l.outUnknown) {
		out[at] = results[i]
	}
	return out, l.outUnknown
}

func transposeCond(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	back := make([]ir.Value, len(in))
	_, l := splitCond(b, n, in, linear, nil)
	if b.Err() != nil {
		return back
	}
	cts := pick(ct, where(l.outUnknown))
	given := where(validity(cts))
	operands := slices.Concat(l.residuals, pick(cts, given))
	branches := make([]*ir.Graph, 2)
	for k, g := range l.branches {
		branches[k] = closed(b, g.Name(), ir.TypesOf(operands), func(s *ir.Builder, ports []ir.Value) []ir.Value {
			c := make([]ir.Value, len(cts))
			for i, at := range given {
				c[at] = ports[len(l.residuals)+i]
			}
			args := slices.Concat(ports[:len(l.residuals)], make([]ir.Value, len(l.unknown)))
			out := derive.Transpose(s, g, not(validity(args)), args, c)[len(l.residuals):]
			for i, at := range l.unknown {
				out[i] = orZerosOf(s, out[i], n.InTypes()[1+at])
			}
			return out
		})
	}
	results := b.AddNode(OpCond, nil, branches, slices.Concat(in[:1], operands)...)
	if b.Err() != nil {
		return back
	}
	for i, at := range l.unknown {
		back[1+at] = results[i]
	}
	return back
}
