package cpu

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// space is a list of coordinates, the last of which may make up the lanes of a
// block.
type space struct {
	vars []axis
	// wide is how many of vars run along a block; row is how many points they
	// have together and points how many rows there are.
	wide      int
	row, rows int
	start     register // the place of the block's first point in its row
}

// axis is one coordinate.
type axis struct {
	name   string
	size   int
	stride int // within the row, for wide ones
	reg    register
	used   bool // whether a wide one's register is read
	long   bool // positions along it are I64
}

// class is that of the registers of positions along the axis.
func (a *axis) class() class {
	if a.long {
		return classLong
	}
	return classInt
}

// newSpace returns a space of which the last coordinates, so many as wide says,
// run along a block.
func newSpace(vars []scalar.Expr, dims []int, wide int) space {
	s := space{row: 1, rows: 1, wide: wide}
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

// blockWidths returns how many of the last coordinates may be worth running along a
// block: few make short blocks, many make coordinates that differ from lane to
// lane.
func blockWidths(dims []int) []int {
	out := []int{min(1, len(dims))}
	row := 1
	for w := 1; w < len(dims); w++ {
		if row *= dims[len(dims)-w]; row >= lanes/4 {
			break
		}
		out = append(out, w+1)
	}
	return out
}

// scalars are the coordinates that do not run along a block, wides those that
// do.
func (s *space) scalars() []axis { return s.vars[:len(s.vars)-s.wide] }
func (s *space) wides() []axis   { return s.vars[len(s.vars)-s.wide:] }

// points returns how many points there are.
func (s *space) points() int { return s.row * s.rows }

// sumBlocks returns how many blocks a row has.
func (s *space) blocks() int { return (s.row + lanes - 1) / lanes }

// lanesOf returns how many lanes a block of the space has at most.
func (s *space) lanes() int { return max(1, min(lanes, s.row)) }

// coordinateLanes returns how many lanes the coordinates along a block have: those of the
// whole row where one kernel goes through it.
func (s *space) coordinateLanes() int {
	if s.row <= maxRowLanes {
		return max(1, s.row)
	}
	return lanes
}

// startClass is the class of the register of a block's place in its row.
func (s *space) startClass() class {
	if s.row > math.MaxInt32 {
		return classLong
	}
	return classInt
}

// counter is a register of one lane that counts positions.
type counter struct {
	short *int32
	long  *int64 // nil for all but long ones
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

// boundSpace is a space with its registers.
type boundSpace struct {
	*space
	scalar []counter
	start  counter
	wide   []func(from, n int) // write the coordinates along a block that are read
	// The block whose coordinates are in the registers, to be written once where it is
	// the same for all rows.
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

// setRow puts the coordinates of a row into their registers.
func (b *boundSpace) setRow(row int) {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		size := b.vars[i].size
		b.scalar[i].set(row % size)
		row /= size
	}
}

// firstRow goes to the first row.
func (b *boundSpace) firstRow() {
	for _, at := range b.scalar {
		at.set(0)
	}
}

// nextRow goes from one row to the next.
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

// setBlock puts the coordinates along a block of n points into their registers.
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

// coordinateWriter returns what writes a coordinate into a register, for a block of n points.
func coordinateWriter[T int32 | int64](d []T, a axis) func(from, n int) {
	return func(from, n int) { fillCoordinate(d[:n], from, a.stride, a.size) }
}

// fillCoordinate writes (from+i)/stride mod size for each lane i.
func fillCoordinate[T int32 | int64](d []T, from, stride, size int) {
	at, left := T(from/stride%size), stride-from%stride
	for i := range d {
		d[i] = at
		if left--; left == 0 {
			left = stride
			if at++; at == T(size) {
				at = 0
			}
		}
	}
}
