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

// fragments translates the statements on fragments.
type fragments struct {
	*compiler
	named map[string]*fragment // those defined so far; the checker has verified their scopes
}

// stmt translates a statement and returns the names it brings into scope.
func (fs *fragments) stmt(s loop.Stmt) []string {
	switch s := s.(type) {
	case *loop.FragmentZero:
		return fs.zero(s)
	case *loop.FragmentLoad:
		return fs.read(s)
	case *loop.FragmentMulAdd:
		fs.mulAdd(s)
	case *loop.FragmentStore:
		fs.write(s)
	}
	return nil
}

// create creates a fragment.
func (fs *fragments) create(name string, t dtype.DType) *fragment {
	f := &fragment{typ: t, elems: make([][]float64, fs.m.k.Subgroups())}
	for i := range f.elems {
		f.elems[i] = make([]float64, fragmentElems)
	}
	fs.named[name] = f
	return f
}

// eachSubgroup runs f for each subgroup and its first thread; all threads of the workgroup must
// be active.
func (fs *fragments) eachSubgroup(f func(subgroup int, thread int32)) {
	m := fs.m
	fs.add(func(active []int32) {
		if !m.converged(active) {
			return
		}
		for i := 0; i*m.lanes < m.threads && m.fault == nil; i++ {
			f(i, int32(i*m.lanes))
		}
	})
}

func (fs *fragments) zero(s *loop.FragmentZero) []string {
	f := fs.create(s.Name, dtype.F32)
	fs.eachSubgroup(func(i int, _ int32) { clear(f.elems[i]) })
	return []string{s.Name}
}

// firstAt returns the index of the first element of a fragment, which must be uniform in the
// subgroup.
func (fs *fragments) firstAt(a *array, at column, thread int32) (first int64, ok bool) {
	first = at.i[thread]
	for t := thread; t < thread+int32(fs.m.lanes); t++ {
		if at.i[t] != first {
			fs.m.fail(Misaligned, t, a.Name, int(at.i[t]), 0)
			return 0, false
		}
	}
	return first, true
}

func (fs *fragments) read(s *loop.FragmentLoad) []string {
	a, at, m := fs.m.arrays[s.Array], fs.expr(s.At), fs.m
	f := fs.create(s.Name, a.DType)
	row, column := int64(s.Stride), int64(1)
	if s.Transposed {
		row, column = column, row
	}
	value := newColumn(a.DType, m.threads)
	fs.eachSubgroup(func(i int, thread int32) {
		first, ok := fs.firstAt(a, at, thread)
		for j := 0; j < fragmentElems && ok; j++ {
			elem := m.index(a, first+int64(j/loop.FragmentSize)*row+int64(j%loop.FragmentSize)*column, thread)
			if ok = elem >= 0 && fs.noteRead(a, elem, thread); ok {
				a.get(elem, thread, value)
				f.elems[i][j] = value.f[thread]
			}
		}
	})
	return []string{s.Name}
}

// noteRead is [machine.noteRead] for an element that any thread of a subgroup may read.
func (fs *fragments) noteRead(a *array, elem int, thread int32) bool {
	if !fs.m.noteRead(a, elem, thread) {
		return false
	}
	for i := range a.unit {
		a.cells[a.first+elem*a.unit+i].reader = several
	}
	return true
}

// mulAdd rounds each product and sum to f32, in the order of the contracted axis.
// Devices may sum in another order.
func (fs *fragments) mulAdd(s *loop.FragmentMulAdd) {
	sum, x, y := fs.named[s.Sum], fs.named[s.A], fs.named[s.B]
	fs.eachSubgroup(func(i int, _ int32) {
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

func (fs *fragments) write(s *loop.FragmentStore) {
	a, at, m, f := fs.m.arrays[s.Array], fs.expr(s.At), fs.m, fs.named[s.Name]
	value := newColumn(a.DType, m.threads)
	fs.eachSubgroup(func(i int, thread int32) {
		first, ok := fs.firstAt(a, at, thread)
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
