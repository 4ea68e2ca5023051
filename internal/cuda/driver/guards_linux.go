//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import "unsafe"

// Guarded is device memory with addresses on either side that nothing is mapped to: an
// access just before it or behind it is an illegal address.
type Guarded struct {
	device *Device
	c      C.rlx_guarded
}

// Guards reports whether the driver has [Device.AllocGuarded].
func (d *Device) HasGuards() bool { return C.rlx_has_guards(d.library.cu) != 0 }

// AllocGuarded returns guarded memory of at least so many bytes, whole pages of the device
// (2 MiB on an H200), with anything in it. What a failure leaves mapped stays so to the
// end of the process.
func (d *Device) AllocGuarded(bytes int) (*Guarded, error) {
	w := &Guarded{device: d}
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	if r := C.rlx_guarded_make(d.c, C.size_t(bytes), &w.c, call); r != 0 {
		return nil, d.check(C.GoString(*call), r)
	}
	return w, nil
}

// Bytes is how much memory there is.
func (w *Guarded) Bytes() int { return int(w.c.bytes) }

// At returns the address of a byte, counted from the first.
func (w *Guarded) At(offset int) Ptr { return Ptr(w.c.at) + Ptr(offset) }

// Release gives the memory back.
func (w *Guarded) Release() error {
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	r := C.rlx_guarded_free(w.device.c, &w.c, call)
	return w.device.check(C.GoString(*call), r)
}
