package sim

import (
	"github.com/rlx-go/rlx/ir/loop"
)

// Counts are what a kernel does that costs time on a GPU, over the workgroups that were
// run: those of a whole dispatch, or of a sample.
type Counts struct {
	// Read and Written are the bytes of storage that threads touched. What several of
	// them read counts for each.
	Read, Written int
	// Requests are accesses of warps of 32 threads to storage, Sectors the pieces of 32
	// bytes that these touch: a device reads and writes no less. Copies that are
	// asynchronous, and multiply-adds, do not count.
	Requests, Sectors int
	// Shared are accesses of warps to shared memory, in pieces of up to 128 bytes, and
	// Conflicts how many more times its banks, 32 words of 4 bytes, have to be asked for
	// them, because several threads need other words of one bank.
	Shared, Conflicts int
	// Barriers are those that workgroups came to, each once.
	Barriers int
	// Groups is how many workgroups were run.
	Groups int
}

// What memory is made of on NVIDIA's GPUs since Volta (CUDA C++ Programming Guide,
// "Device Memory Accesses" and "Shared Memory").
const (
	warp        = 32
	sectorBytes = 32
	bankBytes   = 4
	banks       = 32
)

// countAccess counts an access of the active threads to one vector each of an array.
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
	seen := make(map[int]bool, len(threads))
	for _, t := range threads {
		first := a.offset + int(at.i[t])*bytes
		for s := first / sectorBytes; s <= (first+bytes-1)/sectorBytes; s++ {
			seen[s] = true
		}
	}
	c.Requests++
	c.Sectors += len(seen)
}

// shared counts how often the banks are asked for an access of a warp. Vectors of 8 bytes
// are moved by half a warp at a time, those of 16 by a quarter.
func (c *Counts) shared(a *array, at column, threads []int32) {
	bytes := a.Width * a.size
	together := warp * bankBytes / max(bytes, bankBytes)
	for len(threads) > 0 {
		n := 1
		for n < len(threads) && int(threads[n])/together == int(threads[0])/together {
			n++
		}
		words, most := map[int]bool{}, 1
		inBank := [banks]int{}
		for _, t := range threads[:n] {
			first := int(at.i[t]) * bytes
			for w := first / bankBytes; w <= (first+bytes-1)/bankBytes; w++ {
				if !words[w] {
					words[w] = true
					inBank[w%banks]++
					most = max(most, inBank[w%banks])
				}
			}
		}
		c.Shared++
		c.Conflicts += most - 1
		threads = threads[n:]
	}
}
