package cpu

import "github.com/rlx-go/rlx/ir/scalar"

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
}

// newSpace returns a space of which the last coordinates, so many as wide says,
// run along a block.
func newSpace(vars []scalar.Expr, dims []int, wide int) space {
	s := space{row: 1, rows: 1, wide: wide}
	for i, d := range dims {
		s.vars = append(s.vars, axis{name: vars[i].Name, size: d})
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

// widths returns how many of the last coordinates may be worth running along a
// block: few make short blocks, many make coordinates that differ from lane to
// lane.
func widths(dims []int) []int {
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

// blocks returns how many blocks a row has.
func (s *space) blocks() int { return (s.row + lanes - 1) / lanes }

// lanesOf returns how many lanes a block of the space has at most.
func (s *space) lanes() int { return max(1, min(lanes, s.row)) }

// coordinateLanes returns how many lanes the coordinates along a block have: those of the
// whole row where one kernel goes through it.
func (s *space) coordinateLanes() int {
	if s.row <= longestRow {
		return max(1, s.row)
	}
	return lanes
}

// boundSpace is a space with its registers.
type boundSpace struct {
	*space
	scalar []*int32
	start  *int32
	wide   [][]int32
	// The block whose coordinates are in the registers, to be written once where it is
	// the same for all rows.
	from, n int
}

func (m *machine) bindSpace(s *space) boundSpace {
	b := boundSpace{space: s, start: &m.files.ints[s.start.index][0]}
	for _, a := range s.scalars() {
		b.scalar = append(b.scalar, &m.files.ints[a.reg.index][0])
	}
	for _, a := range s.wides() {
		if !a.used {
			b.wide = append(b.wide, nil)
			continue
		}
		b.wide = append(b.wide, m.files.ints[a.reg.index])
	}
	return b
}

// setRow puts the coordinates of a row into their registers.
func (b *boundSpace) setRow(row int) {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		size := b.vars[i].size
		*b.scalar[i] = int32(row % size)
		row /= size
	}
}

// firstRow goes to the first row.
func (b *boundSpace) firstRow() {
	for _, at := range b.scalar {
		*at = 0
	}
}

// nextRow goes from one row to the next.
func (b *boundSpace) nextRow() {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		if *b.scalar[i]++; *b.scalar[i] < int32(b.vars[i].size) {
			return
		}
		*b.scalar[i] = 0
	}
}

// setBlock puts the coordinates along a block of n points into their registers.
func (b *boundSpace) setBlock(from, n int) {
	*b.start = int32(from)
	if from == b.from && n <= b.n {
		return
	}
	b.from, b.n = from, n
	for i, a := range b.wides() {
		if a.used {
			fillCoordinate(b.wide[i][:n], from, a.stride, a.size)
		}
	}
}

// fillCoordinate writes (from+i)/stride mod size for each lane i.
func fillCoordinate(d []int32, from, stride, size int) {
	at, left := int32(from/stride%size), stride-from%stride
	for i := range d {
		d[i] = at
		if left--; left == 0 {
			left = stride
			if at++; at == int32(size) {
				at = 0
			}
		}
	}
}
