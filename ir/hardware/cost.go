package hardware

// SectorBytes is the granularity of memory: a device reads and writes whole sectors.
const SectorBytes = 32

// fused is the fraction of peak arithmetic that kernels reach if half of their operations are
// fused multiply-adds.
const fused = 0.5

// Work is the work of a kernel, the input of the roofline model.
type Work struct {
	Bytes         float64 // memory traffic, at least
	Sectors       float64 // bytes of all sectors accessed, counted per access
	Ops           float64 // operations on all elements
	Threads       int     // number of threads
	BytesInFlight int     // bytes in flight per thread
}

// Time estimates the nanoseconds of a launch by the roofline model: the launch overhead plus
// the maximum of the times of memory, cache and arithmetic, and of the latency if too few bytes
// are in flight (Little's law).
func (w Work) Time(p Profile) float64 {
	atOnce := float64(min(max(w.Threads, 1), p.Resident()) * max(w.BytesInFlight, 1))
	return p.Launch + max(
		w.Bytes/p.Bandwidth(),
		w.Sectors/p.CacheBandwidth(),
		p.OpsTime(w.Ops),
		p.Latency*max(1, w.Bytes/atOnce),
	)
}

// CacheBandwidth returns the cache bandwidth in bytes per nanosecond.
func (p Profile) CacheBandwidth() float64 { return p.CacheRate * p.Bandwidth() }

// OpsTime returns the nanoseconds of operations of which half are fused multiply-adds.
func (p Profile) OpsTime(ops float64) float64 { return ops / (fused * p.Flops * float64(p.Processors)) }
