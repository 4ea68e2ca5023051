// Package hardware describes the processors that plans are made for, as data, and has the one
// model by which schedules are costed on them.
//
// A plan depends on a profile and never on the machine that it is made on: what a driver
// tells of a device is put into a profile first ([Profile.Asked]), so that the same module,
// target and profile make the same plan, natively and in a page.
package hardware

import (
	"math"
	"strings"
)

// Profile is what costs depend on of a device. Rates are of one processor and count what
// kernels of this compiler reach, not what a data sheet promises.
type Profile struct {
	Name string
	// Processors is how many multiprocessors (NVIDIA), cores (Apple), compute units (AMD) or
	// Xe cores (Intel) there are.
	Processors int
	// Threads is how many threads a processor holds at once where registers allow it.
	Threads int
	Bytes   float64 // of memory that a processor moves in a nanosecond
	Flops   float64 // operations of f32 in a nanosecond, without matrix units
	Matrix  float64 // operations of 16 bits with f32 sums in a nanosecond, by the data sheet
	Cache   int     // bytes of the last cache before memory
	Shared  int     // bytes of shared memory of a processor
	// CacheRate is how much faster than memory that cache is.
	CacheRate float64
	Latency   float64 // nanoseconds that a load takes
	Barrier   float64 // nanoseconds of a store to shared memory, a barrier and a load
	Launch    float64 // nanoseconds that a launch takes at least
	// Measured says that the rates were measured with kernels of this compiler. Others are
	// the data sheet's, times what an H200 reaches of its own.
	Measured bool
}

// Bandwidth is how many bytes of memory the device moves in a nanosecond.
func (p Profile) Bandwidth() float64 { return p.Bytes * float64(p.Processors) }

// Arithmetic is how many operations of f32 the device does in a nanosecond.
func (p Profile) Arithmetic() float64 { return p.Flops * float64(p.Processors) }

// resident is how many threads of kernels with some registers a processor holds: three
// quarters of the most.
func (p Profile) resident() int { return p.Threads / 4 * 3 }

// Resident is how many threads the device holds at once.
func (p Profile) Resident() int { return p.Processors * p.resident() }

// Kept is how many bytes the cache keeps of what is read again while other data pass
// through it: two thirds.
func (p Profile) Kept() int { return p.Cache / 3 * 2 }

// Waves is how many times the device is filled by workgroups of the given size, the last
// time counted as a whole: it takes no less.
func (p Profile) Waves(groups, threads int) float64 {
	atOnce := p.Processors * max(1, p.resident()/max(threads, 1))
	return math.Ceil(float64(groups) / float64(atOnce))
}

// MatrixScale is how fast the matrix units of a processor are beside an H200's, on which
// the rates of products and of attention were measured.
func (p Profile) MatrixScale() float64 { return p.Matrix / h200.Matrix }

// Asked returns the profile with what a driver tells of the device: the number of
// processors, the bandwidth of memory in bytes a nanosecond, as the data sheet counts it,
// and the bytes of the last cache, each 0 where it is not known. Rates that were measured
// stay.
func (p Profile) Asked(processors int, bandwidth float64, cache int) Profile {
	if processors > 0 {
		p.Processors = processors
	}
	if p.Measured {
		return p
	}
	if bandwidth > 0 {
		p.Bytes = memoryReached * bandwidth / float64(p.Processors)
	}
	if cache > 0 {
		p.Cache = cache
	}
	return p
}

// Named returns the profile of a device by the name that its driver gives it, or by the
// words that WebGPU has for an adapter, one after the other: vendor, architecture, device
// and description. It is [Unknown] where no profile has the name.
func Named(name string) Profile {
	name = strings.ToLower(name)
	if strings.Contains(name, strings.ToLower(h200.Name)) {
		return h200
	}
	for _, s := range sheets {
		if strings.Contains(name, strings.ToLower(s.name)) || s.adapter != "" && strings.Contains(name, s.adapter) {
			return s.profile()
		}
	}
	return Unknown()
}

// LaunchBytes is how many bytes memory moves in the time of a launch.
func (p Profile) LaunchBytes() float64 { return p.Launch * p.Bandwidth() }
