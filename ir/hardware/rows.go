package hardware

// What kernels of reductions are taken to be, where it is decided what is one kernel.
const (
	// rowThreads is how many threads a workgroup has, and rowBytes how much each reads
	// without waiting in between: four elements of 4 bytes.
	rowThreads = 256
	rowBytes   = 16
	// besideRows is how many rows a workgroup has that lie side by side, so that its
	// threads read whole lines of 128 bytes.
	besideRows = 32
	// rowGroups is how many workgroups of a reduction, which does little else than wait for
	// memory, a processor should have.
	rowGroups = 8
)

// Bounds of cutting rows. A part has at least splitLength elements. Rows that are read side
// by side have so few workgroups that each may have less, where many can: the sums of 384
// columns of 16,384 elements took 14.7 µs in 64 parts on an H200 in WebGPU, and 19.3 in 16.
// Other rows are cut from leastParts parts on: a workgroup goes through 4,096 elements in
// less time than a second launch takes.
const (
	splitLength = 1024
	splitBeside = 256
	leastParts  = 8
)

// Bounds of what is computed in the kernel of a reduction beside its sums: rows shorter than
// splitReduce are not worth cutting, and enoughRows are many.
const (
	splitReduce = 4096
	enoughRows  = 64
)

// rowStarves is how many times as long as in parts a stage may take in whole rows: what
// joins it in its kernel saves a pass over memory and a launch or two.
const rowStarves = 2

// Parts returns over how many workgroups each of a number of rows is best cut that a kernel
// reduces, 1 for none. Beside says that neighbouring rows lie side by side in memory.
func (p Profile) Parts(rows, length int, beside bool) int {
	rows = max(rows, 1)
	if !beside {
		if length < leastParts*splitLength {
			return 1
		}
		return max(1, min(p.Workgroups(rowGroups)/rows, length/splitLength))
	}
	if length < splitLength {
		return 1
	}
	return max(1, min(p.Workgroups(rowGroups)/groupsOf(rows, beside), length/splitBeside))
}

// Workgroups is about how many workgroups the device has where each processor has a number
// of them: a power of two, which rows and parts are often numbers of.
func (p Profile) Workgroups(each int) int {
	n, wanted := 1, each*max(p.Processors, 1)
	for 3*n <= 2*wanted {
		n *= 2
	}
	return n
}

// groupsOf is how many workgroups rows are that are not cut.
func groupsOf(rows int, beside bool) int {
	if beside {
		return (rows + besideRows - 1) / besideRows
	}
	return rows
}

// Whole reports whether a reduction fills the device without cutting its rows, so that its
// kernel may compute more than sums.
func (p Profile) Whole(rows, length int) bool { return rows >= enoughRows || length <= splitReduce }

// Stages reports whether further stages may depend on whole rows in the kernel of a
// reduction. What has several stages cannot be cut, and where its rows are few workgroups,
// most of the device would wait: the statistics of 64 channels that lie side by side are
// two workgroups, which read 3 GB/s where a device moves 3,000.
func (p Profile) Stages(rows, length int, beside bool) bool {
	if !p.Whole(rows, length) || p.Parts(rows, length, beside) == 1 {
		return p.Whole(rows, length)
	}
	stage := Work{Bytes: 4 * float64(rows) * float64(length), Threads: groupsOf(rows, beside) * rowThreads, UnderWay: rowBytes}
	whole := stage.Time(p)
	stage.Threads = p.Resident()
	return whole <= rowStarves*(stage.Time(p)+p.Launch)
}

// Serial is a processor whose workgroups are one thread, so that a row by itself keeps it as
// busy as parts do.
type Serial struct{ Profile }

// Stages is [Profile.Whole].
func (s Serial) Stages(rows, length int, _ bool) bool { return s.Whole(rows, length) }
