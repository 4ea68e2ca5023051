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
}

// commands returns the command buffers of a run that fetches a variant of the outputs:
// one, but for very long entries. They are made once for a stage.
func (e *entry) commands(s *stage, variant int) []part {
	for len(s.lists) <= variant {
		s.lists = append(s.lists, nil)
	}
	if s.lists[variant] == nil {
		r := recorder{e: e, s: s}
		r.steps(e.spec.Steps, nil)
		for _, i := range e.reads[variant] {
			if slot := e.outputs[i]; slot.Bytes > 0 && !e.stays(s, i) { // Metal copies no empty value
				r.copy(e.result(s, i), e.at(s, slot.Buffer, slot.Offset), slot.Bytes)
			}
		}
		s.lists[variant] = r.parts
	}
	return s.lists[variant]
}

// recorder writes the steps of a plan into lists.
type recorder struct {
	e     *entry
	s     *stage
	parts []part
}

// list returns the list for the next command, for that of a kernel by its name.
func (r *recorder) list(kernel string) *driver.List {
	n := len(r.parts)
	if n == 0 || r.e.p.debug || r.parts[n-1].list.Len() >= longEntry {
		p := part{list: driver.NewList(r.e.spec.Name)}
		if r.e.p.debug {
			p.kernel = kernel
		}
		r.parts = append(r.parts, p)
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
			r.copy(r.e.at(r.s, s.Dst, s.DstOffset), r.e.at(r.s, s.Src, s.SrcOffset), s.Bytes)
		case *plan.Repeat:
			inner := append(slices.Clone(counters), 0)
			for i := range s.Count {
				inner[len(counters)] = i
				r.steps(s.Round(i), inner)
			}
		}
	}
}

func (r *recorder) dispatch(d *plan.Dispatch, counters []int) {
	k := &r.e.p.plan.Kernels[d.Kernel]
	out := driver.Dispatch{Pipeline: r.e.p.pipelines[d.Kernel], Groups: d.Groups, Threads: k.Workgroup, Counters: counters[:k.Counters]}
	for _, b := range d.Bindings {
		out.Bindings = append(out.Bindings, r.e.at(r.s, b.Buffer, b.Offset))
	}
	if k.ScalarBytes > 0 {
		out.Bindings = append(out.Bindings, driver.Place{Buffer: r.s.scalars})
	}
	if d.Grid != nil {
		out.Grid = r.e.at(r.s, d.Grid.Buffer, d.Grid.Offset)
	}
	r.list(k.Name).Dispatch(out)
}

// commit begins the command buffers of a run; where kernels are waited for, one after the
// other until one fails. Of a run that fails here nothing is under way afterwards.
func (e *entry) commit(s *stage, parts []part) error {
	s.parts = parts
	for _, p := range parts {
		run, err := e.p.device.Commit(p.list)
		if err == nil {
			s.run = append(s.run, run)
			if !e.p.debug {
				continue
			}
		}
		if failed := s.wait(); err == nil {
			err = failed
		}
		if err != nil {
			return in(p.kernel, err)
		}
	}
	return nil
}
