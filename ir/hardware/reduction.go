package hardware

// Assumptions about the kernels of reductions, made when fusion decides.
const (
	// rowThreads is the size of a workgroup, and rowBytes the bytes in flight per thread:
	// four elements of 4 bytes.
	rowThreads = 256
	rowBytes   = 16
	// contiguousRows is the number of contiguous rows per workgroup, so that its threads
	// read whole lines of 128 bytes.
	contiguousRows = 32
	// rowGroups is the desired number of workgroups per processor of a reduction, which
	// mostly waits for memory.
	rowGroups = 8
)

// Limits of splitting rows. A part has at least splitLength elements. Contiguous rows make few
// workgroups, so their parts may be shorter: the sums of 384 columns of 16,384 elements took
// 14.7 µs in 64 parts on an H200 in WebGPU, and 19.3 in 16. Other rows are split from minParts
// parts: a workgroup reduces 4,096 elements in less time than a second launch takes.
const (
	splitLength     = 1024
	splitContiguous = 256
	minParts        = 8
)

// Limits of fusing more into the kernel of a reduction: rows shorter than splitReduce are not
// worth splitting, and enoughRows fill a device.
const (
	splitReduce = 4096
	enoughRows  = 64
)

// maxStageSlowdown is the slowdown over a split reduction that a stage over whole rows may have:
// fusing it saves a pass over memory and a launch or two.
const maxStageSlowdown = 2

// RowSplits returns the number of workgroups to split each of the rows of a reduction over, 1 for
// no split. contiguous says that adjacent rows are contiguous in memory.
func (p Profile) RowSplits(rows, length int, contiguous bool) int {
	rows = max(rows, 1)
	if !contiguous {
		if length < minParts*splitLength {
			return 1
		}
		return max(1, min(p.Workgroups(rowGroups)/rows, length/splitLength))
	}
	if length < splitLength {
		return 1
	}
	return max(1, min(p.Workgroups(rowGroups)/groupsOf(rows, contiguous), length/splitContiguous))
}

// Workgroups returns about each workgroups per processor: a power of two, because rows and
// parts often are.
func (p Profile) Workgroups(each int) int {
	n, wanted := 1, each*max(p.Processors, 1)
	for 3*n <= 2*wanted {
		n *= 2
	}
	return n
}

// groupsOf returns the number of workgroups of unsplit rows.
func groupsOf(rows int, contiguous bool) int {
	if contiguous {
		return (rows + contiguousRows - 1) / contiguousRows
	}
	return rows
}

// FillsDevice reports whether unsplit rows of a reduction fill the device, so that its kernel may
// compute more than the reduction.
func (p Profile) FillsDevice(rows, length int) bool {
	return rows >= enoughRows || length <= splitReduce
}

// AllowsStages reports whether further stages in the kernel of a reduction may depend on whole rows.
// A kernel with several stages cannot be split, and with few workgroups it leaves most of the
// device idle: the statistics of 64 contiguous channels are two workgroups, which read 3 GB/s
// where a device moves 3,000.
func (p Profile) AllowsStages(rows, length int, contiguous bool) bool {
	if !p.FillsDevice(rows, length) || p.RowSplits(rows, length, contiguous) == 1 {
		return p.FillsDevice(rows, length)
	}
	stage := Work{Bytes: 4 * float64(rows) * float64(length), Threads: groupsOf(rows, contiguous) * rowThreads, BytesInFlight: rowBytes}
	whole := stage.Time(p)
	stage.Threads = p.Resident()
	return whole <= maxStageSlowdown*(stage.Time(p)+p.Launch)
}

// repeatedLaunch is the part of a launch that a number which many rows compute may take: kernels of products with rows of
// weights take longer than their operations alone. Products of an 8B language model with the norm inside are slower on an H200
// (4-bit weights: 459 tokens/s without, 432 with), those of SmolLM2-135M faster (1,435 and 1,525).
const repeatedLaunch = 0.25

// RepeatsRow reports whether each of some rows of a reduction may also compute the reduction of a row that all of
// them read, instead of a kernel of one workgroup before.
func (p Profile) RepeatsRow(rows, length int) bool {
	return p.OpsTime(float64(rows)*float64(length)) <= repeatedLaunch*p.Launch
}

// Serial is the profile of a processor with one thread per workgroup, which whole rows keep as
// busy as parts do.
type Serial struct{ Profile }

// AllowsStages is [Profile.FillsDevice].
func (s Serial) AllowsStages(rows, length int, _ bool) bool { return s.FillsDevice(rows, length) }

// RepeatsRow is false: a launch costs little.
func (Serial) RepeatsRow(int, int) bool { return false }

// serialLaunchBytes stands for [Profile.LaunchBytes] where maps are fused: threads that share one wait
// for the last at its end. With the profile's the step of a recommender took 5.2 ms instead of 4.6 (two cores of an
// EPYC, 29 November 2026).
const serialLaunchBytes = 8 << 20

// serialSearches take as long as the loops of a scatter to begin. A look takes 3 ns and an update 10, and the updates of a
// scatter need no order.
const serialSearches = 1 << 12

// Traffic repeats no gathers: a load at a loaded index takes the time of a vector of others.
func (s Serial) Traffic() Traffic {
	t := s.Profile.Traffic()
	t.LaunchBytes, t.RepeatsGathers, t.Searches = serialLaunchBytes, false, serialSearches
	return t
}
