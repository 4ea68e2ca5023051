package sched

// Bounds of attention in blocks.
const (
	attendThreads = 128
	// attendShared is the workgroup memory in bytes: 8 KiB for a group of scores, of which a
	// thread has sixteen, and half as much for a factor beside it. All devices of WebGPU
	// have 16 KiB.
	attendShared = 12 << 10
	// attendVectors is how many vectors of sums each of a thread's four rows has room for:
	// 64 registers in all.
	attendVectors = 4
	// attendDepth is how many contracted positions are in workgroup memory at a time: twice
	// as many of both factors of the widest tiles do not fit.
	attendDepth = 16
	// attendAcross is how many threads a row of them has at most.
	attendAcross = 32
	// attendLongest bounds queries, keys and values: two sums as long, those of keys and
	// values, fit the vectors where threads stand in the longest rows.
	attendLongest = attendVectors / 2 * 4 * attendAcross
)

// attendTile is how attention is cut: a workgroup has a block of rows and goes
// through blocks of columns; one of the two are queries and the other keys. Its
// threads stand in rows of across. Each has four neighbouring rows, and vectors
// of four columns in each of the groups into which a block is cut.
type attendTile struct{ across, groups int }

// pickAttendTile returns the tile with most rows of which a thread has registers
// for its part of the sums, rows that long.
func pickAttendTile(sums ...int) attendTile {
	for t := (attendTile{across: 8, groups: 1}); ; t.across *= 2 {
		vectors := 0
		for _, length := range sums {
			vectors += t.vectors(length)
		}
		if vectors <= attendVectors || t.across == attendAcross {
			return t
		}
	}
}

func (t attendTile) down() int { return attendThreads / t.across }
func (t attendTile) rows() int { return 4 * t.down() }

// piece is the columns of a group, which pass through workgroup memory together.
func (t attendTile) piece() int { return 4 * t.across }
func (t attendTile) cols() int  { return t.groups * t.piece() }

// vectors is how many vectors of a row of sums each thread has.
func (t attendTile) vectors(length int) int { return ceilDiv(length, 4*t.across) }

// depth is how many contracted positions of rows and columns workgroup memory
// holds. Each of them has a vector more than it needs, so that neighbouring
// threads do not write to the same bank.
func (t attendTile) depth(length int) int {
	return largestPower(min(attendDepth, length, attendShared/4/(t.rows()+t.cols()+8)))
}

// turns is how many columns' vectors workgroup memory holds besides a piece.
func (t attendTile) turns(length int) int {
	free := attendShared/4 - t.rows()*t.piece()
	return largestPower(min(t.piece(), free/(t.vectors(length)*4*t.across)))
}

// largestPower returns the largest power of two up to n, which is positive.
func largestPower(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}
