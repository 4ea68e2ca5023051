//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/ir/loop"
)

// order computes the dependencies between the steps of a graph from the memory that they
// read and write; independent steps may run concurrently. A training step of a GPT with 4
// blocks of width 128 takes 755 µs so and 889 µs serially, one with 6 blocks of width 384 in
// bf16 5.75 ms and 6.09 ms (H200).
type order struct {
	status int           // the buffer with the status word, or -1
	steps  []ordered     // the steps captured so far
	roots  []driver.Node // the nodes before all steps
}

// ordered is a captured step.
type ordered struct {
	regions []region
	nodes   []driver.Node // its last nodes
	after   []uint64      // bit set of the steps that it depends on, transitively
}

// region is a part of a buffer that a step accesses.
type region struct {
	buffer, from, to int
	access           loop.Access
}

// overlaps reports whether two regions share memory.
func (a region) overlaps(b region) bool {
	return a.buffer == b.buffer && a.from < b.to && b.from < a.to
}

// exchanged stands for the ranks in the regions of collectives, which keep their order.
const exchanged = -2

// solved stands for the memory of cuSOLVER in the regions of factorisations, which keep their order.
const solved = -3

// orders reports whether the steps of an entry are ordered by dependencies: unconditional dispatches and calls only, also in
// loops of known trip count, at most [plan.MaxOrdered] in all iterations.
func orders(e *plan.Entry) bool {
	for s := range plan.Each(e.Steps) {
		switch s := s.(type) {
		case *plan.Call, *plan.Repeat:
		case *plan.Dispatch:
			if s.Grid != nil {
				return false
			}
		default:
			return false
		}
	}
	return e.Dispatches() <= plan.MaxOrdered
}

// iterated is a dispatch or a call in an iteration of the loops around it.
type iterated struct {
	plan.Step
	counters []int // the iterations, of the outermost loop first
}

// unroll appends the steps of all iterations of loops to out.
func unroll(out []iterated, steps []plan.Step, counters []int) []iterated {
	for _, step := range steps {
		loop, is := step.(*plan.Repeat)
		if !is {
			out = append(out, iterated{step, counters})
			continue
		}
		for i := range loop.Count {
			out = unroll(out, loop.Iteration(i), append(slices.Clone(counters), i))
		}
	}
	return out
}

// regionsOf returns the memory that a step accesses.
func regionsOf(p *plan.Plan, s plan.Step) (out []region) {
	add := func(b plan.Binding, a loop.Access) {
		out = append(out, region{b.Buffer, b.Offset, b.Offset + b.Bytes, a})
	}
	switch s := s.(type) {
	case *plan.Dispatch:
		for i, b := range s.Bindings {
			add(b, p.Kernels[s.Kernel].Storage[i])
		}
	case *plan.Call:
		for i, a := range p.Routines[s.Routine].Arrays() {
			access := loop.Read
			if a.Written {
				access = loop.ReadWrite
			}
			add(s.Bindings[i], access)
		}
		if isCollective(p.Routines[s.Routine]) {
			out = append(out, region{exchanged, 0, 1, loop.ReadWrite})
		}
		if isFactor(p.Routines[s.Routine]) {
			out = append(out, region{solved, 0, 1, loop.ReadWrite})
		}
	}
	return out
}

// conflict reports whether two accesses must keep their order. Atomic updates of the status
// word commute.
func (o *order) conflict(a, b region) bool {
	if !a.overlaps(b) || a.access == loop.Read && b.access == loop.Read {
		return false
	}
	return a.buffer != o.status || a.access != loop.Atomic || b.access != loop.Atomic
}

// next returns the direct dependencies of a step with the given regions, and all of its
// dependencies as a bit set.
func (o *order) next(regions []region) (waits []int, after []uint64) {
	after = make([]uint64, len(o.steps)/64+1)
	for i := len(o.steps) - 1; i >= 0; i-- {
		if after[i/64]>>(i%64)&1 == 1 || !o.anyConflict(o.steps[i].regions, regions) {
			continue
		}
		waits = append(waits, i)
		after[i/64] |= 1 << (i % 64)
		for k, bits := range o.steps[i].after {
			after[k] |= bits
		}
	}
	return waits, after
}

