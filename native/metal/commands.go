//go:build cgo && (darwin || linux)

package metal

import (
	"slices"

	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native/metal/driver"
)

// part is a list of commands that becomes one command buffer.
type part struct {
	list   *driver.List
	kernel string // the only one in it, where kernels are waited for
	// going, where its buffer is set, is a word that the host looks at when all before is
	// done: where it is not 0 the run goes on at the part with number back.
	going driver.Place
	back  int
}

// loops reports whether a loop of unknown length ends with the part.
func (p *part) loops() bool { return p.going.Buffer.Bytes != nil }

// variant is the commands of runs that read the same outputs.
type variant struct {
	reads []int
	parts []part
}

// commands returns the command buffers of a run that reads some outputs: one, but for very
// long entries. They are made once for a stage.
func (s *stage) commands(reads []int) []part {
	for _, v := range s.made {
		if slices.Equal(v.reads, reads) {
			return v.parts
		}
	}
	r := recorder{s: s}
	r.steps(s.e.spec.Steps, nil)
	for _, i := range reads {
		if slot := s.e.outputs[i]; slot.Bytes > 0 && !s.stays(i) { // Metal copies no empty value
			r.copy(s.result(i), s.at(slot.Buffer, slot.Offset), slot.Bytes)
		}
	}
	s.made = append(s.made, variant{slices.Clone(reads), r.parts})
	return r.parts
}

// recorder writes the steps of a plan into lists.
type recorder struct {
	s     *stage
	parts []part
	full  bool // nothing is added to the last part
}

// list returns the list for the next command, for that of a kernel by its name.
func (r *recorder) list(kernel string) *driver.List {
	n := len(r.parts)
	if n == 0 || r.full || r.s.e.p.debug || r.parts[n-1].list.Len() >= longEntry {
		p := part{list: driver.NewList(r.s.e.spec.Name)}
		if r.s.e.p.debug {
			p.kernel = kernel
		}
		r.parts, r.full = append(r.parts, p), false
	}
	return r.parts[len(r.parts)-1].list
}

func (r *recorder) copy(to, from driver.Place, bytes int) { r.list("").Copy(to, from, bytes) }

// steps records some steps; counters are the counts of the repeats around them, outermost
// first.
func (r *recorder) steps(steps []plan.Step, counters []int) {
	for _, step := range steps {
		switch s := step.(type) {
		case *plan.Dispatch:
			r.dispatch(s, counters)
		case *plan.Copy:
			r.copy(r.s.at(s.Dst, s.DstOffset), r.s.at(s.Src, s.SrcOffset), s.Bytes)
		case *plan.Repeat:
			inner := append(slices.Clone(counters), 0)
			for i := range s.Count {
				inner[len(counters)] = i
				r.steps(s.Round(i), inner)
			}
		case *plan.While:
			r.while(s, counters)
		}
	}
}

// roundsAtOnce is how many rounds of a loop of unknown length are asked for before the host
// looks whether it goes on: to look is to wait until the GPU has nothing to do. A round too
// many costs a few dispatches with empty grids.
const roundsAtOnce = 8

// while records rounds of a loop, of which the last part leads back to the first. One
// around another is looked at after each round.
func (r *recorder) while(s *plan.While, counters []int) {
	first, inner := len(r.parts), append(slices.Clone(counters), 0)
	r.full = true
	for range roundsAtOnce {
		r.steps(s.Steps, inner)
		if holdsLoop(s.Steps) {
			break
		}
	}
	last := &r.parts[len(r.parts)-1]
	if last.loops() { // an inner loop ends there
		r.parts = append(r.parts, part{list: driver.NewList(r.s.e.spec.Name)})
		last = &r.parts[len(r.parts)-1]
	}
	last.going, last.back = r.s.at(s.Going.Buffer, s.Going.Offset), first
	r.full = true
}

// holdsLoop reports whether there is a loop of unknown length among some steps.
func holdsLoop(steps []plan.Step) bool {
	return slices.ContainsFunc(steps, func(s plan.Step) bool {
		switch s := s.(type) {
		case *plan.Repeat:
			return holdsLoop(s.Steps) || holdsLoop(s.Odd)
		case *plan.While:
			return true
		}
		return false
	})
}

func (r *recorder) dispatch(d *plan.Dispatch, counters []int) {
	k := &r.s.e.p.plan.Kernels[d.Kernel]
	out := driver.Dispatch{Pipeline: r.s.e.p.pipelines[d.Kernel], Groups: d.Groups, Threads: k.Workgroup, Counters: counters[:k.Counters]}
	for _, b := range d.Bindings {
		out.Bindings = append(out.Bindings, r.s.at(b.Buffer, b.Offset))
	}
	if k.ScalarBytes > 0 {
		out.Bindings = append(out.Bindings, driver.Place{Buffer: r.s.scalars})
	}
	if d.Grid != nil {
		out.Grid = r.s.at(d.Grid.Buffer, d.Grid.Offset)
	}
	r.list(k.Name).Dispatch(out)
}
