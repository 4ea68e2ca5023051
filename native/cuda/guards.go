//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"cmp"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// guards runs kernels with guard pages, for tests: it copies the arrays of a launch to
// blocks with unmapped addresses around them, so that an access out of bounds faults
// instead of reaching another array of the arena. Kernels are synchronised one by one, and
// an error names its kernel.
type guards struct {
	// behind aligns the end of an array with the end of its block, up to [guardAlign]; otherwise
	// the array begins where the block begins.
	behind bool
	// short shortens the arrays by a number of bytes, to provoke accesses out of bounds.
	short  int
	blocks []*driver.Guarded
}

// guardAlign is the alignment of arrays: the widest access of a kernel.
const guardAlign = 16

// guarded is a part of the arena that is copied to a block for a launch.
type guarded struct {
	from, to driver.Ptr
	bytes    int
}

// launchGuarded launches a kernel on guarded copies of its arrays.
func (r *recorder) launchGuarded(d *plan.Dispatch, k *plan.Kernel, counters []int) error {
	pointers, parts, err := r.p.guards.copyIn(r.p, r.stream, d.Bindings)
	if err == nil {
		err = r.start(d, k, pointers, counters)
	}
	if err != nil {
		return err
	}
	return copyBack(r.stream, parts)
}

// copyIn copies the windows of a launch to guarded blocks and returns their addresses there
// and the parts to copy back. Overlapping windows share a block.
func (w *guards) copyIn(p *program, s *driver.Stream, windows []plan.Binding) ([]driver.Ptr, []guarded, error) {
	var parts []guarded
	order := slices.SortedFunc(slices.Values(windows), func(a, b plan.Binding) int {
		return cmp.Compare(p.at(a.Buffer, a.Offset), p.at(b.Buffer, b.Offset))
	})
	for _, b := range order {
		at, bytes := p.at(b.Buffer, b.Offset), max(b.Bytes-w.short, guardAlign)
		if n := len(parts); n > 0 && at < parts[n-1].from+driver.Ptr(parts[n-1].bytes) {
			last := &parts[n-1]
			last.bytes = max(last.bytes, int(at-last.from)+bytes)
			continue
		}
		parts = append(parts, guarded{from: at, bytes: bytes})
	}
	for i := range parts {
		if err := w.put(p.device.Device, s, i, &parts[i]); err != nil {
			return nil, nil, err
		}
	}
	out := make([]driver.Ptr, len(windows))
	for i, b := range windows {
		at := p.at(b.Buffer, b.Offset)
		in := slices.IndexFunc(parts, func(x guarded) bool { return at >= x.from && at < x.from+driver.Ptr(x.bytes) })
		out[i] = parts[in].to + at - parts[in].from
	}
	return out, parts, nil
}

// put copies a part to block i.
func (w *guards) put(d *driver.Device, s *driver.Stream, i int, x *guarded) error {
	if i == len(w.blocks) {
		w.blocks = append(w.blocks, nil)
	}
	if old := w.blocks[i]; old == nil || old.Bytes() < x.bytes {
		if old != nil {
			// The launch before may still be copied back from it.
			if err := errors.Join(s.Synchronize(), old.Release()); err != nil {
				return err
			}
		}
		var err error
		if w.blocks[i], err = d.AllocGuarded(x.bytes); err != nil {
			w.blocks[i] = nil
			return err
		}
	}
	block, offset := w.blocks[i], 0
	if w.behind {
		offset = (block.Bytes() - x.bytes) / guardAlign * guardAlign
	}
	x.to = block.At(offset)
	return s.Copy(x.to, x.from, x.bytes)
}

// copyBack copies the parts back to the arena.
func copyBack(s *driver.Stream, parts []guarded) error {
	for _, x := range parts {
		if err := s.Copy(x.from, x.to, x.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (w *guards) release() error {
	var failed error
	for _, block := range w.blocks {
		if block != nil {
			failed = errors.Join(failed, block.Release())
		}
	}
	w.blocks = nil
	return failed
}
