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
}

// list returns the list for the next command, for that of a kernel by its name.
func (r *recorder) list(kernel string) *driver.List {
	n := len(r.parts)
	if n == 0 || r.s.e.p.debug || r.parts[n-1].list.Len() >= longEntry {
		p := part{list: driver.NewList(r.s.e.spec.Name)}
		if r.s.e.p.debug {
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
			r.copy(r.s.at(s.Dst, s.DstOffset), r.s.at(s.Src, s.SrcOffset), s.Bytes)
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

// commit begins the command buffers of a run; where kernels are waited for, one after the
// other until one fails. Of a run that fails here nothing is under way afterwards.
func (s *stage) commit(parts []part) error {
	s.parts = parts
	for _, p := range parts {
		run, err := s.e.p.device.Commit(p.list)
		if err == nil {
			s.run = append(s.run, run)
			if !s.e.p.debug {
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
