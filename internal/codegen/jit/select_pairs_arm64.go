package jit

// HasPairs reports whether kernels have [Kernel.LoadPart] and [Kernel.StorePairs].
func HasPairs() bool { return false }

func (g *generator) loadPart(*step)   {}
func (g *generator) storePairs(*step) {}
