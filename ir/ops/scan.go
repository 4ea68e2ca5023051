package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// OpScan is a loop over the slices of its operands.
const OpScan ir.Op = "scan"

// ScanAttrs describe a loop. The first Consts operands are loop-invariant, the next
// Carries are the loop-carried state, and all others are sliced along the first axis,
// which has size Length, one slice for each step. With Reverse the steps start with the
// last slice.
type ScanAttrs struct {
	Consts, Carries int
	Length          ir.Dim
	Reverse         bool
}

// Visit shows the attributes.
func (a *ScanAttrs) Visit(v ir.AttrVisitor) {
	v.Int("consts", &a.Consts)
	v.Int("carries", &a.Carries)
	visitDim(v, "length", &a.Length)
	v.Bool("reverse", &a.Reverse)
}

func init() {
	define(&ir.Def{
		Op: OpScan,
		Doc: "Runs a graph once for each slice of its last operands (JAX's scan). The graph takes the constants, the carries and " +
			"the slices, and returns the new carries and any number of values. Results are the carries after the " +
			"last step, and the values of all steps, each stacked along a first axis in the order of the slices.",
		Constraints: numbered(
			"the graph takes as many operands as the node has, of their types; of each operand after the carries it takes a slice",
			"the first axis of each operand after the carries has the size length",
			"the first results of the graph have the types of the carries",
			"the graph has neither parameters nor states",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &ScanAttrs{} },
		Subgraphs: 1,
		Infer:     inferScan,
		Eval:      evalScan,
		JVP:       jvpScan,
		Partial:   partialScan,
		Transpose: transposeScan,
		Batch:     batchScan,
		Prune:     pruneScan,
		Lower:     &ir.ControlLowering{},
	})
}

// Loop describes a [Scan].
type Loop struct {
	// Consts are loop-invariant operands. The body cannot capture values of the
	// surrounding graph.
	Consts []ir.Value
	// Carries are the initial values of the loop-carried state.
	Carries []ir.Value
	// Xs are sliced along their first axis, one slice for each step.
	Xs []ir.Value
	// Length is the number of steps; it may be left out if there are Xs.
	Length  ir.Dim
	Reverse bool
	// Body is one step: it returns the next carries and the values to stack.
	Body func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value)
}

// Scan runs Body once for each slice of Xs, or Length times (JAX's scan). It returns the
// final carries and the values that the steps return, each stacked along a new first axis.
func Scan(b *ir.Builder, l Loop) (carries, ys []ir.Value) {
	if !b.Require(OpScan, "body", l.Body != nil) {
		return make([]ir.Value, len(l.Carries)), nil
	}
	a := &ScanAttrs{Consts: len(l.Consts), Carries: len(l.Carries), Length: l.Length, Reverse: l.Reverse}
	types := slices.Concat(ir.TypesOf(l.Consts), ir.TypesOf(l.Carries))
	for i, x := range l.Xs {
		if i == 0 && x.Rank() > 0 {
			a.Length = x.Dim(0)
		}
		types = append(types, ir.Type{DType: x.DType(), Shape: x.Shape()[min(1, x.Rank()):]})
	}
	body := closed(b, "step", types, func(s *ir.Builder, in []ir.Value) []ir.Value {
		consts, carries, xs := scanGroups(a, in)
		next, ys := l.Body(s, consts, carries, xs)
		return slices.Concat(next, ys)
	})
	out := b.AddNode(OpScan, a, []*ir.Graph{body}, slices.Concat(l.Consts, l.Carries, l.Xs)...)
	if b.Err() != nil {
		return make([]ir.Value, len(l.Carries)), nil
	}
	return out[:a.Carries], out[a.Carries:]
}

// scanGroups splits a list with an entry for each operand into constants, carries and
// sliced operands.
func scanGroups[T any](a *ScanAttrs, list []T) (consts, carries, xs []T) {
	return list[:a.Consts], list[a.Consts : a.Consts+a.Carries], list[a.Consts+a.Carries:]
}

func scanOf(n *ir.Node) (*ScanAttrs, *ir.Graph) { return n.Attrs().(*ScanAttrs), n.Subgraphs()[0] }

