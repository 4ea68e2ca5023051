package hardware

// sheet holds the data sheet values of a device.
type sheet struct {
	name            string // part of the driver's name for it
	processors      int
	threads         int     // per processor
	bandwidth       float64 // GB/s
	f32, matrix     float64 // TFLOP/s, matrix of 16 bits with f32 sums, dense
	lanes           int     // f32 multiply-adds per cycle and processor
	cache           int     // KiB
	shared          int     // KiB per processor
	latency, launch float64 // ns, estimates except for an H200
	adapter         string  // the browsers' name for it, "" if not specific
	barrier         float64 // ns, 0 for that of an H200
}

// The fractions of its data sheet that an H200 reaches in the kernels of the cost model: 3.04
// of 4.8 TB/s, and in f32 35.6 of 67 TFLOP/s, in products of 4096 with plain tiles. Costs in cycles were
// fitted with 1.7 of the 1.98 GHz at which it has that many TFLOP/s.
const (
	memoryReached = 23 * 132 / 4800.
	flopsReached  = 270 * 132 / 67e3
	clockReached  = 1.7 / 1.98
)

// h200 is measured: memory and f32 as above; a launch in a CUDA graph takes 1.5 µs and waits as
// long for the previous one; the L2 cache moves 5.5 TB/s where memory moves 4. Cache is 48 MiB
// of its 50 MB. Matrix is the data sheet's 989 TFLOP/s. Split-K
// fills it with four workgroups of 64×128 results on each processor, a scatter with all threads that it holds.
var h200 = Profile{
	Name: "H200", Processors: 132, Threads: 2048, Bytes: 23, Flops: 270, Matrix: 989e3 / 132,
	Clock: 1.7, Cache: 48 << 20, Shared: 228 << 10, CacheRate: 1.35, Latency: 600, Barrier: 60, Launch: 3000, Measured: true,
	SplitThreads: 132 * 4 * 128, ScatterThreads: 1 << 18,
}

// H200 returns the profile of the device on which the rules of package sched were measured.
func H200() Profile { return h200 }

// Unknown returns the profile for an unknown device, as in a page whose browser hides it, or for
// plans that must run on any device: a large device with the rates of an H200. On a small device
// its plans have more workgroups than needed, which costs little; plans for a small device would
// leave most of a large one idle.
func Unknown() Profile {
	p := h200
	p.Name, p.Processors, p.Measured = "unknown", 128, false
	return p
}

// sheets lists the known devices; a name that contains another comes before it. NVIDIA's values are from its data
// sheets and the CUDA C++ Programming Guide (threads and shared memory by compute capability; lanes are the f32 units
// of a multiprocessor there). Apple's are from its technical specifications, with 128 lanes per core at 1.28 and 1.4
// GHz for f32. A core of Xe has 16 units of 8 lanes, a compute unit of RDNA 3 two times 64. Browsers report the
// generation of a GPU but not its size; for integrated GPUs it selects the smallest of the generation, for NVIDIA and
// AMD nothing. Software renderers are estimates for four CPU cores with 256-bit vectors. They switch between all
// threads of a workgroup at a barrier; its cost was measured with two cores and rows of 1,024 in workgroups of 256.
// The row of CPUs is for targets whose workgroups have one thread: eight cores at 3 GHz with two 256-bit
// multiply-adds per cycle. There, threads are the cache lines that a core loads at once, and shared memory is its
// second-level cache.
var sheets = []sheet{
	{"H100 PCIe", 114, 2048, 2000, 51, 756, 128, 50 << 10, 228, 600, 3000, "", 0},
	{"H100", 132, 2048, 3350, 67, 989, 128, 50 << 10, 228, 600, 3000, "", 0},
	{"A100-SXM4-80GB", 108, 2048, 2039, 19.5, 312, 64, 40 << 10, 164, 600, 3000, "", 0},
	{"A100", 108, 2048, 1555, 19.5, 312, 64, 40 << 10, 164, 600, 3000, "", 0},
	{"NVIDIA L40", 142, 1536, 864, 90.5, 181, 128, 96 << 10, 100, 600, 3000, "", 0},
	{"NVIDIA L4", 58, 1536, 300, 30.3, 121, 128, 48 << 10, 100, 600, 3000, "", 0},
	{"RTX 4090", 128, 1536, 1008, 82.6, 165, 128, 72 << 10, 100, 600, 3000, "", 0},
	{"RTX 3060", 28, 1536, 360, 12.7, 25.5, 128, 3 << 10, 100, 600, 3000, "", 0},
	{"Tesla T4", 40, 1024, 320, 8.1, 65, 64, 4 << 10, 64, 600, 3000, "", 0},
	{"Apple M1", 8, 1024, 68, 2.6, 2.6, 128, 8 << 10, 32, 700, 5000, "apple metal-3", 0},
	{"Apple M3", 10, 1024, 100, 3.6, 3.6, 128, 8 << 10, 32, 700, 5000, "", 0},
	{"Iris(R) Xe", 6, 1792, 68, 2.1, 2.1, 128, 4 << 10, 128, 800, 8000, "intel gen-12", 0},
	{"Radeon 780M", 12, 1024, 90, 8.3, 16.6, 128, 2 << 10, 64, 800, 8000, "", 0},
	{"SwiftShader", 4, 256, 25, 0.2, 0.2, 8, 8 << 10, 32, 100, 20000, "", 100e3},
	{"llvmpipe", 4, 256, 25, 0.3, 0.3, 8, 8 << 10, 32, 100, 20000, "", 8e3},
	{"CPU", 8, 16, 50, 0.77, 0.77, 16, 32 << 10, 1024, 90, 1000, "", 0},
}

// profile converts a data sheet to a profile.
func (s sheet) profile() Profile {
	each := float64(s.processors)
	barrier := s.barrier
	if barrier == 0 {
		barrier = h200.Barrier
	}
	return Profile{
		Name: s.name, Processors: s.processors, Threads: s.threads,
		Bytes: memoryReached * s.bandwidth / each, Flops: flopsReached * 1e3 * s.f32 / each, Matrix: 1e3 * s.matrix / each,
		Clock: clockReached * 1e3 * s.f32 / (2 * float64(s.lanes) * each),
		Cache: s.cache << 10, Shared: s.shared << 10, CacheRate: h200.CacheRate,
		Latency: s.latency, Barrier: barrier, Launch: s.launch,
		SplitThreads: h200.SplitThreads, ScatterThreads: h200.ScatterThreads, // not measured there
	}
}

// All returns the profiles of all known devices.
func All() []Profile {
	all := []Profile{h200}
	for _, s := range sheets {
		all = append(all, s.profile())
	}
	return all
}
