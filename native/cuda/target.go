package cuda

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/plan"
)

// worthBranch is how many elements two branches must compute for only one to run: a
// condition takes 4 µs on an H200 where it does not hold and 9 where it does.
const worthBranch = 1 << 20

// Target is what plans are compiled for: any GPU since Volta. Workgroups keep to
// 256 threads and 16 KiB of shared memory, of which a multiprocessor holds
// several: with 1,024 threads and 48 KiB, softmax and layer norm are a fifth
// slower on an H100, and of what was timed only one small transformer was faster.
func Target() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers = 64
	// Positions in an array are 32-bit numbers, so that 4-byte elements bound an
	// array; memory does the rest.
	l.BindingBytes = int(min(4*int64(loop.MaxElements), math.MaxInt)) / plan.RowBytes * plan.RowBytes
	l.BufferBytes = l.BindingBytes
	return plan.Target{Name: Name, Caps: loop.Caps{Dialect: dtype.CUDA, Limits: l, Shuffles: true, AtomicFloats: loop.NativeFloats}, Branches: true, Branch: worthBranch}
}
