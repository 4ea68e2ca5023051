package edge

// NewMemory returns a store of some bytes.
var NewMemory = newMemory
