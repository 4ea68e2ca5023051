//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// ErrUnchanged is the error of a graph that the driver did not let be changed.
var ErrUnchanged = errors.New("a graph could not be changed")

// FillName is the kernel of [FillSource].
const FillName = "k_fill"

// FillSource is the kernel that fills memory with a word in the graphs of
// [Stream.Capture]. A graph of nothing but kernels, one after the other, takes the
// driver 2 to 4 µs to launch, however many there are; each node of another kind, such
// as cuBLASLt asks for to clear its workspace, takes 1.1 µs more (H200, driver for
// CUDA 13.0: BenchmarkLaunches).
const FillSource = `extern "C" __global__ void __launch_bounds__(256) k_fill(unsigned *to, unsigned words, unsigned value) {
  for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < words; i += gridDim.x * 256u) {
    to[i] = value;
  }
}
`

// EditsGraphs reports whether the driver lets graphs be changed: others keep the nodes
// that fill memory.
func (d *Device) EditsGraphs() bool { return C.rlx_edits(d.library.cu) != 0 }

// fillByKernels changes a graph that is not instantiated yet.
func (d *Device) fillByKernels(graph C.rlx_handle, fill Function) error {
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	if r := C.rlx_fills_to_kernels(d.c, graph, fill.handle, call); r != 0 {
		return d.check(C.GoString(*call), r)
	}
	return nil
}
