//go:build cgo && (darwin || linux)

package metal

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal/driver"
)

// stage is what one run under way has of its own: memory and lists of commands.
type stage struct {
	ready   bool
	heap    *driver.Heap
	buffers map[int]driver.Buffer // the plan's, of kinds that are the run's
	scalars driver.Buffer
	results driver.Buffer // outputs that lie where the next run writes
	lists   [][]part      // by variant
	run     []driver.Run
	parts   []part // that run is of
	user    user   // nil for a stage that is free
}

// user is who wants a run. Its methods are called with the program locked.
type user interface {
	// put writes the inputs.
	put(s *stage)
	// take is told that the run is over, with its stage or an error.
	take(s *stage, err error)
}

// prepare allocates a stage, once. Without a need for memory it has none.
func (e *entry) prepare(s *stage) error {
	if s.ready {
		return nil
	}
	var sizes []int
	total := 0
	for _, n := range e.own {
		sizes = append(sizes, e.p.plan.Buffers[n].Bytes)
	}
	sizes = append(sizes, max(e.spec.UniformBytes, plan.RowBytes), max(e.results, plan.RowBytes))
	for _, n := range sizes {
		total += n
	}
	heap, err := e.p.device.NewHeap(sizes)
	if err != nil {
		return e.p.tooMuch("memory for inputs and outputs", total, err)
	}
	for _, b := range heap.Buffers {
		clear(b.Bytes)
	}
	s.heap, s.buffers = heap, map[int]driver.Buffer{}
	for i, n := range e.own {
		s.buffers[n] = heap.Buffers[i]
	}
	s.scalars, s.results, s.ready = heap.Buffers[len(e.own)], heap.Buffers[len(e.own)+1], true
	return nil
}

// at returns a place of the plan as a run sees it.
func (e *entry) at(s *stage, buffer, offset int) driver.Place {
	if b, ok := s.buffers[buffer]; ok {
		return driver.Place{Buffer: b, Offset: offset}
	}
	return driver.Place{Buffer: e.p.buffers[buffer], Offset: offset}
}

// input returns the memory of an input or a scalar.
func (e *entry) input(s *stage, i int) []byte {
	slot, from := e.inputs[i], s.scalars
	if i < len(e.spec.Inputs) {
		from = s.buffers[slot.Buffer]
	}
	return from.Bytes[slot.Offset:][:slot.Bytes]
}

// stays reports whether an output lies in memory of the run, so that it need not be copied
// before the next run writes there.
func (e *entry) stays(s *stage, i int) bool {
	_, ok := s.buffers[e.outputs[i].Buffer]
	return ok
}

// result returns where an output is after the run.
func (e *entry) result(s *stage, i int) driver.Place {
	if slot := e.outputs[i]; e.stays(s, i) {
		return e.at(s, slot.Buffer, slot.Offset)
	}
	offset := 0
	for _, o := range e.outputs[:i] {
		offset += roundUp(o.Bytes)
	}
	return driver.Place{Buffer: s.results, Offset: offset}
}

// output returns the memory of an output after a run.
func (e *entry) output(s *stage, i int) []byte {
	at := e.result(s, i)
	return at.Buffer.Bytes[at.Offset:][:e.outputs[i].Bytes]
}

// status returns the status word of a run.
func (e *entry) status(s *stage) []byte {
	st := e.p.plan.Status
	return s.buffers[st.Buffer].Bytes[st.Offset:][:plan.StatusBytes]
}

// start asks for a run with the inputs of a user, who fetches a variant of the outputs. It
// waits for nothing but a free stage.
func (e *entry) start(ctx context.Context, u user, variant int) error {
	if err := e.p.usable(e.spec.Name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return e.p.fault(e.spec.Name, err)
	}
	s, err := e.free(ctx)
	if err != nil {
		return err
	}
	if err := e.prepare(s); err != nil {
		return e.p.fault(e.spec.Name, err)
	}
	u.put(s)
	if e.checks { // a run that failed does not hold up the next
		clear(e.status(s))
	}
	e.p.runs++
	if err := e.commit(s, e.commands(s, variant)); err != nil {
		e.p.runs--
		return e.p.fault(e.spec.Name, err)
	}
	s.user = u
	return nil
}

// free returns the next stage, after the run that has it is over. Others may start runs
// meanwhile, and take it.
func (e *entry) free(ctx context.Context) (*stage, error) {
	for {
		s := &e.stages[e.next]
		if s.user == nil {
			e.next = (e.next + 1) % len(e.stages)
			return s, nil
		}
		if err := e.p.await(ctx, e.spec.Name, func() bool { e.collect(); return s.user == nil }); err != nil {
			return nil, err
		}
	}
}

// collect gives the stages of runs that are over to their users, the oldest first.
func (e *entry) collect() {
	for i := range e.stages {
		s := &e.stages[(e.next+i)%len(e.stages)]
		if s.user == nil {
			continue
		}
		over, err := s.over()
		if !over {
			return
		}
		if err == nil && e.checks {
			err = e.failed(e.status(s))
		}
		u := s.user
		s.user = nil
		u.take(s, e.p.fault(e.spec.Name, err))
	}
}

// over reports whether the run of a stage is over, with the first of its errors.
func (s *stage) over() (bool, error) {
	for _, r := range s.run {
		if done, _ := r.Done(); !done {
			return false, nil
		}
	}
	var first error
	for i, r := range s.run {
		if _, err := r.Done(); err != nil && first == nil {
			first = in(s.parts[i].kernel, err)
		}
		r.Forget()
	}
	s.run = s.run[:0]
	return true, first
}

// wait waits until the run of a stage is over.
func (s *stage) wait() error {
	for begin := time.Now(); ; pause(time.Since(begin)) {
		if over, err := s.over(); over {
			return err
		}
	}
}

// in names the kernel of an error of the driver.
func in(kernel string, err error) error {
	var e *driver.Error
	if errors.As(err, &e) && e.Kernel == "" {
		e.Kernel = kernel
	}
	return err
}

// failed returns what a status word says.
func (e *entry) failed(word []byte) error {
	code := binary.LittleEndian.Uint32(word)
	if code == 0 {
		return nil
	}
	for _, c := range e.p.plan.Status.Codes {
		if c.Code == code {
			return &native.Error{Backend: Name, Call: e.spec.Name, Kind: ir.ErrIndex, Node: c.Node, Err: ir.Errorf(ir.ErrIndex, "%s", c.Message)}
		}
	}
	return ir.Errorf(ir.ErrIndex, "a check failed with code %d", code)
}

func (s *stage) release() {
	for _, r := range s.run {
		r.Forget()
	}
	for _, list := range s.lists {
		for _, p := range list {
			p.list.Release()
		}
	}
	if s.heap != nil {
		s.heap.Release()
	}
	*s = stage{user: s.user}
}
