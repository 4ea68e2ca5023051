package rlx

// copyInto copies x into the start of each axis of to, which is at least as large, and fills the
// rest with zeros.
func copyInto(to, x Tensor) {
	clear(to.Data)
	copyBox(to.Data, x.Data, x.Dims, to.Dims, x.Dims, x.DType.Size())
}

// copyBox copies the box at the start of each axis between two row-major arrays of the given sizes.
// box has its number of elements along each axis.
func copyBox(to, from []byte, box, toDims, fromDims []int, size int) {
	inner := len(box)
	run := size // bytes that are contiguous in both arrays
	for inner > 0 {
		inner--
		run *= box[inner]
		if toDims[inner] != box[inner] || fromDims[inner] != box[inner] {
			break
		}
	}
	if run > 0 {
		copyRows(to, from, box[:inner], strides(toDims, size), strides(fromDims, size), run)
	}
}

// strides returns the distance in bytes of neighbours along each axis of a row-major array.
func strides(dims []int, size int) []int {
	out := make([]int, len(dims))
	for axis := len(dims) - 1; axis >= 0; axis-- {
		out[axis] = size
		size *= dims[axis]
	}
	return out
}

// copyRows copies run bytes of each row of a box between arrays of the given strides.
func copyRows(to, from []byte, box, toStrides, fromStrides []int, run int) {
	if len(box) == 0 {
		copy(to[:run], from[:run])
		return
	}
	for i := range box[0] {
		copyRows(to[i*toStrides[0]:], from[i*fromStrides[0]:], box[1:], toStrides[1:], fromStrides[1:], run)
	}
}
