package kernel

import "github.com/rlx-go/rlx/ir"

// DeviceSize returns the bytes an element takes in device memory: booleans are
// 32-bit words there.
func DeviceSize(d ir.DType) int {
	if d == ir.Bool {
		return 4
	}
	return d.Size()
}

// DeviceBytes returns elements of type d, given as the host has them, as device
// memory has them. It is data itself where that is the same.
func DeviceBytes(d ir.DType, data []byte) []byte {
	if d != ir.Bool {
		return data
	}
	words := make([]byte, 4*len(data))
	WidenBools(words, data)
	return words
}

// HostBytes is the opposite of [DeviceBytes].
func HostBytes(d ir.DType, data []byte) []byte {
	if d != ir.Bool {
		return data
	}
	bools := make([]byte, len(data)/4)
	for i := range bools {
		bools[i] = data[4*i]
	}
	return bools
}

// WidenBools writes booleans, a byte each, as 32-bit words.
func WidenBools(words, bools []byte) {
	clear(words)
	for i, x := range bools {
		words[4*i] = x
	}
}
