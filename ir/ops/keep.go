package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// keepResiduals lets a keeper choose the residuals of the halves of a graph that runs
// steps times. It returns halves whose linear one recomputes, under a checkpoint, what is
// not kept. Nodes that do not vary, by ID of the known half, are always kept; nil: all
// vary. If everything needed is kept, it returns h.
func keepResiduals(b *ir.Builder, h *derive.PartialResult, unknown []bool, keep ir.Keeper, varying []bool, steps ir.Dim) *derive.PartialResult {
	if keep == nil || h.Residuals() == 0 || b.Err() != nil {
		return h
	}
	values := outputValues(h.Known)
	needed := values[len(values)-h.Residuals():]
	chosen := slices.DeleteFunc(slices.Clone(needed), func(v ir.Value) bool { return varying != nil && !varying[v.Node().ID()] })
	kept, err := keep(h.Known, chosen, steps)
	if err != nil || kept == nil {
		b.Fail(err)
		return h
	}
	kept = slices.Clone(kept)
	for i, v := range varying {
		kept[i] = kept[i] || !v
	}
	r := &restart{h: h, known: values[:len(values)-h.Residuals()], needed: needed}
	r.walk(kept)
	return r.halves(b, where(not(unknown)))
}

// restart splits halves again: the known one returns the values that the needed ones are
// recomputed from, and the linear one recomputes these.
type restart struct {
	h             *derive.PartialResult
	known, needed []ir.Value // outputs of the known half: results and residuals
	from          []ir.Value // ports of the known half and kept values
	again         []bool     // recomputed, by node of the known half
}

// walk finds the nodes to recompute, and their inputs.
func (r *restart) walk(kept []bool) {
	r.again = make([]bool, len(r.h.Known.Nodes()))
	for stack := slices.Clone(r.needed); len(stack) > 0; {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch n := v.Node(); {
		case n.Op() == ir.OpPort || kept[n.ID()]:
			if !slices.Contains(r.from, v) {
				r.from = append(r.from, v)
			}
		case !r.again[n.ID()]:
			r.again[n.ID()] = true
			stack = append(stack, n.Inputs()...)
		}
	}
}

// halves returns the new halves; known are the known ports of the whole graph.
func (r *restart) halves(b *ir.Builder, known []int) *derive.PartialResult {
	h := &derive.PartialResult{OutUnknown: r.h.OutUnknown}
	for _, v := range r.from {
		port := slices.IndexFunc(r.h.Known.Ports(), func(p ir.Port) bool { return p.Value == v })
		if port >= 0 {
			port = known[port]
		}
		h.ResidualPort = append(h.ResidualPort, port)
	}
	h.Known = closed(b, r.h.Known.Name(), portTypes(r.h.Known), func(s *ir.Builder, in []ir.Value) []ir.Value {
		return spliceValues(s, r.h.Known, in, slices.Concat(r.known, r.from))
	})
	types := slices.Concat(typesOf(r.from), portTypes(r.h.Linear)[r.h.Residuals():])
	h.Linear = closed(b, r.h.Linear.Name(), types, func(s *ir.Builder, in []ir.Value) []ir.Value {
		return Checkpoint(s, closed(s, r.h.Linear.Name(), types, r.linear), len(r.from), in...)
	})
	return h
}

// linear recomputes the needed values and runs the linear half.
func (r *restart) linear(b *ir.Builder, in []ir.Value) []ir.Value {
	m := ir.NewMapping(r.h.Known)
	for i, v := range r.from {
		m.Set(v, in[i])
	}
	for _, n := range r.h.Known.Nodes() {
		if r.again[n.ID()] {
			m.SetAll(n, b.Copy(n, m.Inputs(n)))
		}
	}
	args := make([]ir.Value, len(r.needed))
	for i, v := range r.needed {
		args[i] = m.Get(v)
	}
	return b.Splice(r.h.Linear, slices.Concat(args, in[len(r.from):]))
}
