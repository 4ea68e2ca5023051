package sim

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// batch is an Mma statement in flight: the variables it uses and the shared memory it reads.
type batch struct {
	names []string
	reads []tileRead
}

// tileRead is the elements of a tile of shared memory that a multiply-add reads: base plus each offset.
type tileRead struct {
	a       *array
	base    int
	offsets []int
}

// free adds a check that no multiply-add in flight uses a variable.
func (c *compiler) free(name string) {
	m := c.m
	if m.whole.held == nil {
		return
	}
	c.add(func(active []int32) {
		if _, held := m.part.held[name]; held && len(active) > 0 {
			m.fail(Unfinished, active[0], name, 0, 0)
		}
	})
}

// mma computes the products at once, since their operands must not be accessed before the wait.
func (c asyncCompiler) mma(s *loop.Mma) {
	m := c.m
	run := make([]func(group int) []tileRead, len(s.Terms))
	var names []string
	for i, t := range s.Terms {
		names = append(append(names, t.Sums...), t.LeftRegisters...)
		run[i] = c.term(s.Shape, t)
	}
	c.add(func(active []int32) {
		if !m.converged(active) {
			return
		}
		b := batch{names: names}
		for group := int(active[0]) / loop.WarpGroup; group < (int(active[0])+len(active))/loop.WarpGroup; group++ {
			for _, f := range run {
				if b.reads = append(b.reads, f(group)...); m.fault != nil {
					return
				}
			}
		}
		for _, name := range names {
			m.part.held[name]++
		}
		for _, r := range b.reads {
			for _, offset := range r.offsets {
				r.a.async[r.base+offset].reading++
			}
		}
		m.part.batches = append(m.part.batches, b)
	})
}

func (c asyncCompiler) mmaWait(s *loop.MmaWait) {
	m := c.m
	c.add(func(active []int32) {
		if !m.converged(active) {
			return
		}
		m.finish(s.Pending)
		for _, name := range s.Names {
			if m.part.held[name] > 0 {
				m.fail(Unfinished, active[0], name, 0, 0)
			}
			delete(m.part.held, name)
		}
	})
}

// finish completes all but the last pending statements. Other threads know of the completion
// only after a barrier, so the operands count as read now.
func (m *machine) finish(pending int) {
	for p := m.part; len(p.batches) > pending; {
		b := p.batches[0]
		p.batches = p.batches[1:]
		for _, name := range b.names {
			p.held[name]--
		}
		who := m.severalHere()
		for _, r := range b.reads {
			for _, offset := range r.offsets {
				r.a.async[r.base+offset].reading--
				m.reads(&r.a.cells[r.base+offset], who)
			}
		}
	}
}

// term returns a function that computes one multiply-add of a warp group and returns the tiles it
// read.
func (c asyncCompiler) term(a loop.MmaShape, t loop.MmaTerm) func(group int) []tileRead {
	m := c.m
	sums := make([]column, len(t.Sums))
	for i, name := range t.Sums {
		sums[i] = c.scope[name]
	}
	left := make([]column, len(t.LeftRegisters))
	for i, name := range t.LeftRegisters {
		left[i] = c.scope[name]
	}
	b := c.tile(a, t.B, a.N)
	var tile func(thread int32, out []float64) []tileRead
	if t.LeftRegisters == nil {
		tile = c.tile(a, t.A, loop.MmaRows)
	}
	rows, columns := origins(a)
	depth := a.K()
	x, y := make([]float64, loop.MmaRows*depth), make([]float64, a.N*depth)
	return func(group int) []tileRead {
		first := int32(group * loop.WarpGroup)
		var read []tileRead
		if tile != nil {
			read = tile(first, x)
		} else {
			for thread := range int32(loop.WarpGroup) {
				for i, col := range left {
					row, k := a.Left(i)
					at := x[(rows[thread]+row)*depth+k:]
					if a.Operand == dtype.F32 {
						at[columns[thread]] = operandBits(a.Operand, col.f[first+thread])
						continue
					}
					bits := uint64(col.i[first+thread])
					at[2*columns[thread]], at[2*columns[thread]+1] = a.Operand.FloatFromBits(bits&0xffff), a.Operand.FloatFromBits(bits>>16&0xffff)
				}
			}
		}
		if read = append(read, b(first, y)...); m.fault != nil {
			return nil
		}
		for thread := range int32(loop.WarpGroup) {
			for i, col := range sums {
				row, column := a.Sum(i)
				at := &col.f[first+thread]
				if t.First {
					*at = 0
				}
				*at = dotAdd(*at, x[(rows[thread]+row)*depth:][:depth], y[(2*columns[thread]+column)*depth:][:depth])
			}
		}
		return read
	}
}