func inferScan(n *ir.Node) ([]ir.Type, error) {
	a, body := scanOf(n)
	if !a.Length.Valid() || a.Consts < 0 || a.Carries < 0 || a.Consts > len(n.Inputs()) || a.Carries > len(n.Inputs())-a.Consts {
		return nil, ir.Attrf("consts is %d and carries %d, of %d operands, and length %s: none must be negative, nor more than there are", a.Consts, a.Carries, len(n.Inputs()), a.Length)
	}
	types := n.InTypes()
	_, carries, xs := scanGroups(a, types)
	for i, x := range xs {
		if len(x.Shape) == 0 || x.Shape[0] != a.Length {
			return nil, ir.Shapef("operand %d is %s, whose first axis is not of size %s, length", a.Consts+a.Carries+i, x, a.Length)
		}
		xs[i].Shape = x.Shape[1:]
	}
	if err := checkClosed(body, types); err != nil {
		return nil, err
	}
	out := outputTypes(body)
	if len(out) < a.Carries {
		return nil, ir.Errorf(ir.ErrGraph, "the graph returns %d values for %d carries", len(out), a.Carries)
	}
	for i, c := range carries {
		if !out[i].Equal(c) {
			return nil, ir.Shapef("carry %d is %s before a step and %s after it", i, c, out[i])
		}
	}
	for i := a.Carries; i < len(out); i++ {
		out[i].Shape = slices.Concat(ir.Shape{a.Length}, out[i].Shape)
	}
	return out, nil
}

func evalScan(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, body := scanOf(n)
	length, _ := a.Length.Const()
	consts, carries, xs := scanGroups(a, in)
	ys := make([]*ir.Array, n.NumResults()-a.Carries)
	for i := range ys {
		var err error
		if ys[i], err = resultArray(n, a.Carries+i); err != nil {
			return nil, err
		}
	}
	for step := range length {
		if a.Reverse {
			step = length - 1 - step
		}
		args := slices.Concat(consts, carries)
		for _, x := range xs {
			args = append(args, sliceOf(x, step))
		}
		out, err := c.Call(body, args)
		if err != nil {
			return nil, err
		}
		carries = out[:a.Carries]
		for i, y := range out[a.Carries:] {
			for e := range y.Len() {
				copyElement(ys[i], step*y.Len()+e, y, e)
			}
		}
	}
	return slices.Concat(carries, ys), nil
}

// sliceOf returns slice i of x along the first axis.
func sliceOf(x *ir.Array, i int) *ir.Array {
	out := ir.NewArray(x.DType, x.Dims[1:]...)
	for e := range out.Len() {
		copyElement(out, e, x, i*out.Len()+e)
	}
	return out
}

// batchScan batches the body. The batch axis comes first in the body, so it is second,
// after the step axis, in sliced and stacked values.
func batchScan(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a, body := scanOf(n)
	batched := marked(axes)
	carries := batched[a.Consts : a.Consts+a.Carries]
	outBatched := settle(carries, func() []bool {
		_, out := batchedGraph(b, body, batched, size, nil)
		return slices.Clone(out)
	})
	step, _ := batchedGraph(b, body, batched, size, outBatched)
	operands := slices.Clone(in)
	for i := range in {
		switch {
		case !batched[i]:
		case i < a.Consts+a.Carries:
			operands[i] = BatchAt(b, in[i], axes[i], 0, size)
		default:
			operands[i] = MoveAxis(b, in[i], axes[i], 1)
		}
	}
	attrs := *a
	out := b.AddNode(OpScan, &attrs, []*ir.Graph{step}, operands...)
	at := axesAt(outBatched)
	for i := a.Carries; i < len(at); i++ {
		if at[i] == 0 {
			at[i] = 1
		}
	}
	return out, at
}

