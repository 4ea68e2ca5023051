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

// prepare prepares the routines of a plan. If cuBLASLt lacks an algorithm for a product, the
// error is [driver.ErrNoAlgorithm] and the device records the product.
func (p *program) prepare(routines []routine.Routine) ([]call, error) {
	d, out := p.device, make([]call, len(routines))
	var refused error
	for i, r := range routines {
		var err error
		if axisOf(r) != "" {
			out[i], err = p.collective(r)
		} else {
			out[i], err = d.call(r)
		}
		if err = d.noteRefusal(r, err); errors.Is(err, driver.ErrNoAlgorithm) {
			refused = err // goes on, to record all refused products
		} else if err != nil {
			return nil, err
		}
	}
	return out, refused
}

// noteRefusal records a product if err, which it returns, is [driver.ErrNoAlgorithm].
func (d *device) noteRefusal(r routine.Routine, err error) error {
	if p, ok := r.(routine.Product); ok && errors.Is(err, driver.ErrNoAlgorithm) {
		for known := d.refused.Load(); !known.Has(p) && !d.refused.CompareAndSwap(known, known.With(p)); {
			known = d.refused.Load()
		}
	}
	return err
}

// call prepares a routine: its library chooses an algorithm. The error is of kind
// [ir.ErrUnsupported] if the device has no library for it.
func (d *device) call(r routine.Routine) (call, error) {
	p, ok := r.(routine.Product)
	if !ok || d.multiplier == nil {
		return nil, ir.Errorf(ir.ErrUnsupported, "unknown routine %q on CUDA", r.Name())
	}
	made, err := d.multiplier.Product(p)
	if err != nil {
		return nil, driver.In(r.Name(), err)
	}
	return func(on *driver.Stream, arrays []driver.Ptr) error { return on.Multiply(made, arrays) }, nil
}

// arraysOf returns the addresses of a routine's arrays.
func (p *program) arraysOf(c *plan.Call) []driver.Ptr {
	arrays := make([]driver.Ptr, len(c.Bindings))
	for i, b := range c.Bindings {
		arrays[i] = p.at(b.Buffer, b.Offset)
	}
	return arrays
}

// call enqueues a routine with its arrays, see [program.arraysOf]; in debug mode it waits for it.
func (p *program) call(on *driver.Stream, c *plan.Call, arrays []driver.Ptr) error {
	err := p.calls[c.Routine](on, arrays)
	if p.debug && err == nil {
		err = on.Synchronize()
	}
	return driver.In(p.plan.Routines[c.Routine].Name(), err)
}

// warm calls every routine of this device once, since the library loads its kernels on the first call
// and cannot do so during a capture. All memory of the program is zero, and so are the products.
func (p *program) warm() error {
	done := make([]bool, len(p.calls))
	for i, r := range p.plan.Routines {
		done[i] = isCollective(r)
	}
	return p.warmCalls(done)
}

// warmCalls makes the first call of each routine that is not done.
func (p *program) warmCalls(done []bool) error {
	for i := range p.plan.Entries {
		for s := range plan.Each(p.plan.Entries[i].Steps) {
			call, is := s.(*plan.Call)
			if !is || done[call.Routine] {
				continue
			}
			done[call.Routine] = true
			if err := p.device.noteRefusal(p.plan.Routines[call.Routine], p.warmCall(call)); err != nil {
				return err
			}
		}
	}
	return nil
}

// warmCall calls a routine, which writes scratch memory in place of another program's parameters and
// states.
func (p *program) warmCall(c *plan.Call) error {
	shared := len(stateBuffers(p.with))
	scratch, total := map[int]int{}, 0 // offsets by array
	for i, a := range p.plan.Routines[c.Routine].Arrays() {
		if b := c.Bindings[i]; a.Written && b.Buffer < shared {
			scratch[i] = total
			total += roundUp(b.Bytes)
		}
	}
	if total == 0 {
		return p.call(p.stream, c, p.arraysOf(c))
	}
	memory, err := p.device.Alloc(total)
	if err != nil {
		return p.outOfMemory("the first call of a product", total, err)
	}
	arrays := p.arraysOf(c)
	for i, at := range scratch {
		arrays[i] = memory + driver.Ptr(at)
	}
	err = p.call(p.stream, c, arrays)
	return errors.Join(err, p.stream.Synchronize(), p.device.Release(memory))
}
