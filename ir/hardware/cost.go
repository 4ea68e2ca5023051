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

// OpsTime returns the nanoseconds of operations, half of them fused multiply-adds.
func (p Profile) OpsTime(ops float64) float64 { return ops / (fused * p.Flops * float64(p.Processors)) }

// Rates are the speeds that products and attention reach on the matrix units of a processor, in operations
// per nanosecond. An H200's are measured; those of other devices scale with their data sheets.
type Rates struct {
	// WarpGroups are the rates of 16-bit products by warp-group MMA in tiles of 256, 128 and 64
	// columns, Warps those by the MMA of warps. Products of f32 as TF32 have half of them.
	WarpGroups, Warps [3]float64
	// Attention and AttentionF32 are the rates of attention in 16 bits and in TF32.
	Attention, AttentionF32 float64
	// Library16, LibraryTF32 and LibraryF32 are the rates of the products of the device's library.
	// LibraryTransposed is that of TF32 where the left operand alone is transposed.
	Library16, LibraryTF32, LibraryTransposed, LibraryF32 float64
}

// h200Rates are measured with matrices of 8192 by warp groups, and of 4096 by warps, in tiles of
// 256 and, by warp groups, of 128 columns. The rate of warp groups for 64 columns is an estimate,
// and the other rates of warps follow from what bounds them: each warp reads all columns from
// shared memory at 128 bytes per cycle. Attention took 2,700 to 3,500 for causal heads of 2048 in
// 16 bits, 1,600 to 1,800 in TF32. BenchmarkProducts of native/cuda measures the library.
var h200Rates = Rates{
	WarpGroups: [3]float64{5000, 4300, 2800}, Warps: [3]float64{2500, 2350, 2100},
	Attention: 2700, AttentionF32: 1600,
	Library16: 5600, LibraryTF32: 2950, LibraryTransposed: 1970, LibraryF32: 380,
}

// Rates returns the rates of products and attention: an H200's, scaled by the rate of matrix units, and of
// f32 units for the library's products in f32.
func (p Profile) Rates() Rates {
	r, matrix := h200Rates, p.Matrix/h200.Matrix
	for i := range r.WarpGroups {
		r.WarpGroups[i] *= matrix
		r.Warps[i] *= matrix
	}
	for _, x := range []*float64{&r.Attention, &r.AttentionF32, &r.Library16, &r.LibraryTF32, &r.LibraryTransposed} {
		*x *= matrix
	}
	r.LibraryF32 = r.LibraryF32 * p.Flops / h200.Flops
	return r
}
