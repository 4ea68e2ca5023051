package jit

// HasPairs reports whether kernels have [Kernel.LoadPart] and [Kernel.StorePairs].
func HasPairs() bool { return false }

func (m *memory) loadPart(*step)   {}
func (m *memory) storePairs(*step) {}