// jvpScan makes one loop of the node and its derivative: each group of operands and
// results is followed by its tangents. A carry has a tangent if its initial value or its
// value after a step has one.
func jvpScan(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a, body := scanOf(n)
	active := validity(t)
	outActive := settle(active[a.Consts:a.Consts+a.Carries], func() []bool { return tangentOutputs(b, body, active) })
	inGroups, outGroups := []int{a.Consts, a.Carries, len(in) - a.Consts - a.Carries}, []int{a.Carries, len(out) - a.Carries}
	filled := make([]ir.Value, len(in))
	for _, i := range where(active) {
		filled[i] = orZeros(b, t[i], in[i])
	}
	types := portTypes(body)
	joint := closed(b, body.Name(), weave(inGroups, active, types, types), func(s *ir.Builder, ports []ir.Value) []ir.Value {
		values, tangents := unweave(inGroups, active, ports)
		o, to := derive.JVP(s, body, values, tangents)
		for _, i := range where(outActive) {
			to[i] = orZeros(s, to[i], o[i])
		}
		return weave(outGroups, outActive, o, to)
	})
	consts, carries, _ := scanGroups(a, active)
	attrs := &ScanAttrs{
		Consts: a.Consts + len(where(consts)), Carries: a.Carries + len(where(carries)), Length: a.Length, Reverse: a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{joint}, weave(inGroups, active, in, filled)...)
	if b.Err() != nil {
		return make([]ir.Value, len(out))
	}
	values, tangents := unweave(outGroups, outActive, results)
	copy(out, values) // the loop computes the primal results too
	return tangents
}

// weave appends to the values of each group their tangents, if there.
func weave[T any](groups []int, there []bool, values, tangents []T) []T {
	var out []T
	start := 0
	for _, size := range groups {
		end := start + size
		out = append(out, values[start:end]...)
		out = append(out, pick(tangents[start:end], where(there[start:end]))...)
		start = end
	}
	return out
}

// unweave is the inverse of [weave].
func unweave(groups []int, there []bool, list []ir.Value) (values, tangents []ir.Value) {
	tangents = make([]ir.Value, len(there))
	start := 0
	for _, size := range groups {
		values = append(values, list[:size]...)
		list = list[size:]
		for _, i := range where(there[start : start+size]) {
			tangents[start+i], list = list[0], list[1:]
		}
		start += size
	}
	return values, tangents
}

// settle iterates outputs to a fixed point: a property of a carry after a step holds
// before the next one. It returns the property of each output.
func settle(carries []bool, outputs func() []bool) []bool {
	for {
		out := outputs()
		same := true
		for i := range carries {
			if out[i] && !carries[i] {
				carries[i], same = true, false
			}
			out[i] = carries[i]
		}
		if same {
			return out
		}
	}
}

func partialScan(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) ([]ir.Value, []bool) {
	a, _ := scanOf(n)
	outUnknown := make([]bool, n.NumResults())
	out, l := splitScan(b, n, in, unknown, keep)
	if b.Err() != nil || len(l.body.Outputs()) == 0 { // nothing is unknown
		return out, outUnknown
	}
	consts, carries, xs := scanGroups(a, in)
	attrs := &ScanAttrs{
		Consts: len(l.fixed) + len(l.consts), Carries: len(l.carries), Length: a.Length, Reverse: a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{l.body},
		slices.Concat(l.fixed, pick(consts, l.consts), pick(carries, l.carries), l.stepped, pick(xs, l.xs))...)
	if b.Err() != nil {
		return out, outUnknown
	}
	for i, c := range l.outCarries {
		out[c], outUnknown[c] = results[i], true
	}
	for i, y := range l.outYs {
		out[a.Carries+y], outUnknown[a.Carries+y] = results[len(l.carries)+i], true
	}
	return out, outUnknown
}

