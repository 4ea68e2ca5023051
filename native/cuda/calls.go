//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/routine"
)

// productBytes is the size of cuBLASLt's workspace, as NVIDIA recommends for Hopper (cuBLAS
// documentation, cublasSetWorkspace).
const productBytes = 32 << 20

// call enqueues a routine with its arrays.
type call func(on *driver.Stream, arrays []driver.Ptr) error

// calls are the prepared routines of a program's plan.
type calls struct {
	p      *program
	list   []call
	solver solver
}

// prepare prepares the routines of a plan. If a library lacks an algorithm for one, the
// error is [driver.ErrNoAlgorithm] and the device records the routine.
func (cs *calls) prepare(routines []routine.Routine) error {
	d := cs.p.device
	cs.list = make([]call, len(routines))
	var refused error
	for i, r := range routines {
		var err error
		if axisOf(r) != "" {
			cs.list[i], err = cs.p.ranks.prepare(r)
		} else {
			cs.list[i], err = cs.ofLibrary(r)
		}
		if err = d.noteRefusal(r, err); errors.Is(err, driver.ErrNoAlgorithm) {
			refused = err // goes on, to record all refused routines
		} else if err != nil {
			return err
		}
	}
	return refused
}

// noteRefusal records a routine if err, which it returns, is [driver.ErrNoAlgorithm].
func (d *device) noteRefusal(r routine.Routine, err error) error {
	if errors.Is(err, driver.ErrNoAlgorithm) {
		for known := d.refused.Load(); !known.Has(r) && !d.refused.CompareAndSwap(known, known.With(r)); {
			known = d.refused.Load()
		}
	}
	return err
}

// ofLibrary prepares a routine of a library, which chooses an algorithm. The error is of kind
// [ir.ErrUnsupported] if the device has no library for it.
func (cs *calls) ofLibrary(r routine.Routine) (call, error) {
	d := cs.p.device
	switch r := r.(type) {
	case routine.Product:
		if d.multiplier == nil {
			break
		}
		made, err := d.multiplier.Product(r)
		return func(on *driver.Stream, arrays []driver.Ptr) error { return on.Multiply(made, arrays) }, driver.In(r.Name(), err)
	case routine.Factor:
		made, err := cs.solver.factor(d, r)
		return func(on *driver.Stream, arrays []driver.Ptr) error { return on.Factor(made, arrays) }, driver.In(r.Name(), err)
	}
	return nil, ir.Errorf(ir.ErrUnsupported, "unknown routine %q on CUDA", r.Name())
}

// solver is the use of cuSOLVER by a program, which is made with the first factorisation.
type solver struct{ made *driver.Solver }

// factor prepares a factorisation.
func (s *solver) factor(d *device, r routine.Factor) (_ *driver.Factor, err error) {
	if s.made == nil {
		if s.made, err = d.NewSolver(); err != nil {
			return nil, err
		}
	}
	return s.made.Factor(r)
}

func (s *solver) release() error {
	made := s.made
	if s.made = nil; made == nil {
		return nil
	}
	return made.Release()
}

// isFactor reports whether a routine is a factorisation.
func isFactor(r routine.Routine) bool {
	_, ok := r.(routine.Factor)
	return ok
}

// capturesAll reports whether graphs can hold the library calls of an entry: cuSOLVER waits for the device to find
// eigenvalues, and what it does elsewhere is not tried in the bodies of conditional nodes.
func capturesAll(p *plan.Plan, spec *plan.Entry) bool {
	for s := range plan.Each(spec.Steps) {
		c, ok := s.(*plan.Call)
		if !ok {
			continue
		}
		if f, ok := p.Routines[c.Routine].(routine.Factor); ok && (f.Op == routine.EigenFactor || branches(spec.Steps)) {
			return false
		}
	}
	return true
}

// arraysOf returns the addresses of a routine's arrays.
func (p *program) arraysOf(c *plan.Call) []driver.Ptr {
	arrays := make([]driver.Ptr, len(c.Bindings))
	for i, b := range c.Bindings {
		arrays[i] = p.at(b.Buffer, b.Offset)
	}
	return arrays
}

// enqueue enqueues a routine with its arrays, see [program.arraysOf]; in debug mode it waits for it.
func (cs *calls) enqueue(on *driver.Stream, c *plan.Call, arrays []driver.Ptr) error {
	err := cs.list[c.Routine](on, arrays)
	if cs.p.debug && err == nil {
		err = on.Synchronize()
	}
	return driver.In(cs.p.plan.Routines[c.Routine].Name(), err)
}

// warm calls every routine of this device once, since the library loads its kernels on the first call
// and cannot do so during a capture. All memory of the program is zero, and so are the products.
func (cs *calls) warm() error {
	done := make([]bool, len(cs.list))
	for i, r := range cs.p.plan.Routines {
		done[i] = isCollective(r)
	}
	return cs.warmCalls(done)
}

// warmCalls makes the first call of each routine that is not done.
func (cs *calls) warmCalls(done []bool) error {
	for i := range cs.p.plan.Entries {
		for s := range plan.Each(cs.p.plan.Entries[i].Steps) {
			call, is := s.(*plan.Call)
			if !is || done[call.Routine] {
				continue
			}
			done[call.Routine] = true
			if err := cs.p.device.noteRefusal(cs.p.plan.Routines[call.Routine], cs.warmCall(call)); err != nil {
				return err
			}
		}
	}
	return nil
}

// warmCall calls a routine, which writes scratch memory in place of another program's parameters and
// states.
func (cs *calls) warmCall(c *plan.Call) error {
	shared := len(stateBuffers(cs.p.with))
	scratch, total := map[int]int{}, 0 // offsets by array
	for i, a := range cs.p.plan.Routines[c.Routine].Arrays() {
		if b := c.Bindings[i]; a.Written && b.Buffer < shared {
			scratch[i] = total
			total += roundUp(b.Bytes)
		}
	}
	if total == 0 {
		return cs.enqueue(cs.p.stream, c, cs.p.arraysOf(c))
	}
	memory, err := cs.p.device.Alloc(total)
	if err != nil {
		return cs.p.outOfMemory("the first call of a product", total, err)
	}
	arrays := cs.p.arraysOf(c)
	for i, at := range scratch {
		arrays[i] = memory + driver.Ptr(at)
	}
	err = cs.enqueue(cs.p.stream, c, arrays)
	return errors.Join(err, cs.p.stream.Synchronize(), cs.p.device.Release(memory))
}
