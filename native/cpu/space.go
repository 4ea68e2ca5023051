package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// space is an iteration space: a list of coordinates, the last of which may run along the lanes of
// a block.
type space struct {
	vars []axis
	// wide is the number of vars that run along a block, row the number of points they
	// span, and rows the number of such rows.
	wide      int
	row, rows int
	block     int      // points of a block, but for the last of a row
	start     register // index in the row of the block's first point
}

// axis is one coordinate.
type axis struct {
	name   string
	size   int
	stride int // within the row, of a wide coordinate
	reg    register
	used   bool // whether the register of a wide coordinate is read
	long   bool // positions along it are I64
}

// class returns the register class of positions along the axis.
func (a *axis) class() class {
	if a.long {
		return classLong
	}
	return classInt
}

// points are the coordinates of a space and their sizes.
type points struct {
	vars []scalar.Expr
	dims []int
}

// manyRows is the number of rows from which one call of a kernel for all of them costs little beside their work.
const manyRows = 16

// longLast returns the points with the longest coordinate last where the last has few: one call of a kernel does the rows
// along it.
func (p points) longLast() points {
	last, longest := len(p.dims)-1, 0
	for i, n := range p.dims {
		if n > p.dims[longest] {
			longest = i
		}
	}
	if last < 1 || p.dims[last] >= manyRows || p.dims[longest] < manyRows*p.dims[last] {
		return p
	}
	vars, dims := slices.Clone(p.vars), slices.Clone(p.dims)
	return points{append(slices.Delete(vars, longest, longest+1), p.vars[longest]), append(slices.Delete(dims, longest, longest+1), p.dims[longest])}
}

// newSpace returns a space whose last wide coordinates run along a block.
func newSpace(p points, wide int) space {
	s, vars, dims := space{row: 1, rows: 1, block: blockLanes, wide: wide}, p.vars, p.dims
	for i, d := range dims {
		s.vars = append(s.vars, axis{name: vars[i].Name, size: d, long: vars[i].Type == ir.I64})
	}
	for i := len(dims) - 1; i >= 0; i-- {
		if i >= len(dims)-wide {
			s.vars[i].stride = s.row
			s.row *= dims[i]
			continue
		}
		s.rows *= dims[i]
	}
	return s
}

// blockWidths returns the numbers of last coordinates that are candidates to run along a
// block: with few, blocks are short; with many, coordinates differ from lane to lane.
func blockWidths(dims []int) []int {
	out := []int{min(1, len(dims))}
	row := 1
	for w := 1; w < len(dims); w++ {
		if row *= dims[len(dims)-w]; row >= blockLanes/4 {
			break
		}
		out = append(out, w+1)
	}
	return out
}

// scalars returns the coordinates that are uniform in a block, wides those that differ by
// lane.
func (s *space) scalars() []axis { return s.vars[:len(s.vars)-s.wide] }
func (s *space) wides() []axis   { return s.vars[len(s.vars)-s.wide:] }

func (s *space) points() int { return s.row * s.rows }

// blocks returns the number of blocks in a row.
func (s *space) blocks() int { return (s.row + s.block - 1) / s.block }

// lanes returns the maximum number of lanes of a block.
func (s *space) lanes() int { return max(1, min(s.block, s.row)) }

// coordinateLanes returns the number of lanes of the coordinates along a block: a kernel handles a whole row, or
// as many points of it as one call may.
func (s *space) coordinateLanes() int { return max(1, min(maxBlockPoints, s.row)) }

// startClass returns the register class of start.
func (s *space) startClass() class {
	if s.row > math.MaxInt32 {
		return classLong
	}
	return classInt
}

// counter is a uniform integer register.
type counter struct {
	short *int32
	long  *int64 // nil for 32-bit registers
}

func (f *files) counter(r register) counter {
	if r.class == classLong {
		return counter{long: &f.long[r.index][0]}
	}
	return counter{short: &f.ints[r.index][0]}
}

func (c counter) get() int {
	if c.long != nil {
		return int(*c.long)
	}
	return int(*c.short)
}

func (c counter) set(x int) {
	if c.long != nil {
		*c.long = int64(x)
	} else {
		*c.short = int32(x)
	}
}

// boundSpace is a space bound to the registers of a machine.
type boundSpace struct {
	*space
	scalar []counter
	start  counter
	wide   []func(from, n int) // write the used coordinates along a block
	// The block whose coordinates are in the registers: a block that is the same for all rows is
	// written once.
	from, n int
}

func (m *machine) bindSpace(s *space) boundSpace {
	b := boundSpace{space: s, start: m.files.counter(s.start)}
	for _, a := range s.scalars() {
		b.scalar = append(b.scalar, m.files.counter(a.reg))
	}
	for _, a := range s.wides() {
		switch {
		case !a.used:
		case a.long:
			b.wide = append(b.wide, coordinateWriter(m.files.long[a.reg.index], a))
		default:
			b.wide = append(b.wide, coordinateWriter(m.files.ints[a.reg.index], a))
		}
	}
	return b
}

// setRow writes the coordinates of a row.
func (b *boundSpace) setRow(row int) {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		size := b.vars[i].size
		b.scalar[i].set(row % size)
		row /= size
	}
}

// firstRow writes the coordinates of the first row.
func (b *boundSpace) firstRow() {
	for _, at := range b.scalar {
		at.set(0)
	}
}

// nextRow advances the coordinates to the next row.
func (b *boundSpace) nextRow() {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		next := b.scalar[i].get() + 1
		if next < b.vars[i].size {
			b.scalar[i].set(next)
			return
		}
		b.scalar[i].set(0)
	}
}

// setBlock writes the coordinates along a block of n points.
func (b *boundSpace) setBlock(from, n int) {
	b.start.set(from)
	if from == b.from && n <= b.n {
		return
	}
	b.from, b.n = from, n
	for _, fill := range b.wide {
		fill(from, n)
	}
}

// coordinateWriter returns the function that writes a coordinate for a block of n points.
func coordinateWriter[T int32 | int64](d []T, a axis) func(from, n int) {
	return func(from, n int) { fillCoordinate(d[:n], from, a.stride, a.size) }
}

// fillCoordinate writes (from+i)/stride mod size for each lane i.
func fillCoordinate[T int32 | int64](d []T, from, stride, size int) {
	at, left := from/stride%size, stride-from%stride
	for len(d) > 0 {
		n := min(len(d), left)
		if stride == 1 {
			n = min(len(d), size-at)
			countUp(d[:n], T(at))
			at += n - 1
		} else {
			fill(d[:n], T(at))
		}
		d, left = d[n:], stride
		if at++; at == size {
			at = 0
		}
	}
}

// countUp writes at, at + 1 and so on.
func countUp[T int32 | int64](d []T, at T) {
	for ; len(d) >= 8; d, at = d[8:], at+8 {
		d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = at, at+1, at+2, at+3, at+4, at+5, at+6, at+7
	}
	for i := range d {
		d[i] = at + T(i)
	}
}
