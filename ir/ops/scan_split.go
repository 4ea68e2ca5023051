package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

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
// invariant and stacked otherwise. keep, if not nil, chooses what is stacked.
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
