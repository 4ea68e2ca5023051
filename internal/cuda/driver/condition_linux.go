//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"errors"
)

// branchesFrom is the first version of CUDA in which the bodies of conditional nodes may
// contain copies and conditional nodes.
const branchesFrom = 12040

// Branches reports whether graphs can have conditional nodes.
func (d *Device) Branches() bool {
	return d.library.Version >= branchesFrom && C.rlx_branches(d.library.cu) != 0
}

// ConditionName is the kernel of [ConditionSource].
const ConditionName = "k_condition"

// ConditionSource is the kernel that sets a condition: to whether a word is not 0, or to
// true. The driver provides the function that it calls; no header or library of the toolkit
// is needed.
const ConditionSource = `extern "C" __device__ void cudaGraphSetConditional(unsigned long long condition, unsigned value);
extern "C" __global__ void __launch_bounds__(1) k_condition(const unsigned *word, unsigned long long condition, unsigned always) {
  cudaGraphSetConditional(condition, always | (*word != 0u));
}
`

// Conditional adds a conditional node to the graph that the stream captures. Its body is the
// work that body enqueues on inner. It runs if a word is not 0 or, if loop is set, as a
// do-while loop until the word is 0. set is the kernel of [ConditionSource].
func (s *Stream) Conditional(inner *Stream, set Function, word Ptr, loop bool, body func() error) error {
	d := s.device
	var condition C.ulonglong
	if err := d.check("cuGraphConditionalHandleCreate", C.rlx_condition_make(d.c, s.handle, &condition)); err != nil {
		return err
	}
	setCondition := func(on *Stream, always int) error {
		one := [3]int{1, 1, 1}
		return on.Launch(set, one, one, []Ptr{word, Ptr(condition)}, []int{always})
	}
	always, kind := 0, C.int(0)
	if loop {
		always, kind = 1, 1
	}
	if err := setCondition(s, always); err != nil {
		return err
	}
	r, name := noted(func(call **C.char) C.int {
		return C.rlx_condition_enter(d.c, s.handle, inner.handle, condition, kind, call)
	})
	if r != 0 {
		return d.check(name, r)
	}
	failed := body()
	if failed == nil && loop {
		failed = setCondition(inner, 0)
	}
	var graph C.rlx_handle
	return errors.Join(failed, d.check("cuStreamEndCapture", C.rlx_cuStreamEndCapture(d.c, inner.handle, &graph)))
}
