//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import "unsafe"

// Walled is device memory with addresses on either side that nothing is mapped to: an
// access just before it or behind it is an illegal address.
type Walled struct {
	device *Device
	c      C.rlx_walled
}

// Walls reports whether the driver has [Device.AllocWalled].
func (d *Device) Walls() bool { return C.rlx_walls(d.library.cu) != 0 }

// AllocWalled returns walled memory of at least so many bytes, whole pages of the device
// (2 MiB on an H200), with anything in it. What a failure leaves mapped stays so to the
// end of the process.
func (d *Device) AllocWalled(bytes int) (*Walled, error) {
	w := &Walled{device: d}
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	if r := C.rlx_walled_make(d.c, C.size_t(bytes), &w.c, call); r != 0 {
		return nil, d.check(C.GoString(*call), r)
	}
	return w, nil
}

// Bytes is how much memory there is.
func (w *Walled) Bytes() int { return int(w.c.bytes) }

// At returns the address of a byte, counted from the first.
func (w *Walled) At(offset int) Ptr { return Ptr(w.c.at) + Ptr(offset) }

// Release gives the memory back.
func (w *Walled) Release() error {
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	r := C.rlx_walled_free(w.device.c, &w.c, call)
	return w.device.check(C.GoString(*call), r)
}
