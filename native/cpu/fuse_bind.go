package cpu

import (
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/jit"
)

// boundAccess is the tensor elements that a kernel reads or writes.
type boundAccess struct {
	array int
	at    *boundAddress
	buf   *buffer
	size  int // of an element
	// In a row kernel: the elements from row to row, and those of a row.
	stride, lanes int
	stores        bool
	runs          jit.Runs // of length 0 where the elements are contiguous
	scalar        bool     // one element for all lanes
	span          int      // elements that a kernel gathers from, 0 for other accesses
	// guarded elements are not written once a check has failed.
	guarded bool
	elems   []byte // the elements of this block
	// tail has room for a vector: the remainder of a block is copied through it.
	tail []byte
}

// boundLanes is a lane register that a kernel reads or writes.
type boundLanes struct {
	array int
	at    unsafe.Pointer
	size  int    // of a lane
	tail  []byte // as for tensors; nil for inputs
}

// extent returns the distance from the element of lane 0 to that after the last of n lanes.
func (t *boundAccess) extent(n int) int {
	switch {
	case t.scalar:
		return 1
	case t.span > 0:
		return t.span
	case t.runs.Length > 0:
		return t.runs.Extent(n)
	}
	return n
}

// isFixed reports whether all lanes access elements from one place on.
func (t *boundAccess) isFixed() bool { return t.scalar || t.span > 0 }

// from returns the elements from a lane on.
func (t *boundAccess) from(lane int) []byte {
	if t.isFixed() {
		return t.elems
	}
	return t.elems[lane*t.size:]
}

// bindAccess binds a load or store of a kernel.
func (m *machine) bindAccess(array int, in *instr) boundAccess {
	t := boundAccess{array: array, at: m.bindAddress(in.at), buf: in.buf, size: in.buf.dtype.Size(), scalar: in.scalar, span: in.at.span, guarded: in.node == guarded}
	if in.at.run > 0 {
		t.runs, _ = in.runs()
	}
	return t
}

// bindFused binds a kernel to its registers and tensors.
func (m *machine) bindFused(x *fused) op {
	run := m.bindTimes(x)
	return func(n int) { run(1, n) }
}

// bindArrays sets the registers of a call of a kernel, and returns its tensors and its lane registers.
func (m *machine) bindArrays(x *fused, call *jit.Call) (tensors []boundAccess, lanes []boundLanes) {
	for i, a := range x.arrays {
		switch {
		case a.access != nil:
			t := m.bindAccess(i, a.access)
			t.stores, t.tail = a.stores, make([]byte, t.size*jit.MaxLanes)
			if x.kernels.Strides != nil {
				t.stride = x.kernels.Strides[i] / t.size
			}
			tensors = append(tensors, t)
		case a.scalar:
			call.Set(i, m.files.of(a.reg).memory(a.reg.index))
		default:
			r := boundLanes{array: i, at: m.files.of(a.reg).memory(a.reg.index), size: a.reg.class.size()}
			if a.stores {
				r.tail = make([]byte, jit.MaxLanes*r.size)
			}
			lanes = append(lanes, r)
			call.Set(i, r.at)
		}
	}
	return tensors, lanes
}

// bindTimes binds a kernel to its registers and tensors. The result runs it on n lanes, and where
// its arrays have strides, several times, each time a stride further. It does nothing and returns false
// where it would have to run the last lanes by themselves more than once.
func (m *machine) bindTimes(x *fused) func(times, n int) bool {
	call := x.code.NewCall()
	tensors, lanes := m.bindArrays(x, call)
	width, kind := call.Width(), m.tailOf(x)
	return func(times, n int) bool {
		rest := n % width
		if x.kernels.Overlap {
			rest = 0
		}
		if rest > 0 && kind == extendedTail && extends(tensors, times, n+width-rest) {
			n, rest = n+width-rest, 0
		}
		if rest > 0 && times > 1 {
			return false
		}
		for i := range tensors {
			t := &tensors[i]
			at, length := t.at.first()*t.size, t.extent(n)*t.size
			last := at + (times-1)*t.stride*t.size
			_ = t.buf.data[last : last+length]
			t.elems = t.buf.data[at : at+length]
			if t.guarded && m.env.status.failed() {
				t.elems = make([]byte, length) // discarded
			}
			call.Set(t.array, unsafe.Pointer(unsafe.SliceData(t.elems)))
		}
		full := n - rest
		if full > 0 {
			call.RunRows(times, full)
		}
		switch {
		case rest == 0:
		case full > 0 && kind == repeatedTail && !overlaps(tensors):
			runLast(call, tensors, lanes, n-width, width)
		default:
			runTail(call, tensors, lanes, full, rest)
		}
		return true
	}
}

// tailKind is how a kernel computes the lanes after the last whole vector.
type tailKind uint8

const (
	// copiedTail copies them through memory with room for a vector.
	copiedTail tailKind = iota
	// extendedTail computes further lanes, whose results nobody reads.
	extendedTail
	// repeatedTail computes the last full vector of lanes, so that some lanes are computed twice.
	repeatedTail
)