// transposeScan runs the steps in reverse order. Its carries are the cotangents of the
// carries and the accumulated cotangents of the linear constants; cotangents of slices are
// stacked.
func transposeScan(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	a, _ := scanOf(n)
	back := make([]ir.Value, len(in))
	_, l := splitScan(b, n, in, linear, nil)
	if b.Err() != nil {
		return back
	}
	cts := pick(ct[a.Carries:], l.outYs)
	given := where(validity(cts)) // zero cotangents need not be stacked
	var xsActive []int
	body := closed(b, l.body.Name(),
		slices.Concat(ir.TypesOf(l.fixed), l.carryTypes, l.constTypes, l.steppedTypes(), pick(l.yTypes, given)),
		func(s *ir.Builder, ports []ir.Value) []ir.Value {
			var out []ir.Value
			out, xsActive = l.transposedStep(s, ports, given)
			return out
		})
	if b.Err() != nil || len(body.Outputs()) == 0 {
		return back
	}
	operands := slices.Clone(l.fixed)
	for i, c := range l.carries {
		operands = append(operands, orZerosOf(b, ct[c], l.carryTypes[i]))
	}
	for _, t := range l.constTypes {
		operands = append(operands, Zeros(b, t.DType, t.Shape...))
	}
	attrs := &ScanAttrs{
		Consts: len(l.fixed), Carries: len(l.carries) + len(l.consts), Length: a.Length, Reverse: !a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{body}, slices.Concat(operands, l.stepped, pick(cts, given))...)
	if b.Err() != nil {
		return back
	}
	for i, c := range l.carries {
		back[a.Consts+c] = results[i]
	}
	for i, c := range l.consts {
		back[c] = results[len(l.carries)+i]
	}
	for i, x := range xsActive {
		back[a.Consts+a.Carries+l.xs[x]] = results[attrs.Carries+i]
	}
	return back
}

// transposedStep is a step of the transposed loop. Its ports are the loop-invariant
// residuals, the cotangents of carries, the accumulated cotangents of constants, the
// residuals of the step and the given cotangents of stacked values. It returns the next
// carries, the next sums, and the nonzero cotangents of slices with their indices.
func (l *linearScan) transposedStep(b *ir.Builder, ports []ir.Value, given []int) ([]ir.Value, []int) {
	next := func(n int) []ir.Value {
		list := ports[:n]
		ports = ports[n:]
		return list
	}
	fixed, carries := next(len(l.fixed)), next(len(l.carries))
	sums, stepped := next(len(l.consts)), next(len(l.stepped))
	ys := make([]ir.Value, len(l.outYs))
	for i, y := range given {
		ys[y] = ports[i]
	}
	none := func(n int) []ir.Value { return make([]ir.Value, n) }
	in := slices.Concat(fixed, none(len(l.consts)+len(l.carries)), stepped, none(len(l.xs)))
	back := derive.Transpose(b, l.body, not(validity(in)), in, slices.Concat(carries, ys))
	if b.Err() != nil {
		return nil, nil
	}
	back = back[len(fixed):]
	out := make([]ir.Value, 0, len(back))
	for i, c := range back[len(l.consts) : len(l.consts)+len(l.carries)] {
		out = append(out, orZerosOf(b, c, l.carryTypes[i]))
	}
	for i, c := range back[:len(l.consts)] {
		out = append(out, addTangents(b, sums[i], c))
	}
	xs := back[len(l.consts)+len(l.carries)+len(stepped):]
	active := where(validity(xs))
	return append(out, pick(xs, active)...), active
}

func (l *linearScan) steppedTypes() []ir.Type {
	out := ir.TypesOf(l.stepped)
	for i, t := range out {
		out[i].Shape = t.Shape[1:]
	}
	return out
}

// orZerosOf returns v, or zeros of type t if v is the zero Value.
func orZerosOf(b *ir.Builder, v ir.Value, t ir.Type) ir.Value {
	if v.Valid() {
		return v
	}
	return Zeros(b, t.DType, t.Shape...)
}

// linearScan is the linear part of a loop. Its body takes the loop-invariant residuals,
// the unknown constants, the unknown carries, the residuals of the step and the unknown
// slices.
type linearScan struct {
	body               *ir.Graph
	fixed, stepped     []ir.Value // residuals: loop-invariant ones, stacked ones
	consts, carries    []int      // the unknown operands of each group,
	xs                 []int      // by their index in the group
	outCarries, outYs  []int      // the unknown results of each group
	unknown            []bool     // by operand
	constTypes, xTypes []ir.Type  // types of the unknown ones in the body
	carryTypes, yTypes []ir.Type
}

