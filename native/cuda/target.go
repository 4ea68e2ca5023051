package cuda

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// minBranchElements is the number of elements from which on a conditional runs one branch
// instead of both: a conditional node costs 4 µs not taken and 9 µs taken (H200).
const minBranchElements = 1 << 20

// maxBytes is more than any GPU has.
const maxBytes = 1 << 40

// maxThreads is the maximal size of a workgroup (CUDA C++ Programming Guide, compute
// capabilities).
const maxThreads = 1024

// Target returns the compilation target of any GPU since Volta. Workgroups use at most
// 16 KiB of shared memory, for occupancy, and 256 threads except for rows too long for the
// cache: with 1,024 threads and 48 KiB, softmax and layer norm are a fifth slower (H100).
func Target() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers = 64
	l.Invocations, l.Workgroup[0], l.Workgroup[1] = maxThreads, maxThreads, maxThreads
	l.BindingBytes = int(min(maxBytes, math.MaxInt)) / plan.RowBytes * plan.RowBytes // memory does the rest
	l.BufferBytes = l.BindingBytes
	caps := loop.Caps{Dialect: dtype.CUDA, Limits: l, Shuffles: true, AtomicFloats: loop.NativeFloats, Long: loop.LongElements}
	return plan.Target{Name: Name, Caps: caps, Branches: true, Branch: minBranchElements, OneArena: true}
}
