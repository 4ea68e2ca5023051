package main

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/loop"
)

// stage is a step of an entry that computes or copies something. The steps of a repeat are listed
// once.
type stage struct {
	name          string // of the kernel or the routine, or "copy"
	groups        [3]int // workgroups; zeros for copies and routines
	threads       int    // of a workgroup
	times         int    // that it runs in a run of the entry
	repeats       []int  // counts of the repeats around it; 0 for a loop of unknown length
	reads, writes []window
}

// window is a range of a buffer.
type window struct{ buffer, from, to int }

func (w window) overlaps(o window) bool {
	return w.buffer == o.buffer && w.from < o.to && o.from < w.to
}

func windowOf(b plan.Binding) window { return window{b.Buffer, b.Offset, b.Offset + b.Bytes} }

// stagesOf lists the steps of an entry. written has for each kernel the arrays that it stores to; a
// plan from a file has none, and then an array that may be written counts as read and written.
func stagesOf(p *plan.Plan, e *plan.Entry, written [][]bool) []stage {
	l := &lister{plan: p, written: written}
	l.list(e.Steps, nil, 1)
	return l.stages
}

type lister struct {
	plan    *plan.Plan
	written [][]bool
	stages  []stage
}

func (l *lister) list(steps []plan.Step, repeats []int, times int) {
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			l.dispatch(s, repeats, times)
		case *plan.Copy:
			l.stages = append(l.stages, stage{
				name: "copy", times: times, repeats: repeats,
				reads:  []window{{s.Src, s.SrcOffset, s.SrcOffset + s.Bytes}},
				writes: []window{{s.Dst, s.DstOffset, s.DstOffset + s.Bytes}},
			})
		case *plan.Call:
			l.call(s, repeats, times)
		case *plan.Repeat:
			inside := append(slices.Clip(repeats), s.Count)
			l.list(s.Steps, inside, times*s.Count)
			l.list(s.Odd, inside, times*s.Count/2)
		case *plan.While:
			l.list(s.Steps, append(slices.Clip(repeats), 0), times)
		}
	}
}

func (l *lister) dispatch(d *plan.Dispatch, repeats []int, times int) {
	k := &l.plan.Kernels[d.Kernel]
	s := stage{name: k.Name, groups: d.Groups, threads: k.Workgroup[0] * k.Workgroup[1] * k.Workgroup[2], times: times, repeats: repeats}
	for i, b := range d.Bindings {
		access := k.Storage[i]
		stores := access != loop.Read
		if l.written != nil && i < len(l.written[d.Kernel]) {
			stores = l.written[d.Kernel][i]
		}
		if stores {
			s.writes = append(s.writes, windowOf(b))
		}
		if !stores || access == loop.Atomic || l.written == nil {
			s.reads = append(s.reads, windowOf(b))
		}
	}
	l.stages = append(l.stages, s)
}

func (l *lister) call(c *plan.Call, repeats []int, times int) {
	r := l.plan.Routines[c.Routine]
	s := stage{name: r.Name(), times: times, repeats: repeats}
	for i, a := range r.Arrays() {
		if a.Written {
			s.writes = append(s.writes, windowOf(c.Bindings[i]))
		} else {
			s.reads = append(s.reads, windowOf(c.Bindings[i]))
		}
	}
	l.stages = append(l.stages, s)
}

// bytes returns the bytes that a stage reads and writes.
func (s *stage) bytes() (read, written int) {
	for _, w := range s.reads {
		read += w.to - w.from
	}
	for _, w := range s.writes {
		written += w.to - w.from
	}
	return read, written
}

// grid returns "4 × 1 × 1 of 256", "" for a copy.
func (s *stage) grid() string {
	if s.groups == [3]int{} {
		return ""
	}
	text := fmt.Sprint(s.groups[0])
	if s.groups[2] > 1 {
		text = fmt.Sprintf("%d×%d×%d", s.groups[0], s.groups[1], s.groups[2])
	} else if s.groups[1] > 1 {
		text = fmt.Sprintf("%d×%d", s.groups[0], s.groups[1])
	}
	return fmt.Sprintf("%s of %d", text, s.threads)
}

// value is a range of temporary memory from the stage that writes it to the last one that reads it.
type value struct {
	window
	first, last int // stages
}

// valuesOf returns the values in buffers for temporary values. A value that the host reads, in one of
// the outputs, lives to the end.
func valuesOf(p *plan.Plan, e *plan.Entry, stages []stage) []value {
	var values []value
	newest := map[window]int{} // index of the newest value of a window
	touch := func(w window, at int, write bool) {
		if p.Buffers[w.buffer].Kind != plan.TempBuffer {
			return
		}
		i, known := newest[w]
		if known && (!write || values[i].last == at) {
			values[i].last = at
			return
		}
		for old := range newest {
			if old.overlaps(w) {
				delete(newest, old)
			}
		}
		newest[w] = len(values)
		values = append(values, value{w, at, at})
	}
	for at, s := range stages {
		for _, w := range s.reads {
			touch(w, at, false)
		}
		for _, w := range s.writes {
			touch(w, at, true)
		}
	}
	for _, o := range e.Outputs {
		s := &p.Slots[o]
		for w, i := range newest {
			if w.buffer == s.Buffer && w.from <= s.Offset && s.Offset < w.to && s.Role == plan.Output {
				values[i].last = len(stages) - 1
			}
		}
	}
	return values
}

// liveBytes returns the bytes of the values that are live at each stage.
func liveBytes(values []value, stages int) []int {
	live := make([]int, stages)
	for _, v := range values {
		for at := v.first; at <= v.last; at++ {
			live[at] += v.to - v.from
		}
	}
	return live
}
