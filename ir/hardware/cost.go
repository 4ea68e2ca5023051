package hardware

// SectorBytes is what memory is made of: a device reads and writes a sector as a whole.
const SectorBytes = 32

// fused is the part of a processor's operations that kernels reach where only half of them
// are pairs of a product and a sum.
const fused = 0.5

// Work is what a kernel does that may bound its time.
type Work struct {
	Bytes    float64 // read and written at least
	Sectors  float64 // bytes of the sectors that accesses touch, each access for itself
	Ops      float64 // operations, on all elements
	Threads  int     // that there are
	UnderWay int     // bytes that a thread reads without waiting in between
}

// Time estimates the nanoseconds of a launch: the most of what memory, the cache and
// arithmetic take (the roofline), and of waiting where too little is under way at a time
// (Little's law).
func (w Work) Time(p Profile) float64 {
	atOnce := float64(min(max(w.Threads, 1), p.Resident()) * max(w.UnderWay, 1))
	return p.Launch + max(
		w.Bytes/p.Bandwidth(),
		w.Sectors/p.CacheBandwidth(),
		p.OpsTime(w.Ops),
		p.Latency*max(1, w.Bytes/atOnce),
	)
}

// CacheBandwidth is how many bytes the cache moves in a nanosecond.
func (p Profile) CacheBandwidth() float64 { return p.CacheRate * p.Bandwidth() }

// OpsTime is how many nanoseconds the device takes for operations of which half are pairs.
func (p Profile) OpsTime(ops float64) float64 { return ops / (fused * p.Flops * float64(p.Processors)) }
