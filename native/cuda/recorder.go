//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// recorder enqueues the steps of an entry on a stream, for a run or for the capture of a
// graph, in which conditions become nodes.
type recorder struct {
	*entry
	stream   *driver.Stream
	captures bool
	early    bool // launches may start before the kernel before them has ended
	depth    int  // nesting depth of conditions, each captured by a stream of its own
	// after, if not nil, is called after each step.
	after func(plan.Step) error
}

// record enqueues all steps. It clears the status word first, so that a failed run does not
// affect the next.
func (r *recorder) record() error {
	if r.checks {
		st := r.p.plan.Status
		if err := r.stream.Clear(r.p.at(st.Buffer, st.Offset), plan.StatusBytes); err != nil {
			return err
		}
	}
	if r.captures && !r.p.serial && r.p.device.Branches() && orders(r.spec) {
		return r.ordered(unroll(nil, r.spec.Steps, nil))
	}
	return r.steps(r.spec.Steps, nil)
}

// steps enqueues steps; consecutive steps under the same condition share one conditional.
// counters holds the iteration counts of the enclosing repeats, outermost first.
func (r *recorder) steps(steps []plan.Step, counters []int) error {
	for len(steps) > 0 {
		n, cell := 1, conditionOf(steps[:1])
		for cell != nil && n < len(steps) && conditionOf(steps[:n+1]) != nil {
			n++
		}
		body := func(r *recorder) error { return r.plain(steps[:n], counters) }
		var err error
		if cell != nil {
			err = r.when(cell, body)
		} else {
			err = body(r)
		}
		if err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

// conditionOf returns the cell that is the common condition of some steps, or nil.
func conditionOf(steps []plan.Step) *plan.GridAddress {
	var cell *plan.GridAddress
	for _, s := range steps {
		var own *plan.GridAddress
		switch s := s.(type) {
		case *plan.Dispatch:
			own = s.Grid
		case *plan.Repeat:
			own = conditionOf(slices.Concat(s.Steps, s.Odd))
		}
		if own == nil || cell != nil && *own != *cell {
			return nil
		}
		cell = own
	}
	return cell
}

// branches reports whether a step depends on a condition in device memory.
func branches(steps []plan.Step) bool {
	for s := range plan.Each(steps) {
		if d, is := s.(*plan.Dispatch); is && d.Grid != nil {
			return true
		}
	}
	return plan.HasWhile(steps)
}

// when enqueues a body that runs if a word is not 0.
func (r *recorder) when(cell *plan.GridAddress, body func(r *recorder) error) error {
	if r.captures {
		return r.conditional(cell, false, body)
	}
	going, err := r.readCondition(cell)
	if err != nil || !going {
		return err
	}
	return body(r)
}

// while enqueues iterations of a do-while loop: it ends when the word is 0 after one.
func (r *recorder) while(s *plan.While, counters []int) error {
	body := func(r *recorder) error { return r.steps(s.Steps, append(slices.Clone(counters), 0)) }
	if r.captures {
		return r.conditional(&s.Condition, true, body)
	}
	for going := true; going; {
		err := body(r)
		if err == nil {
			going, err = r.readCondition(&s.Condition)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// conditional captures a body as a conditional node.
func (r *recorder) conditional(cell *plan.GridAddress, loop bool, body func(r *recorder) error) error {
	inner := recorder{entry: r.entry, captures: true, depth: r.depth + 1}
	var err error
	if inner.stream, err = r.p.graphKernels.captureStream(r.depth); err != nil {
		return err
	}
	word := r.p.at(cell.Buffer, cell.Offset)
	return r.stream.Conditional(inner.stream, *r.p.graphKernels.condition, word, loop, func() error { return body(&inner) })
}

// readCondition synchronises the stream and reports whether a word is not 0.
func (r *recorder) readCondition(cell *plan.GridAddress) (bool, error) {
	word := make([]byte, plan.WordBytes)
	if err := r.stream.Read(word, r.p.at(cell.Buffer, cell.Offset)); err != nil {
		return false, err
	}
	err := r.stream.Synchronize()
	return binary.LittleEndian.Uint32(word) != 0, err
}

// plain enqueues steps whose conditions are known to hold.
func (r *recorder) plain(steps []plan.Step, counters []int) error {
	for _, step := range steps {
		var err error
		switch s := step.(type) {
		case *plan.Dispatch:
			err = r.launch(s, counters)
		case *plan.Call:
			err = r.p.calls.enqueue(r.stream, s, r.p.arraysOf(s))
		case *plan.Copy:
			err = r.stream.Copy(r.p.at(s.Dst, s.DstOffset), r.p.at(s.Src, s.SrcOffset), s.Bytes)
		case *plan.While:
			err = r.while(s, counters)
		case *plan.Repeat:
			err = r.repeat(s, counters)
		}
		if err == nil && r.after != nil {
			err = r.after(step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repeat enqueues the iterations of a repeat. If its steps share a condition, the caller has
// checked it.
func (r *recorder) repeat(s *plan.Repeat, counters []int) error {
	enqueue := r.steps
	if conditionOf([]plan.Step{s}) != nil {
		enqueue = r.plain
	}
	inner := append(slices.Clone(counters), 0)
	for i := range s.Count {
		inner[len(counters)] = i
		if err := enqueue(s.Iteration(i), inner); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) launch(d *plan.Dispatch, counters []int) error {
	k := &r.p.plan.Kernels[d.Kernel]
	if r.p.guards != nil {
		return driver.In(k.Name, r.launchGuarded(d, k, counters))
	}
	pointers := make([]driver.Ptr, 0, len(d.Bindings)+1)
	for _, b := range d.Bindings {
		pointers = append(pointers, r.p.at(b.Buffer, b.Offset))
	}
	return driver.In(k.Name, r.start(d, k, pointers, counters))
}

// start launches a kernel with its arrays at the given addresses.
func (r *recorder) start(d *plan.Dispatch, k *plan.Kernel, pointers []driver.Ptr, counters []int) error {
	if k.ScalarBytes > 0 {
		pointers = append(pointers, r.scalars)
	}
	maps, err := r.p.device.mapsOf(k, pointers)
	if err != nil {
		return err
	}
	f := r.p.functions[d.Kernel]
	f.Early = r.early
	err = r.stream.Launch(f, d.Groups, k.Workgroup, pointers, counters[:k.Counters], maps...)
	if r.p.debug && err == nil {
		err = r.stream.Synchronize()
	}
	return err
}
