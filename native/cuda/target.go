package cuda

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// minBranchElements is how many elements two branches must compute for only one to run: a
// condition takes 4 µs on an H200 where it does not hold and 9 where it does.
const minBranchElements = 1 << 20

// maxBytes is more than any GPU has.
const maxBytes = 1 << 40

// maxThreads is how many threads a workgroup may have (CUDA C++ Programming Guide, compute
// capabilities).
const maxThreads = 1024

// Target is what plans are compiled for: any GPU since Volta. Workgroups keep to
// 16 KiB of shared memory, of which a multiprocessor holds several, and but for rows that
// are too long for the cache to 256 threads: with 1,024 threads and 48 KiB, softmax and
// layer norm are a fifth slower on an H100, and of what was timed only one small
// transformer was faster.
func Target() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers = 64
	l.Invocations, l.Workgroup[0], l.Workgroup[1] = maxThreads, maxThreads, maxThreads
	l.BindingBytes = int(min(maxBytes, math.MaxInt)) / plan.RowBytes * plan.RowBytes // memory does the rest
	l.BufferBytes = l.BindingBytes
	caps := loop.Caps{Dialect: dtype.CUDA, Limits: l, Shuffles: true, AtomicFloats: loop.NativeFloats, Long: loop.LongElements}
	return plan.Target{Name: Name, Caps: caps, Branches: true, Branch: minBranchElements}
}
