//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"cmp"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// guards is where the arrays of a launch are put for tests: each in memory of its own, with
// nothing mapped around it, so that an access beyond an array is an illegal address and
// not an element of another array of the arena. Kernels are waited for one by one, and an
// error names its kernel.
type guards struct {
	// behind puts the end of an array at that of its memory, which may be up to
	// [guardAlign] further; otherwise it begins where its memory begins.
	behind bool
	// short is how many bytes arrays are said to be shorter than they are: with some,
	// each kernel is one that goes too far.
	short int
	rooms []*driver.Guarded
}

// guardAlign is what arrays are aligned to: the maxThreads access of a kernel.
const guardAlign = 16

// guarded is a part of a program's memory that is put between guards for a launch.
type guarded struct {
	from, to driver.Ptr
	bytes    int
}

// launchGuarded launches a kernel with its arrays between guards.
func (r *recorder) launchGuarded(d *plan.Dispatch, k *plan.Kernel, counters []int) error {
	pointers, parts, err := r.p.guards.enter(r.p, r.stream, d.Bindings)
	if err == nil {
		err = r.start(d, k, pointers, counters)
	}
	if err != nil {
		return err
	}
	return leave(r.stream, parts)
}

// enter copies the windows of a launch to where they have guards and returns their
// addresses there, and the parts to copy back. Windows that share bytes stay together.
func (w *guards) enter(p *program, s *driver.Stream, windows []plan.Binding) ([]driver.Ptr, []guarded, error) {
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

// put copies a part to room i, which nothing uses any more.
func (w *guards) put(d *driver.Device, s *driver.Stream, i int, x *guarded) error {
	if i == len(w.rooms) {
		w.rooms = append(w.rooms, nil)
	}
	if room := w.rooms[i]; room == nil || room.Bytes() < x.bytes {
		if room != nil {
			if err := room.Release(); err != nil {
				return err
			}
		}
		var err error
		if w.rooms[i], err = d.AllocGuarded(x.bytes); err != nil {
			w.rooms[i] = nil
			return err
		}
	}
	room, offset := w.rooms[i], 0
	if w.behind {
		offset = (room.Bytes() - x.bytes) / guardAlign * guardAlign
	}
	x.to = room.At(offset)
	return s.Copy(x.to, x.from, x.bytes)
}

// leave copies back what a launch has left.
func leave(s *driver.Stream, parts []guarded) error {
	for _, x := range parts {
		if err := s.Copy(x.from, x.to, x.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (w *guards) release() error {
	var failed error
	for _, room := range w.rooms {
		if room != nil {
			failed = errors.Join(failed, room.Release())
		}
	}
	w.rooms = nil
	return failed
}
