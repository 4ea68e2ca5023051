package jit

// hasGathers is false: NEON has none.
func hasGathers() bool { return false }

func (m *memory) gather(*step) {}
