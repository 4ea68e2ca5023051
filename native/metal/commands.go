//go:build cgo && (darwin || linux)

package metal

import (
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/ir/loop"
)

// part is a command list that becomes one command buffer.
type part struct {
	list   *driver.List
	kernel string // its only kernel, in debug mode
	// going, if its buffer is set, is the condition of a loop that ends with the part: if
	// it is not 0 after the part, the run continues at part back.
	going driver.Place
	back  int
	// writes is set if a command writes a parameter or a state, stop if the host checks for
	// errors after the part.
	writes, stop bool
	time         time.Duration // estimated
}

// loops reports whether a loop of unknown trip count ends with the part.
func (p *part) loops() bool { return p.going.Buffer.Bytes != nil }

// variant is the command list for a set of fetched outputs.
type variant struct {
	reads []int
	parts []part
}

// commands returns the parts of a run that fetches the outputs reads: one except for long
// entries and loops. They are cached in the stage until the time limit changes.
func (s *stage) commands(reads []int) []part {
	if s.limit != s.e.p.limit {
		s.releaseCommands()
		s.limit = s.e.p.limit
	}
	for _, v := range s.made {
		if slices.Equal(v.reads, reads) {
			return v.parts
		}
	}
	r := recorder{s: s}
	r.steps(s.e.spec.Steps, nil)
	for _, i := range reads {
		if slot := s.e.outputs[i]; slot.Bytes > 0 && !s.inStage(i) { // Metal copies no empty value
			r.copy(s.result(i), s.at(slot.Buffer, slot.Offset), slot.Bytes, false)
		}
	}
	s.made = append(s.made, variant{slices.Clone(reads), r.parts})
	return r.parts
}

// recorder records the steps of a plan into parts.
type recorder struct {
	s     *stage
	parts []part
	full  bool // the last part is complete
	wrote bool // a command writes a parameter or a state
}

// partsPerBatch is the number of command buffers of a long entry between checks for errors.
// A queue of Metal has at most 64.
const partsPerBatch = 8

// command holds what decides the part of a command.
type command struct {
	kernel string // "" for a copy
	time   time.Duration
	writes bool // a parameter or a state
}

// list returns the list for the next command. In a long entry, the first command that
// writes a parameter or a state starts a part that is committed only after everything
// before it has succeeded, so that an earlier failure changes nothing.
func (r *recorder) list(c command) *driver.List {
	n, p := len(r.parts), r.s.e.p
	commits := c.writes && !r.wrote && r.s.e.long()
	if n == 0 || r.full || commits || p.debug || r.parts[n-1].time+c.time > p.limit || r.parts[n-1].list.Len() >= longEntry {
		if n > 0 && r.s.e.long() {
			r.parts[n-1].stop = commits || n%partsPerBatch == 0
		}
		next := part{list: driver.NewList(r.s.e.spec.Name)}
		if p.debug {
			next.kernel = c.kernel
		}
		r.parts, r.full = append(r.parts, next), false
	}
	last := &r.parts[len(r.parts)-1]
	last.writes = last.writes || c.writes
	last.time += c.time
	r.wrote = r.wrote || c.writes
	return last.list
}

// maxCopyBytes bounds one copy command, so that it keeps to the time limit.
const maxCopyBytes = 1 << 30

func (r *recorder) copy(to, from driver.Place, bytes int, writes bool) {
	for bytes > 0 {
		n := min(bytes, maxCopyBytes)
		r.list(command{"", copyTime(n), writes}).Copy(to, from, n)
		to.Offset, from.Offset, bytes = to.Offset+n, from.Offset+n, bytes-n
	}
}

// steps records steps; counters holds the iteration counts of the enclosing repeats,
// outermost first.
func (r *recorder) steps(steps []plan.Step, counters []int) {
	for _, step := range steps {
		switch s := step.(type) {
		case *plan.Dispatch:
			r.dispatch(s, counters)
		case *plan.Copy:
			r.copy(r.s.at(s.Dst, s.DstOffset), r.s.at(s.Src, s.SrcOffset), s.Bytes, r.persists(s.Dst))
		case *plan.Repeat:
			inner := append(slices.Clone(counters), 0)
			for i := range s.Count {
				inner[len(counters)] = i
				r.steps(s.Iteration(i), inner)
			}
		case *plan.While:
			r.while(s, counters)
		}
	}
}

// roundsPerCheck is the number of iterations of a loop of unknown trip count between checks
// of its condition, since a check drains the GPU. A superfluous iteration costs a few
// dispatches with empty grids.
const roundsPerCheck = 8

// while records iterations of a loop whose last part jumps back to the first. A loop around
// another is checked after each iteration.
func (r *recorder) while(s *plan.While, counters []int) {
	first, inner := len(r.parts), append(slices.Clone(counters), 0)
	r.full = true
	for range roundsPerCheck {
		r.steps(s.Steps, inner)
		if plan.HasWhile(s.Steps) {
			break
		}
	}
	last := &r.parts[len(r.parts)-1]
	if last.loops() { // an inner loop ends there
		r.parts = append(r.parts, part{list: driver.NewList(r.s.e.spec.Name)})
		last = &r.parts[len(r.parts)-1]
	}
	last.going, last.back = r.s.at(s.Condition.Buffer, s.Condition.Offset), first
	r.full = true
}

func (r *recorder) dispatch(d *plan.Dispatch, counters []int) {
	p := r.s.e.p
	k := &p.plan.Kernels[d.Kernel]
	c := command{kernel: k.Name}
	out := driver.Dispatch{Pipeline: p.pipelines[d.Kernel], Threads: k.Workgroup, Counters: counters[:k.Counters], Piece: p.cuts[d.Kernel]}
	for i, b := range d.Bindings {
		out.Bindings = append(out.Bindings, r.s.at(b.Buffer, b.Offset))
		c.writes = c.writes || k.Storage[i] != loop.Read && r.persists(b.Buffer)
	}
	if k.ScalarBytes > 0 {
		out.Bindings = append(out.Bindings, driver.Place{Buffer: r.s.scalars})
	}
	if d.Grid != nil {
		out.Grid = r.s.at(d.Grid.Buffer, d.Grid.Offset)
	}
	pieces := []piece{{groups: d.Groups}}
	if out.Piece {
		pieces = cut(p.works[d.Kernel], pieces[0], p.limit)
	}
	for _, x := range pieces {
		out.First, out.Groups = x.first, x.groups
		c.time = p.works[d.Kernel].of(x.groups)
		r.list(c).Dispatch(out)
	}
}

// persists reports whether a buffer holds parameters and states.
func (r *recorder) persists(buffer int) bool {
	return r.s.e.p.plan.Buffers[buffer].Kind == plan.StateBuffer
}
