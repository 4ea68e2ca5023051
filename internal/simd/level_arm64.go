package simd

// beyondGo returns the levels besides plain Go: all processors have NEON.
func beyondGo() []Level { return []Level{NEON} }