// tailOf returns how a kernel computes its last lanes. Where it has accumulators in machine registers, or
// writes what it reads, no lane may be computed twice.
func (m *machine) tailOf(x *fused) tailKind {
	if x.kernels.Accumulates() {
		return copiedTail
	}
	kind := extendedTail
	for _, a := range x.arrays {
		switch {
		case a.access != nil && a.access.at.run > 0, a.scalar && a.stores:
			return copiedTail
		case a.access != nil && a.stores:
			kind = repeatedTail
		}
	}
	if kind == extendedTail && m.n.wideInner {
		return copiedTail // lanes after these may be live
	}
	for _, a := range x.arrays {
		read := func(b fusedArray) bool { return b.access == nil && !b.stores && b.reg == a.reg }
		if kind == repeatedTail && a.access == nil && a.stores && slices.ContainsFunc(x.arrays, read) {
			return copiedTail
		}
	}
	return kind
}

// extends reports whether n lanes of all arrays are in their buffers.
func extends(tensors []boundAccess, times, n int) bool {
	for i := range tensors {
		t := &tensors[i]
		if (t.at.first()+max(0, (times-1)*t.stride)+t.extent(n))*t.size > len(t.buf.data) {
			return false
		}
	}
	return true
}

// overlaps reports whether an array that is written shares memory with another.
func overlaps(tensors []boundAccess) bool {
	for i := range tensors {
		t := &tensors[i]
		from := uintptr(unsafe.Pointer(unsafe.SliceData(t.elems)))
		for j := range tensors {
			x := &tensors[j]
			at := uintptr(unsafe.Pointer(unsafe.SliceData(x.elems)))
			if t.stores && i != j && at < from+uintptr(len(t.elems)) && from < at+uintptr(len(x.elems)) {
				return true
			}
		}
	}
	return false
}

// runLast computes the n lanes from the first on, which fill vectors.
func runLast(call *jit.Call, tensors []boundAccess, lanes []boundLanes, first, n int) {
	for i := range tensors {
		t := &tensors[i]
		call.Set(t.array, unsafe.Pointer(unsafe.SliceData(t.from(first))))
	}
	for _, r := range lanes {
		call.Set(r.array, unsafe.Add(r.at, r.size*first))
	}
	call.Run(n)
	for _, r := range lanes {
		call.Set(r.array, r.at)
	}
}

// runTail computes the n lanes after the first ones, fewer than a vector has.
func runTail(call *jit.Call, tensors []boundAccess, lanes []boundLanes, first, n int) {
	for i := range tensors {
		t := &tensors[i]
		if t.isFixed() {
			continue
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(t.elems))) - uintptr(unsafe.Pointer(unsafe.SliceData(t.buf.data))); !t.stores && t.runs.Length == 0 && int(at)+(first+call.Width())*t.size <= len(t.buf.data) {
			call.Set(t.array, unsafe.Pointer(unsafe.SliceData(t.elems[first*t.size:])))
			continue
		}
		if !t.stores {
			copy(t.tail, t.elems[first*t.size:])
		}
		call.Set(t.array, unsafe.Pointer(unsafe.SliceData(t.tail)))
	}
	for _, r := range lanes {
		if r.tail != nil {
			call.Set(r.array, unsafe.Pointer(unsafe.SliceData(r.tail)))
		} else {
			call.Set(r.array, unsafe.Add(r.at, r.size*first))
		}
	}
	call.RunTail(n)
	for i := range tensors {
		if t := &tensors[i]; t.stores {
			copy(t.elems[first*t.size:], t.tail)
		}
	}
	for _, r := range lanes {
		if r.tail != nil { // the lanes after these may be live
			copy(unsafe.Slice((*byte)(unsafe.Add(r.at, r.size*first)), n*r.size), r.tail)
		}
		call.Set(r.array, r.at)
	}
}

// bindRows binds the row kernel of a nest to its registers and tensors. The result computes
// the given number of rows.
func (m *machine) bindRows(x *fused) func(rows int) {
	call, lanes := x.code.NewCall(), m.n.wideSpace().row
	axis := m.n.rowAxis().reg
	var tensors []boundAccess
	for i, a := range x.arrays {
		if a.indirect {
			continue // the kernel sets its address
		}
		if a.access == nil {
			call.Set(i, m.files.of(a.reg).memory(a.reg.index))
			continue
		}
		t := m.bindAccess(i, a.access)
		t.stride, t.lanes = a.access.at.coef(axis), t.extent(lanes)
		if a.access.scalar || a.base { // what is read from a base is in bounds, see address.most
			t.lanes = 1
		}
		tensors = append(tensors, t)
	}
	m.outer.setBlock(0, m.outer.row)
	m.inner.setBlock(0, m.inner.row)
	return func(rows int) {
		for i := range tensors {
			t := &tensors[i]
			at := t.at.first()
			last := at + (rows-1)*t.stride
			_ = t.buf.data[last*t.size : (last+t.lanes)*t.size]
			now := t.buf.data[at*t.size : (at+t.lanes)*t.size]
			call.Set(t.array, unsafe.Pointer(&now[0]))
		}
		call.RunRows(rows, lanes)
		m.noteFailures()
	}
}

// noteFailures records the checks that failed in a row kernel.
func (m *machine) noteFailures() {
	for _, x := range m.n.failures {
		if word := &m.files.ints[x.reg.index][0]; *word != 0 {
			*word = 0
			m.env.status.fail(x.code)
		}
	}
}

// runRowRange computes the rows in [first, last).
func (m *machine) runRowRange(first, last int) {
	if len(m.rows) > 0 { // one by one
		m.outer.setRow(first)
		for range last - first {
			runAll(m.rows, 1)
			m.runRows(1)
			m.outer.nextRow()
		}
		return
	}
	size := m.n.rowAxis().size
	for row := first; row < last; {
		rows := min(last-row, size-row%size)
		m.outer.setRow(row)
		m.runRows(rows)
		row += rows
	}
}
