package emit

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// GroupThreads is the workgroup size of map kernels: a multiple of every subgroup size, and
// within WebGPU's default limits.
const GroupThreads = 256

// UsualThreads is the workgroup size except for long rows: 256 on CUDA, where 1,024 slowed
// softmax and layer norm by a fifth on an H100.
func UsualThreads(caps loop.Caps) int {
	if WithMma && caps.Dialect == dtype.CUDA {
		return min(caps.Invocations, GroupThreads)
	}
	return caps.Invocations
}

// FullThreads is the number of threads that fill a device, each with a sector in flight.
func FullThreads(caps loop.Caps) int { return aheadThreads * caps.Profile().Processors }

// aheadThreads of a multiprocessor, with a sector of 32 bytes each, have more than half of the
// bytes in flight that memory needs: 23 bytes in each of 600 ns. All of them would need nearly
// twice as many chunks of a scan, and split rows are read twice.
const aheadThreads = 256

// ThinSide is the largest side of results that are a matrix times a vector.
const ThinSide = 2

// SmallProduct is the number of multiply-adds up to which a contraction takes less time than a
// launch. Tiles gain nothing there and cost much on software GPUs: SwiftShader takes a second to
// compile the initialisation of workgroup memory, which it unrolls word by word, and is slow at
// every barrier.
const SmallProduct = 1 << 21

// CostlyBarriers reports whether a barrier takes longer than a load from memory, as on devices in
// software, where threads share rows only if there are too few of them.
func CostlyBarriers(caps loop.Caps) bool {
	p := caps.Profile()
	return p.Barrier > p.Latency
}

// SectorElements is the number of 4-byte elements in a sector of memory.
const SectorElements = hardware.SectorBytes / 4

// PointOps is the number of operations per element besides its value: address, load and store.
const PointOps = 10

// BytesOf returns the size of tensors in bytes.
func BytesOf(tensors []*fusion.Tensor) float64 {
	n := 0.0
	for _, t := range tensors {
		n += float64(t.Bytes())
	}
	return n
}
