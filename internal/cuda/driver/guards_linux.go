//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

// Guarded is device memory with unmapped addresses on either side: an access just out of
// bounds faults.
type Guarded struct {
	device *Device
	c      C.rlx_guarded
}

// HasGuards reports whether the driver has [Device.AllocGuarded].
func (d *Device) HasGuards() bool { return C.rlx_has_guards(d.library.cu) != 0 }

// AllocGuarded allocates guarded memory of at least the given bytes, in whole pages of the
// device (2 MiB on an H200), uninitialised. After a failure some of it may stay mapped.
func (d *Device) AllocGuarded(bytes int) (*Guarded, error) {
	w := &Guarded{device: d}
	r, name := noted(func(call **C.char) C.int { return C.rlx_guarded_make(d.c, C.size_t(bytes), &w.c, call) })
	if r != 0 {
		return nil, d.check(name, r)
	}
	return w, nil
}

// Bytes returns the size of the memory.
func (w *Guarded) Bytes() int { return int(w.c.bytes) }

// At returns the address at an offset.
func (w *Guarded) At(offset int) Ptr { return Ptr(w.c.at) + Ptr(offset) }

// Release frees the memory.
func (w *Guarded) Release() error {
	r, name := noted(func(call **C.char) C.int { return C.rlx_guarded_free(w.device.c, &w.c, call) })
	return w.device.check(name, r)
}
