package sim

import (
	"slices"

	"github.com/rlx-go/rlx/ir/loop"
)

// Counts are performance counters of a kernel, over the workgroups that were run: all of a
// dispatch, or a sample.
type Counts struct {
	// Read and Written are the bytes of storage accessed, counted per thread.
	Read, Written int
	// Requests are accesses to storage per warp of 32 threads, Sectors the 32-byte sectors
	// that they touch, the granularity of memory; fewer sectors per request mean better
	// coalescing. Asynchronous copies and multiply-adds are not counted.
	Requests, Sectors int
	// Shared are accesses to shared memory per warp, in pieces of up to 128 bytes, and
	// Conflicts the additional cycles of bank conflicts: several threads need different
	// words of one of the 32 banks of 4 bytes.
	Shared, Conflicts int
	// Barriers are the barriers executed, counted per workgroup.
	Barriers int
	// Groups is the number of workgroups run.
	Groups int
}

// The memory system of NVIDIA's GPUs since Volta (CUDA C++ Programming Guide, "Device Memory
// Accesses" and "Shared Memory").
const (
	warp        = 32
	sectorBytes = 32
	bankBytes   = 4
	banks       = 32
)

// countAccess counts an access of each active thread to a vector of an array.
func (m *machine) countAccess(a *array, at column, active []int32) {
	c := m.opts.Counts
	if c == nil || a.Space == loop.Private {
		return
	}
	for len(active) > 0 {
		n := 1
		for n < len(active) && active[n]/warp == active[0]/warp {
			n++
		}
		if a.Space == loop.Shared {
			c.shared(a, at, active[:n])
		} else {
			c.storage(a, at, active[:n])
		}
		active = active[n:]
	}
}

// storage counts the sectors of an access of a warp.
func (c *Counts) storage(a *array, at column, threads []int32) {
	bytes := a.Width * a.size
	var room [2 * warp]int
	sectors := room[:0]
	for _, t := range threads {
		first := a.offset + int(at.i[t])*bytes
		for s := first / sectorBytes; s <= (first+bytes-1)/sectorBytes; s++ {
			if n := len(sectors); n == 0 || sectors[n-1] != s {
				sectors = append(sectors, s)
			}
		}
	}
	slices.Sort(sectors)
	c.Requests++
	c.Sectors += len(slices.Compact(sectors))
}

// shared counts the bank conflicts of a warp's access. A half warp accesses vectors of 8 bytes
// at a time, a quarter warp those of 16.
func (c *Counts) shared(a *array, at column, threads []int32) {
	bytes := a.Width * a.size
	together := warp * bankBytes / max(bytes, bankBytes)
	for len(threads) > 0 {
		n := 1
		for n < len(threads) && int(threads[n])/together == int(threads[0])/together {
			n++
		}
		c.Shared++
		c.Conflicts += busiestBank(at, threads[:n], bytes) - 1
		threads = threads[n:]
	}
}

// busiestBank returns the largest number of different words that threads need of one bank, each
// thread a vector of some bytes.
func busiestBank(at column, threads []int32, bytes int) int {
	var (
		room   [banks]int
		words  = room[:0]
		inBank [banks]int
	)
	for _, t := range threads {
		first := int(at.i[t]) * bytes
		for w := first / bankBytes; w <= (first+bytes-1)/bankBytes; w++ {
			if n := len(words); n == 0 || words[n-1] != w {
				words = append(words, w)
			}
		}
	}
	slices.Sort(words)
	busiest := 1
	for _, w := range slices.Compact(words) {
		inBank[w%banks]++
		busiest = max(busiest, inBank[w%banks])
	}
	return busiest
}