// origins returns the origins of the threads of a warp group.
func origins(a loop.MmaShape) (rows, columns [loop.WarpGroup]int) {
	s := scalar.NewSimplifier()
	for t := range rows {
		row, column := a.Origin(scalar.ConstI(dtype.I32, int64(t)))
		r, _ := s.Simplify(row).IntConst()
		c, _ := s.Simplify(column).IntConst()
		rows[t], columns[t] = int(r), int(c)
	}
	return rows, columns
}

// dotAdd adds a dot product to a sum and rounds once. The rounding of hardware differs.
func dotAdd(sum float64, x, y []float64) float64 {
	odd, i := 0.0, 0 // two sums, so that neither waits for the other
	y = y[:len(x)]
	for ; i+1 < len(x); i += 2 {
		sum += x[i] * y[i]
		odd += x[i+1] * y[i+1]
	}
	if i < len(x) {
		sum += x[i] * y[i]
	}
	return float64(float32(sum + odd))
}

// operandBits returns the part of an operand that the hardware uses: for f32 the bits of TF32.
func operandBits(t dtype.DType, x float64) float64 {
	if t != dtype.F32 {
		return x
	}
	return float64(math.Float32frombits(math.Float32bits(float32(x)) &^ (1<<13 - 1)))
}

// tile returns a function that reads an operand from shared memory for the warp group with the
// given first thread: for each free position the elements along k.
func (c asyncCompiler) tile(a loop.MmaShape, t loop.Tile, free int) func(first int32, out []float64) []tileRead {
	m, array, at, depth := c.m, c.m.arrays[t.Array], c.expr(t.At), a.K()
	offsets := make([]int, free*depth)
	for i := range offsets {
		offsets[i] = t.Element(a.Operand, i/depth, i%depth)
	}
	return func(first int32, out []float64) []tileRead {
		base := int(at.i[first])
		for thread := first; thread < first+loop.WarpGroup; thread++ {
			if base*array.size%loop.TileAlign != 0 || int(at.i[thread]) != base {
				m.fail(Misaligned, thread, array.Name, int(at.i[thread]), 0)
				return nil
			}
		}
		who := m.severalHere()
		for i, offset := range offsets {
			if !m.noteMma(array, base+offset, first, who) {
				return nil
			}
			out[i] = operandBits(a.Operand, array.own.f[base+offset])
		}
		return []tileRead{{array, base, offsets}}
	}
}

// noteMma records a read of an element by the hardware for a warp group, as the accessor who, and
// reports whether it is allowed.
func (m *machine) noteMma(a *array, elem int, first, who int32) bool {
	if elem < 0 || elem >= a.Len {
		m.fail(OutOfBounds, first, a.Name, elem, 0)
		return false
	}
	c, s := &a.cells[elem], &a.async[elem]
	switch {
	case c.writeEpoch < m.first:
		m.fail(Uninitialised, first, a.Name, elem, 0)
	case s.inFlight:
		m.fail(Unfinished, first, a.Name, elem, 0)
	case s.stored:
		m.fail(Unfenced, first, a.Name, elem, 0)
	case !m.happenedBefore(c.writeEpoch, c.writer, who):
		m.fail(Race, first, a.Name, elem, otherThread(c.writer))
	default:
		m.reads(c, who)
		return true
	}
	return false
}

// pack rounds two values and packs their bits in a word.
func (c *compiler) pack(s *loop.Pack, low, high column) {
	to := c.scope[s.Name]
	c.add(func(active []int32) {
		for _, t := range active {
			to.i[t] = int64(s.Type.FloatBits(low.f[t]) | s.Type.FloatBits(high.f[t])<<16)
		}
	})
}

// shuffle exchanges values between threads.
func (c *compiler) shuffle(s *loop.Shuffle) []string {
	value, out, m := c.expr(s.Value), c.define(s.Name, s.Value.Type), c.m
	c.add(func(active []int32) {
		if !m.converged(active) {
			return
		}
		for _, t := range active {
			out.set(t, value.value(t^int32(s.Xor)))
		}
	})
	return []string{s.Name}
}
