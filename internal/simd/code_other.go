//go:build !amd64 && !arm64

package simd

const masksTails = false

// tileCode returns nil: there is no machine code for other processors.
func tileCode(Level, kind, int, int, reading) []byte { return nil }

func dotsCode(Level, bool) []byte { return nil }

func substituteCode(Level, bool, int) []byte { return nil }

func packedCode(Level, Packing) []byte { return nil }

func unpackCode(Level, Packing) []byte { return nil }

const minimaInCode = false

func transposeCode(Level, int, int) []byte { return nil }

func pieceCode(Level) []byte { return nil }

func shuffleCode(Level, shuffle) []byte { return nil }