// splitScan is partial evaluation: it runs the known part of a loop in b and returns its
// results (the zero Value for unknown ones) and the linear part. in need not hold values
// for unknown operands. Residuals of the linear part are hoisted before the loop if
// invariant and stacked otherwise. keep, if not nil, chooses the residuals to stack.
func splitScan(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) (out []ir.Value, l *linearScan) {
	a, body := scanOf(n)
	out = make([]ir.Value, n.NumResults())
	unknown = slices.Clone(unknown)
	var h *derive.PartialResult
	carries := unknown[a.Consts : a.Consts+a.Carries]
	outUnknown := settle(carries, func() []bool {
		force := make([]bool, n.NumResults())
		copy(force, carries)
		var err error
		if h, err = derive.PartialEval(body, unknown, force, keep); err != nil {
			b.Fail(err)
			return force
		}
		return slices.Clone(h.OutUnknown)
	})
	if b.Err() != nil {
		return out, nil
	}
	s := &scanSplit{a: a, body: body, h: h, in: in, unknown: unknown, outUnknown: outUnknown}
	s.h = keepResiduals(b, h, unknown, keep, s.varying(), a.Length)
	s.lean = keep != nil || hasCheckpoint(s.h.Linear)
	if b.Err() != nil {
		return out, nil
	}
	s.sortResiduals()
	s.runKnown(b, out)
	return out, s.linear(b)
}

// scanSplit is the state of [splitScan]: the halves of a body.
type scanSplit struct {
	a                   *ScanAttrs
	body                *ir.Graph
	h                   *derive.PartialResult
	in                  []ir.Value
	unknown, outUnknown []bool
	lean                bool  // prefer memory over time
	invariant           []int // loop-invariant residuals,
	stacked             []int // varying ones, to be stacked,
	carried             []int // carries before a step,
	sliced              []int // and slices of operands
	values              map[int]ir.Value
}

// hasCheckpoint reports whether a part of g is rematerialised.
func hasCheckpoint(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return n.Op() == OpCheckpoint || slices.ContainsFunc(n.Subgraphs(), hasCheckpoint)
	})
}

// sortResiduals classifies the residuals.
func (s *scanSplit) sortResiduals() {
	s.values = map[int]ir.Value{}
	first := len(s.h.Known.Outputs()) - s.h.Residuals()
	varies := s.varying()
	for r, port := range s.h.ResidualPort {
		switch {
		case port >= s.a.Consts+s.a.Carries:
			s.sliced, s.values[r] = append(s.sliced, r), s.in[port]
		case port >= s.a.Consts && !s.lean:
			s.carried = append(s.carried, r)
		case varies[s.h.Known.Outputs()[first+r].Value.Node().ID()]:
			s.stacked = append(s.stacked, r)
		default:
			s.invariant = append(s.invariant, r)
		}
	}
}

// varying reports which nodes of the known half depend on the step.
func (s *scanSplit) varying() []bool {
	known := s.h.Known
	varies := make([]bool, len(known.Nodes()))
	constants := len(where(not(s.unknown[:s.a.Consts])))
	for _, p := range known.Ports()[constants:] {
		varies[p.Value.Node().ID()] = true
	}
	for _, n := range known.Nodes() {
		for _, v := range n.Inputs() {
			varies[n.ID()] = varies[n.ID()] || varies[v.Node().ID()]
		}
	}
	return varies
}

