package sim

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// fragment holds the elements of a fragment for each subgroup, row by row.
type fragment struct {
	typ   dtype.DType
	elems [][]float64
}

const fragmentElems = loop.FragmentSize * loop.FragmentSize

// defineFragment creates a fragment.
func (c *compiler) defineFragment(name string, t dtype.DType) *fragment {
	f := &fragment{typ: t, elems: make([][]float64, c.m.k.Subgroups())}
	for i := range f.elems {
		f.elems[i] = make([]float64, fragmentElems)
	}
	if c.fragments == nil {
		c.fragments = map[string]*fragment{}
	}
	c.fragments[name] = f
	return f
}

// eachSubgroup runs f for each subgroup and its first thread; all threads of the workgroup must
// be active.
func (c *compiler) eachSubgroup(f func(subgroup int, thread int32)) {
	m := c.m
	c.add(func(active []int32) {
		if !m.converged(active) {
			return
		}
		for i := 0; i*m.lanes < m.threads && m.fault == nil; i++ {
			f(i, int32(i*m.lanes))
		}
	})
}

func (c *compiler) fragmentZero(s *loop.FragmentZero) []string {
	f := c.defineFragment(s.Name, dtype.F32)
	c.eachSubgroup(func(i int, _ int32) { clear(f.elems[i]) })
	return []string{s.Name}
}

// fragmentAt returns the index of the first element of a fragment, which must be uniform in the
// subgroup.
func (m *machine) fragmentAt(a *array, at column, thread int32) (first int64, ok bool) {
	first = at.i[thread]
	for t := thread; t < thread+int32(m.lanes); t++ {
		if at.i[t] != first {
			m.fail(Misaligned, t, a.Name, int(at.i[t]), 0)
			return 0, false
		}
	}
	return first, true
}

func (c *compiler) fragmentLoad(s *loop.FragmentLoad) []string {
	a, at, m := c.m.arrays[s.Array], c.expr(s.At), c.m
	f := c.defineFragment(s.Name, a.DType)
	row, column := int64(s.Stride), int64(1)
	if s.Transposed {
		row, column = column, row
	}
	value := newColumn(a.DType, m.threads)
	c.eachSubgroup(func(i int, thread int32) {
		first, ok := m.fragmentAt(a, at, thread)
		for j := 0; j < fragmentElems && ok; j++ {
			elem := m.index(a, first+int64(j/loop.FragmentSize)*row+int64(j%loop.FragmentSize)*column, thread)
			if ok = elem >= 0 && m.noteReadOf(a, elem, thread); ok {
				a.get(elem, thread, value)
				f.elems[i][j] = value.f[thread]
			}
		}
	})
	return []string{s.Name}
}

// noteReadOf is noteRead for an element that any thread of a subgroup may read.
func (m *machine) noteReadOf(a *array, elem int, thread int32) bool {
	if !m.noteRead(a, elem, thread) {
		return false
	}
	for i := range a.unit {
		a.cells[a.first+elem*a.unit+i].reader = several
	}
	return true
}

// fragmentMulAdd rounds each product and sum to f32, in the order of the contracted axis.
// Devices may sum in another order.
func (c *compiler) fragmentMulAdd(s *loop.FragmentMulAdd) {
	sum, x, y := c.fragments[s.Sum], c.fragments[s.A], c.fragments[s.B]
	c.eachSubgroup(func(i int, _ int32) {
		for r := range loop.FragmentSize {
			for col := range loop.FragmentSize {
				acc := sum.elems[i][r*loop.FragmentSize+col]
				for k := range loop.FragmentSize {
					acc = float64(float32(acc + x.elems[i][r*loop.FragmentSize+k]*y.elems[i][k*loop.FragmentSize+col]))
				}
				sum.elems[i][r*loop.FragmentSize+col] = acc
			}
		}
	})
}

func (c *compiler) fragmentStore(s *loop.FragmentStore) {
	a, at, m, f := c.m.arrays[s.Array], c.expr(s.At), c.m, c.fragments[s.Name]
	value := newColumn(a.DType, m.threads)
	c.eachSubgroup(func(i int, thread int32) {
		first, ok := m.fragmentAt(a, at, thread)
		for j := 0; j < fragmentElems && ok; j++ {
			// Which thread stores an element is unspecified, so no thread may access it
			// without a barrier: vary the thread.
			t := thread + int32(j%m.lanes)
			elem := m.index(a, first+int64(j/loop.FragmentSize*s.Stride+j%loop.FragmentSize), t)
			if ok = elem >= 0 && m.noteWrite(a, elem, t); ok {
				value.f[t] = f.elems[i][j]
				a.put(elem, t, value)
			}
		}
	})
}
