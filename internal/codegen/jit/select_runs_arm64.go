package jit

// hasRuns is false: NEON's vectors are as short as a run may be.
func hasRuns() bool { return false }

func (g *generator) loadRuns(*step)  {}
func (g *generator) storeRuns(*step) {}
