package simd

// beyondGo returns the levels above plain Go: all processors have NEON.
func beyondGo() []Level { return []Level{NEON} }
