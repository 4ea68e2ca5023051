//go:build !amd64 && !arm64

package simd

const masksTails = false

// There is no machine code for other processors.
func tileCode(Level, bool, int, int, reading) []byte { return nil }

func dotsCode(Level, bool) []byte { return nil }

func packedCode(Level, Packing) []byte { return nil }

const minimaTogether = 1

func transposeCode(Level, int, int) []byte { return nil }

func pieceCode(Level) []byte { return nil }
