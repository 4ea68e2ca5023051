package hardware

// sheet is a data sheet: what a maker says of a device as a whole.
type sheet struct {
	name            string // a part of what the driver calls it
	processors      int
	threads         int     // of a processor
	bandwidth       float64 // GB/s
	f32, matrix     float64 // TFLOP/s, matrix of 16 bits with f32 sums, dense
	cache           int     // KiB
	shared          int     // KiB of a processor
	latency, launch float64 // ns, estimates but for an H200's
	adapter         string  // what browsers say in place of the name, "" where that tells nothing
}

// What an H200 reaches of its data sheet in kernels that costs are held to: 3.04 of 4.8
// TB/s, and of 67 TFLOP/s in f32 35.6, in products of 4096 of plain tiles.
const (
	memoryReached = 23 * 132 / 4800.
	flopsReached  = 270 * 132 / 67e3
)

// h200 was measured: memory and f32 as above; a launch in a CUDA graph takes 1.5 µs, and
// waits as long for the one before; the second cache moves 5.5 TB/s where memory moves 4. Of
// its 50 MB 48 MiB are counted. Matrix is the data sheet's 989 TFLOP/s.
var h200 = Profile{
	Name: "H200", Processors: 132, Threads: 2048, Bytes: 23, Flops: 270, Matrix: 989e3 / 132,
	Cache: 48 << 20, Shared: 228 << 10, CacheRate: 1.35, Latency: 600, Barrier: 60, Launch: 3000, Measured: true,
}

// H200 is the profile that the rules of package sched were measured with.
func H200() Profile { return h200 }

// Unknown is a device that nothing is known of, as in a page whose browser does not tell, or
// where a plan is made for any device: a large one, with the rates of an H200. On a small
// device its plans have more workgroups than are needed, which costs little; plans of a
// small device would leave most of a large one idle.
func Unknown() Profile {
	p := h200
	p.Name, p.Processors, p.Measured = "unknown", 128, false
	return p
}

// sheets are the devices that are known by name; a name that holds another stands before
// it. NVIDIA's are those of its data sheets and of the CUDA C++ Programming Guide (threads
// and shared memory by compute capability), Apple's those of its technical specifications,
// with 128 lanes a core at 1.28 and 1.4 GHz for f32. Browsers tell the generation of a GPU
// and not its size, which stands for the smallest of those that have no memory of their own;
// of NVIDIA's and AMD's it tells nothing. What computes on a CPU is an estimate
// for four cores with vectors of 256 bits.
var sheets = []sheet{
	{"H100 PCIe", 114, 2048, 2000, 51, 756, 50 << 10, 228, 600, 3000, ""},
	{"H100", 132, 2048, 3350, 67, 989, 50 << 10, 228, 600, 3000, ""},
	{"A100-SXM4-80GB", 108, 2048, 2039, 19.5, 312, 40 << 10, 164, 600, 3000, ""},
	{"A100", 108, 2048, 1555, 19.5, 312, 40 << 10, 164, 600, 3000, ""},
	{"NVIDIA L40", 142, 1536, 864, 90.5, 181, 96 << 10, 100, 600, 3000, ""},
	{"NVIDIA L4", 58, 1536, 300, 30.3, 121, 48 << 10, 100, 600, 3000, ""},
	{"RTX 4090", 128, 1536, 1008, 82.6, 165, 72 << 10, 100, 600, 3000, ""},
	{"RTX 3060", 28, 1536, 360, 12.7, 25.5, 3 << 10, 100, 600, 3000, ""},
	{"Tesla T4", 40, 1024, 320, 8.1, 65, 4 << 10, 64, 600, 3000, ""},
	{"Apple M1", 8, 1024, 68, 2.6, 2.6, 8 << 10, 32, 700, 5000, "apple metal-3"},
	{"Apple M3", 10, 1024, 100, 3.6, 3.6, 8 << 10, 32, 700, 5000, ""},
	{"Iris(R) Xe", 6, 1792, 68, 2.1, 2.1, 4 << 10, 128, 800, 8000, "intel gen-12"},
	{"Radeon 780M", 12, 1024, 90, 8.3, 16.6, 2 << 10, 64, 800, 8000, ""},
	{"SwiftShader", 4, 256, 25, 0.2, 0.2, 8 << 10, 32, 100, 20000, ""},
	{"llvmpipe", 4, 256, 25, 0.3, 0.3, 8 << 10, 32, 100, 20000, ""},
}

// profile makes a profile of a data sheet.
func (s sheet) profile() Profile {
	each := float64(s.processors)
	return Profile{
		Name: s.name, Processors: s.processors, Threads: s.threads,
		Bytes: memoryReached * s.bandwidth / each, Flops: flopsReached * 1e3 * s.f32 / each, Matrix: 1e3 * s.matrix / each,
		Cache: s.cache << 10, Shared: s.shared << 10, CacheRate: h200.CacheRate,
		Latency: s.latency, Barrier: h200.Barrier, Launch: s.launch,
	}
}

// All returns the profiles of all devices that are known by name.
func All() []Profile {
	all := []Profile{h200}
	for _, s := range sheets {
		all = append(all, s.profile())
	}
	return all
}
