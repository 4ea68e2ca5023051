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

// branchesFrom is the version of CUDA from which on the graphs of conditional nodes
// may have copies and conditional nodes in them.
const branchesFrom = 12040

// Branches reports whether graphs can have conditional nodes.
func (d *Device) Branches() bool {
	return d.library.Version >= branchesFrom && C.rlx_branches(d.library.cu) != 0
}

// ConditionName is the kernel of [ConditionSource].
const ConditionName = "k_condition"

// ConditionSource is the kernel that gives a condition its value: whether a word is
// not 0, or always true. The function that it calls is the driver's: no header and
// no library of the toolkit is needed for it.
const ConditionSource = `extern "C" __device__ void cudaGraphSetConditional(unsigned long long condition, unsigned value);
extern "C" __global__ void __launch_bounds__(1) k_condition(const unsigned *word, unsigned long long condition, unsigned always) {
  cudaGraphSetConditional(condition, always | (*word != 0u));
}
`

// Conditional adds to what the stream captures the work that body asks another stream
// for, inner, to be done where a word is not 0: once, or where loop is set as long as
// that is so after a round, of which there is one at least. set is the kernel of
// [ConditionSource].
func (s *Stream) Conditional(inner *Stream, set Function, word Ptr, loop bool, body func() error) error {
	d := s.device
	var condition C.ulonglong
	if err := d.check("cuGraphConditionalHandleCreate", C.rlx_condition_make(d.c, s.handle, &condition)); err != nil {
		return err
	}
	look := func(on *Stream, always int) error {
		one := [3]int{1, 1, 1}
		return on.Launch(set, one, one, []Ptr{word, Ptr(condition)}, []int{always})
	}
	always, kind := 0, C.int(0)
	if loop {
		always, kind = 1, 1
	}
	if err := look(s, always); err != nil {
		return err
	}
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	if r := C.rlx_condition_enter(d.c, s.handle, inner.handle, condition, kind, call); r != 0 {
		return d.check(C.GoString(*call), r)
	}
	failed := body()
	if failed == nil && loop {
		failed = look(inner, 0)
	}
	var graph C.rlx_handle
	return errors.Join(failed, d.check("cuStreamEndCapture", C.rlx_cuStreamEndCapture(d.c, inner.handle, &graph)))
}