func (o *order) anyConflict(a, b []region) bool {
	return slices.ContainsFunc(a, func(x region) bool { return slices.ContainsFunc(b, func(y region) bool { return o.conflict(x, y) }) })
}

// last returns the steps on which no other depends.
func (o *order) last() (out []int) {
	after := make([]uint64, len(o.steps)/64+1)
	for _, s := range o.steps {
		for k, bits := range s.after {
			after[k] |= bits
		}
	}
	for i := range o.steps {
		if after[i/64]>>(i%64)&1 == 0 {
			out = append(out, i)
		}
	}
	return out
}

// nodes returns the last nodes of the steps. Without steps it returns the roots, or the nodes
// of the first step if there are none.
func (o *order) nodes(steps []int) []driver.Node {
	if len(steps) == 0 && len(o.roots) > 0 {
		return o.roots
	}
	if len(steps) == 0 {
		steps = []int{0}
	}
	var out []driver.Node
	for _, i := range steps {
		out = append(out, o.steps[i].nodes...)
	}
	return out
}

// ordered captures steps, each after its dependencies.
func (r *recorder) ordered(steps []iterated) error {
	o := &order{status: -1}
	if st := r.p.plan.Status; st != nil {
		o.status = st.Buffer
	}
	if len(steps) == 0 {
		return nil
	}
	var err error
	if o.roots, err = r.stream.Dependencies(); err != nil {
		return err
	}
	var priorities []int
	if r.p.device.HasPriorities() {
		priorities = prioritiesOf(r.p.plan, steps)
	}
	for i := range steps {
		s := ordered{regions: regionsOf(r.p.plan, steps[i].Step)}
		var waits []int
		waits, s.after = o.next(s.regions)
		if i > 0 {
			if err := r.stream.SetDependencies(o.nodes(waits)); err != nil {
				return err
			}
		}
		r.early = r.startsEarly(steps, i, waits)
		if err := r.plain([]plan.Step{steps[i].Step}, steps[i].counters); err != nil {
			return err
		}
		if s.nodes, err = r.stream.Dependencies(); err != nil {
			return err
		}
		for k := 0; priorities != nil && k < len(s.nodes); k++ {
			if err := r.stream.SetPriority(s.nodes[k], priorities[i]); err != nil {
				return err
			}
		}
		o.steps = append(o.steps, s)
	}
	r.early = false
	return r.stream.SetDependencies(o.nodes(o.last()))
}

// Priorities of kernels in a graph with collectives. A collective comes first, as other ranks wait for it.
// What comes after the last large one, updates above all, has the lowest and fills the processors that are free.
const (
	collectivePriority = -5
	normalPriority     = -2
	lastPriority       = 0
)

// largeCollective is the least number of bytes of a collective that takes longer than its latency.
const largeCollective = 1 << 20

// prioritiesOf returns the priority of each step, nil if there is no large collective.
func prioritiesOf(p *plan.Plan, steps []iterated) []int {
	out, last := make([]int, len(steps)), -1
	for i, s := range steps {
		out[i] = normalPriority
		if c, ok := s.Step.(*plan.Call); ok && isCollective(p.Routines[c.Routine]) {
			out[i] = collectivePriority
			if c.Bindings[0].Bytes >= largeCollective {
				last = i
			}
		}
	}
	if last < 0 {
		return nil
	}
	for i := last + 1; i < len(out); i++ {
		if out[i] == normalPriority {
			out[i] = lastPriority
		}
	}
	return out
}

// startsEarly reports whether a step may start before the one that it depends on has ended: both are
// kernels of ours, which wait themselves (programmatic dependent launch). What the other depends on has
// ended when it has.
func (r *recorder) startsEarly(steps []iterated, i int, waits []int) bool {
	return len(waits) == 1 && r.p.guards == nil && r.p.device.LaunchesEarly() && r.kernelWaits(steps[i].Step) && r.kernelWaits(steps[waits[0]].Step)
}

// kernelWaits reports whether a step is a kernel that waits for those before it.
func (r *recorder) kernelWaits(s plan.Step) bool {
	d, kernel := s.(*plan.Dispatch)
	return kernel && cudacpp.Waits(r.p.plan.Kernels[d.Kernel].Source)
}
