// Package hardware describes devices as data, and holds the cost model.
//
// Package plan takes a [Profile] from the target's capabilities, package fusion uses it as the
// policy for reductions, and package sched to choose among candidate schedules. A plan depends
// on a profile and never on the machine it is made on: information from a driver is first put
// in a profile ([Profile.WithDriver]), so that the same module, target and profile give the same
// plan, natively and in a page. Start reading at profile.go; profiles.go is the table of devices,
// cost.go the roofline model and the rates of products.
package hardware

import (
	"math"
	"strings"
)

// Profile holds the parameters of the cost model for a device. Rates are per processor and are
// what kernels of this compiler reach, not data sheet values.
type Profile struct {
	Name string
	// Processors is the number of multiprocessors (NVIDIA), cores (Apple), compute units
	// (AMD) or Xe cores (Intel).
	Processors int
	// Threads is the maximal number of resident threads per processor.
	Threads int
	Bytes   float64 // memory bandwidth, bytes per nanosecond
	Flops   float64 // f32 operations per nanosecond, without matrix units
	Matrix  float64 // 16-bit operations with f32 sums per nanosecond, by the data sheet
	Clock   float64 // cycles per nanosecond
	Cache   int     // bytes of the last-level cache
	Shared  int     // bytes of shared memory per processor
	// CacheRate is the ratio of cache bandwidth to memory bandwidth.
	CacheRate float64
	Latency   float64 // nanoseconds of a load from memory
	Barrier   float64 // nanoseconds of a store to shared memory, a barrier and a load
	Launch    float64 // launch overhead in nanoseconds
	// SplitThreads is the number of threads up to which a product is cut into more split-K parts, and
	// ScatterThreads that up to which a scatter is cut into more chunks of positions.
	SplitThreads, ScatterThreads int
	// Measured reports that the rates were measured with this compiler's kernels. Other rates are
	// data sheet values times the fraction that an H200 reaches of its own.
	Measured bool
}

// Bandwidth returns the memory bandwidth of the device in bytes per nanosecond.
func (p Profile) Bandwidth() float64 { return p.Bytes * float64(p.Processors) }

// Arithmetic returns the f32 operations per nanosecond of the device.
func (p Profile) Arithmetic() float64 { return p.Flops * float64(p.Processors) }

// resident returns the number of threads a processor holds of kernels with typical register
// use: three quarters of the maximum.
func (p Profile) resident() int { return p.Threads / 4 * 3 }

// Resident returns the number of threads the device holds at once.
func (p Profile) Resident() int { return p.Processors * p.resident() }

// RetainedBytes returns the bytes of reused data that stay in the cache while other data stream through
// it: two thirds.
func (p Profile) RetainedBytes() int { return p.Cache / 3 * 2 }

// Waves returns how many times workgroups of the given size fill the device, rounded up: a
// partial wave takes as long as a whole one.
func (p Profile) Waves(groups, threads int) float64 {
	atOnce := p.Processors * max(1, p.resident()/max(threads, 1))
	return math.Ceil(float64(groups) / float64(atOnce))
}

// WithDriver returns the profile updated with what a driver reports: the number of processors, the
// peak memory bandwidth in bytes per nanosecond, and the bytes of the last-level cache, each 0
// if unknown. Measured rates are kept.
func (p Profile) WithDriver(processors int, bandwidth float64, cache int) Profile {
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

// Named returns the profile of a device by its driver's name for it, or by the words of a
// WebGPU adapter in order: vendor, architecture, device and description. It returns [Unknown]
// if no profile matches.
func Named(name string) Profile {
	name = lower(name)
	if strings.Contains(name, lower(h200.Name)) {
		return h200
	}
	for _, s := range sheets {
		if strings.Contains(name, lower(s.name)) || s.adapter != "" && strings.Contains(name, s.adapter) {
			return s.profile()
		}
	}
	return Unknown()
}

// lower returns s with the letters of ASCII in lower case. [strings.ToLower] would add the tables of all alphabets to
// the module of a page.
func lower(s string) string {
	out := []byte(s)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] += 'a' - 'A'
		}
	}
	return string(out)
}

// LaunchBytes returns the memory traffic that takes as long as the launch overhead.
func (p Profile) LaunchBytes() float64 { return p.Launch * p.Bandwidth() }
