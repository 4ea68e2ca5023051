//go:build cgo && (darwin || linux)

package metal

import (
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/ir/loop"
)

// part is a list of commands that becomes one command buffer.
type part struct {
	list   *driver.List
	kernel string // the only one in it, where kernels are waited for
	// going, where its buffer is set, is a word that the host looks at when all before is
	// done: where it is not 0 the run goes on at the part with number back.
	going driver.Place
	back  int
	// writes says that some command writes a parameter or a state, stop that the host waits
	// for all before it begins the next one.
	writes, stop bool
	time         time.Duration // that it takes, by estimate
}

// loops reports whether a loop of unknown length ends with the part.
func (p *part) loops() bool { return p.going.Buffer.Bytes != nil }

// variant is the commands of runs that read the same outputs.
type variant struct {
	reads []int
	parts []part
}

// commands returns the command buffers of a run that reads some outputs: one, but for long
// entries. They are made once for a stage and what a command buffer may take.
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
		if slot := s.e.outputs[i]; slot.Bytes > 0 && !s.stays(i) { // Metal copies no empty value
			r.copy(s.result(i), s.at(slot.Buffer, slot.Offset), slot.Bytes, false)
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
	wrote bool // there was a command that writes a parameter or a state
}

// partsAtOnce is how many command buffers of a long entry are begun before the host looks
// whether one has failed. Metal gives no more than 64 of a queue.
const partsAtOnce = 8

// command is what decides which command buffer a command goes to.
type command struct {
	kernel string // "" for a copy
	time   time.Duration
	writes bool // a parameter or a state
}

// list returns the list for the next command. The first one of a long entry that writes what
// persists begins when all before it is known to be done, so that a failure up to there
// changes nothing.
func (r *recorder) list(c command) *driver.List {
	n, p := len(r.parts), r.s.e.p
	commits := c.writes && !r.wrote && r.s.e.long()
	if n == 0 || r.full || commits || p.debug || r.parts[n-1].time+c.time > p.limit || r.parts[n-1].list.Len() >= longEntry {
		if n > 0 && r.s.e.long() {
			r.parts[n-1].stop = commits || n%partsAtOnce == 0
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

// longestCopy is how many bytes are copied by one command: they take less than a command
// buffer may.
const longestCopy = 1 << 30

func (r *recorder) copy(to, from driver.Place, bytes int, writes bool) {
	for bytes > 0 {
		n := min(bytes, longestCopy)
		r.list(command{"", copyTime(n), writes}).Copy(to, from, n)
		to.Offset, from.Offset, bytes = to.Offset+n, from.Offset+n, bytes-n
	}
}

// steps records some steps; counters are the counts of the repeats around them, outermost
// first.
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
