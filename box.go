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
	toRow, fromRow := size, size
	for axis := inner; axis < len(box); axis++ {
		toRow, fromRow = toRow*toDims[axis], fromRow*fromDims[axis]
	}
	copyRows(to, from, box[:inner], toDims[:inner], fromDims[:inner], run, toRow, fromRow)
}

// copyRows copies run bytes of each row of a box.
func copyRows(to, from []byte, box, toDims, fromDims []int, run, toRow, fromRow int) {
	if run == 0 {
		return
	}
	if len(box) == 0 {
		copy(to[:run], from[:run])
		return
	}
	toStep, fromStep := toRow, fromRow
	for axis := 1; axis < len(box); axis++ {
		toStep, fromStep = toStep*toDims[axis], fromStep*fromDims[axis]
	}
	for i := range box[0] {
		copyRows(to[i*toStep:], from[i*fromStep:], box[1:], toDims[1:], fromDims[1:], run, toRow, fromRow)
	}
}
