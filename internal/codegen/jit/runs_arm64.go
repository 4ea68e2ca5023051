package jit

// hasRuns is false: NEON's vectors are as short as a run may be.
// HasShifts reports whether kernels have [Kernel.Shift].
func HasShifts() bool { return false }

func hasRuns() bool { return false }

func (m *memory) loadRuns(*step)  {}
func (m *memory) storeRuns(*step) {}
