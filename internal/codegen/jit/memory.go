//go:build amd64 || arm64

package jit

// memory selects the instructions of loads and stores.
type memory struct {
	*registers
	first  int  // number of the kernel's first array in the call
	paired bool // the kernel is
	once   bool // stores are of the lanes of the mask
	// prefetches is true in reductions.
	prefetches bool
}

// begin loads the addresses of the first arrays of a kernel.
func (m *memory) begin(k *Kernel) {
	m.paired, m.prefetches = k.isPaired(), len(k.accumulators) > 0
	for i := range min(k.arrays, len(pointers)) {
		m.loadPointer(pointers[i], arrayArgument+m.first+i)
	}
}
