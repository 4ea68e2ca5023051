package loop

import "github.com/rlx-go/rlx/ir/dtype"

// DeviceSize returns the bytes an element takes in device memory: booleans are
// 32-bit words there.
func DeviceSize(d dtype.DType) int {
	if d == dtype.Bool {
		return 4
	}
	return d.Size()
}

// DeviceBytes returns elements of type d, given as the host has them, as device
// memory has them. It is data itself where that is the same.
func DeviceBytes(d dtype.DType, data []byte) []byte {
	if d != dtype.Bool {
		return data
	}
	words := make([]byte, 4*len(data))
	WidenBools(words, data)
	return words
}

// HostBytes is the opposite of [DeviceBytes].
func HostBytes(d dtype.DType, data []byte) []byte {
	if d != dtype.Bool {
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

// Bytes returns the device memory that the array takes, see [DeviceSize]: 0 where
// that is as much as is bound.
func (a Array) Bytes() int { return DeviceSize(a.DType) * a.Width * a.Len }
