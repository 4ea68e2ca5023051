package hardware

import "math/bits"

// Traffic holds limits of package fusion that weigh memory traffic against operations and launches.
type Traffic struct {
	// CheapOps is the number of simple operations that users of a value repeat instead of loading 4 bytes.
	CheapOps int
	// RepeatedOps is that of a value which is computed from one of its size, where little but memory traffic
	// takes time.
	RepeatedOps int
	// LaunchBytes is the size from which moving a value takes as long as a launch.
	LaunchBytes int
	// RepeatsGathers reports whether elements at loaded indices that are broadcast may be gathered for each
	// result again, instead of by a kernel before.
	RepeatsGathers bool
	// Searches is the number of times that elements of a result may look whether an update is theirs, instead of kernels
	// that order the updates.
	Searches int
}

// Operations in the time of 4 and of 8 bytes on an H200. Gelu, of 12 simple operations, reads and writes 8 bytes
// an element at the speed of memory (4,040 GB/s, where a transpose moves 3,981; and 47 GB/s on two cores of a
// CPU), so that loading 4 bytes takes at least the time of 6: the lower bound. By the plan of a step of
// irtest.CharacterGPT, twice as many bind 3 % fewer bytes and hold 15 % less; more were not tried, and users
// that repeat operations load their operands, too. Storing a value costs 8 bytes an element, in which time
// there are a hundred operations of f32 by the data sheet (67 TFLOP/s and 4.8 TB/s); half of that is reserved for the
// users' other work.
const (
	cheapOps    = 6
	maxCheapOps = 2 * cheapOps
	repeatedOps = 48
)

// Traffic returns the limits of the device: an H200's operations, scaled by those in the time of a byte, and
// [Profile.LaunchBytes] rounded down to a power of two. Gathers are repeated, as caches hold what many threads gather.
func (p Profile) Traffic() Traffic {
	ops := p.Flops / p.Bytes / (h200.Flops / h200.Bytes)
	return Traffic{
		CheapOps:       min(int(cheapOps*ops), maxCheapOps),
		RepeatedOps:    int(repeatedOps * ops),
		RepeatsGathers: true,
		Searches:       1 << 24,
		LaunchBytes:    1 << max(0, bits.Len(uint(p.LaunchBytes()))-1),
	}
}