// runKnown computes the known results and the residuals.
func (s *scanSplit) runKnown(b *ir.Builder, out []ir.Value) {
	known, a := s.h.Known, s.a
	first := len(known.Outputs()) - s.h.Residuals()
	operands := pick(s.in, where(not(s.unknown)))
	cut := func(at []int) *ir.Graph {
		return closed(b, known.Name(), portTypes(known), func(sb *ir.Builder, in []ir.Value) []ir.Value {
			return splicePart(sb, known, in, at)
		})
	}
	residualOutputs := func(list []int) []int {
		var at []int
		for _, r := range list {
			at = append(at, first+r)
		}
		return at
	}
	if len(s.invariant) > 0 {
		at := residualOutputs(s.invariant)
		for i, v := range splicePart(b, known, operands, at) {
			s.values[s.invariant[i]] = v
		}
	}
	at := slices.Concat(counting(0, first), residualOutputs(s.stacked))
	knownCarries := where(not(s.unknown[a.Consts : a.Consts+a.Carries]))
	history := map[int]int{} // from a carry residual to the result that stacks it
	for _, r := range s.carried {
		carry := slices.Index(knownCarries, s.h.ResidualPort[r]-a.Consts)
		if history[r] = s.keptAs(carry, len(knownCarries), at); history[r] < 0 {
			history[r], at = len(at), append(at, carry)
		}
	}
	if len(at) == 0 || b.Err() != nil {
		return
	}
	attrs := &ScanAttrs{
		Consts: len(where(not(s.unknown[:a.Consts]))), Carries: len(knownCarries), Length: a.Length, Reverse: a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{cut(at)}, operands...)
	if b.Err() != nil {
		return
	}
	for i, r := range where(not(s.outUnknown)) {
		out[r] = results[i]
	}
	for i, r := range s.stacked {
		s.values[r] = results[first+i]
	}
	for _, r := range s.carried {
		s.values[r] = s.before(b, s.in[s.h.ResidualPort[r]], results[history[r]])
	}
}

// keptAs returns the index of the known half's output, among those at at, that stacks a
// carry after each step, or -1.
func (s *scanSplit) keptAs(carry, carries int, at []int) int {
	outputs := s.h.Known.Outputs()
	for i := carries; i < len(at); i++ {
		if outputs[at[i]].Value == outputs[carry].Value {
			return i
		}
	}
	return -1
}

// before returns a carry before each step, stacked, from its initial value and its values
// after each step. This copies the stack once, where stacking it in the loop as well would
// copy in every step; it takes the memory of the stack once more.
func (s *scanSplit) before(b *ir.Builder, first, after ir.Value) ir.Value {
	first = ExpandDims(b, first, 0)
	if s.a.Reverse {
		return SliceAxis(b, Concatenate(b, 0, after, first), 0, ir.N(1), s.a.Length)
	}
	return SliceAxis(b, Concatenate(b, 0, first, after), 0, ir.N(0), s.a.Length)
}

// linear returns the linear half with its residuals.
func (s *scanSplit) linear(b *ir.Builder) *linearScan {
	a, types := s.a, portTypes(s.body)
	unknownConsts, unknownCarries, unknownXs := scanGroups(a, s.unknown)
	consts, carries, xs := scanGroups(a, types)
	out := outputTypes(s.body)
	l := &linearScan{
		consts: where(unknownConsts), carries: where(unknownCarries), xs: where(unknownXs), unknown: s.unknown,
		outCarries: where(s.outUnknown[:a.Carries]), outYs: where(s.outUnknown[a.Carries:]),
	}
	l.constTypes, l.carryTypes, l.xTypes = pick(consts, l.consts), pick(carries, l.carries), pick(xs, l.xs)
	l.yTypes = pick(out[a.Carries:], l.outYs)
	stepped := slices.Concat(s.stacked, s.carried, s.sliced)
	residualTypes := portTypes(s.h.Linear)[:s.h.Residuals()]
	for _, r := range s.invariant {
		l.fixed = append(l.fixed, s.values[r])
	}
	for _, r := range stepped {
		l.stepped = append(l.stepped, s.values[r])
	}
	ports := slices.Concat(pick(residualTypes, s.invariant), l.constTypes, l.carryTypes, pick(residualTypes, stepped), l.xTypes)
	l.body = closed(b, s.h.Linear.Name(), ports, func(sb *ir.Builder, in []ir.Value) []ir.Value {
		residuals := make([]ir.Value, s.h.Residuals())
		for i, r := range s.invariant {
			residuals[r] = in[i]
		}
		mid := in[len(s.invariant):]
		for i, r := range stepped {
			residuals[r] = mid[len(l.consts)+len(l.carries)+i]
		}
		return sb.Splice(s.h.Linear, slices.Concat(residuals,
			mid[:len(l.consts)+len(l.carries)], mid[len(l.consts)+len(l.carries)+len(stepped):]))
	})
	return l
}
