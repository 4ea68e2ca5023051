package sim

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// array is the memory of one array of the kernel.
type array struct {
	loop.Array
	size    int  // bytes per element in storage
	isFloat bool // the element type is a float

	// data is the bound window of a storage array.
	data []byte
	// own holds shared and private memory as a column; a private array has a section for
	// each thread.
	own     column
	perLane int // length of a thread's section, 0 for shared memory

	cells []cell // nil where races are impossible
	unit  int    // cells per element; 0 and 1 are the same
	first int    // cell of element 0
	// offset is the address of element 0 in bytes, modulo 1,024 for shared arrays.
	offset int
	// async is the state of the elements of shared memory used by asynchronous operations,
	// nil for other arrays.
	async []asyncState
	// filled holds, for private memory, the first epoch of the workgroup that last wrote an
	// element.
	filled []uint32
}

// cell records the last accesses to a piece of memory.
type cell struct {
	writeEpoch, readEpoch uint32
	writer, reader        int32 // threads
	writeGroup, readGroup int32 // linear indices plus 1
}

func newArray(a loop.Array, threads int) *array {
	m := &array{Array: a, size: loop.DeviceSize(a.DType), isFloat: a.DType.IsFloat(), unit: 1}
	n := a.Len * a.Width
	switch a.Space {
	case loop.Shared:
		m.own = newColumn(a.DType, n)
		m.cells = make([]cell, n)
	case loop.Private:
		m.own = newColumn(a.DType, n*threads)
		m.filled = make([]uint32, n*threads)
		m.perLane = n
	}
	return m
}

// bindStorage attaches the windows and creates cells for each buffer that the kernel writes.
func (m *machine) bindStorage(windows []Binding) error {
	var storage []*array
	for i, a := range m.arrays {
		if a.Space == loop.Storage {
			a.Len = m.k.Arrays[i].Len // 0 for that of the window, which the last launch set
			storage = append(storage, a)
		}
	}
	if len(windows) != len(storage) {
		return m.launchError("%d bindings for %d storage arrays", len(windows), len(storage))
	}
	units, written := map[*byte]int{}, map[*byte]bool{}
	for i, a := range storage {
		w := windows[i]
		if w.Offset < 0 || w.Bytes < a.Bytes() || w.Offset+w.Bytes > len(w.Buffer) {
			return m.launchError("array %s of %d bytes is bound to %d bytes at %d of %d",
				a.Name, a.Bytes(), w.Bytes, w.Offset, len(w.Buffer))
		}
		if w.Offset%a.size != 0 {
			return m.launchError("array %s of elements of %d bytes is bound at %d", a.Name, a.size, w.Offset)
		}
		id := &w.Buffer[0]
		if u, ok := units[id]; !ok || a.size < u {
			units[id] = a.size
		}
		written[id] = written[id] || a.Access == loop.ReadWrite
		a.data, a.offset = w.Buffer[w.Offset:w.Offset+w.Bytes], w.Offset
		if a.Len == 0 {
			a.Len = w.Bytes / (a.size * a.Width)
		}
	}
	if m.threads*m.k.Groups[0]*m.k.Groups[1]*m.k.Groups[2] > 1 {
		bindCells(storage, windows, units, written)
	}
	return nil
}

// span is a range of bytes.
type span struct{ from, to int }

// bindCells gives the arrays of each written buffer, identified by its first byte, common cells:
// one for each unit of bytes that an array is bound to.
func bindCells(storage []*array, windows []Binding, units map[*byte]int, written map[*byte]bool) {
	bound := map[*byte]span{}
	for _, w := range windows {
		id := &w.Buffer[0]
		s, ok := bound[id]
		if !ok {
			s = span{w.Offset, w.Offset}
		}
		bound[id] = span{min(s.from, w.Offset), max(s.to, w.Offset+w.Bytes)}
	}
	cells := map[*byte][]cell{}
	for i, a := range storage {
		id := &windows[i].Buffer[0]
		a.cells = nil
		if a.Access == loop.Atomic || !written[id] {
			continue
		}
		s, unit := bound[id], units[id]
		if cells[id] == nil {
			cells[id] = make([]cell, (s.to-s.from)/unit+1)
		}
		a.cells, a.unit, a.first = cells[id], a.size/unit, (windows[i].Offset-s.from)/unit
	}
}

// index returns the first element of the vector at an index; if it is out of bounds, it fails and
// returns a negative number. It is short, so that it is compiled in line.
func (m *machine) index(a *array, at int64, t int32) (elem int) {
	if uint64(at) < uint64(a.Len) {
		return int(at) * a.Width
	}
	return outOfBounds(m, a, at, t)
}

func outOfBounds(m *machine, a *array, at int64, t int32) (elem int) {
	m.fail(OutOfBounds, t, a.Name, int(at), 0)
	return -1
}

// noteRead records a read of an element by thread t and reports whether it is allowed.
func (m *machine) noteRead(a *array, elem int, t int32) bool {
	if c := m.opts.Counts; c != nil && a.Space == loop.Storage {
		c.Read += a.size
	}
	if a.filled != nil && a.filled[elem+int(t)*a.perLane] != m.first {
		m.fail(Uninitialised, t, a.Name, elem, 0)
		return false
	}
	if a.async != nil && !m.copies.note(a, elem, t, loads) {
		return false
	}
	if a.cells == nil {
		return true
	}
	shared, start := a.Space == loop.Shared, a.first+elem*a.unit
	cells := a.cells[start : start+a.unit]
	for i := range cells {
		c := &cells[i]
		switch {
		case shared && c.writeEpoch < m.first:
			m.fail(Uninitialised, t, a.Name, elem, 0)
			return false
		case !m.happenedBefore(c.writeEpoch, c.writer, t):
			m.fail(Race, t, a.Name, elem, otherThread(c.writer))
			return false
		case !shared && c.writeGroup != 0 && c.writeGroup != m.group:
			m.fail(GroupRace, t, a.Name, elem, int(c.writeGroup)-1)
			return false
		}
		if c.reader != t || c.readEpoch != m.epoch {
			m.reads(c, t)
		}
		switch {
		case c.readGroup == 0:
			c.readGroup = m.group
		case c.readGroup != m.group:
			c.readGroup = several
		}
	}
	return true
}

// noteWrite records a write of an element by thread t and reports whether it is allowed.
func (m *machine) noteWrite(a *array, elem int, t int32) bool {
	if c := m.opts.Counts; c != nil && a.Space == loop.Storage {
		c.Written += a.size
	}
	if a.filled != nil {
		a.filled[elem+int(t)*a.perLane] = m.first
	}
	if a.async != nil && !m.copies.note(a, elem, t, stores) {
		return false
	}
	if a.cells == nil {
		return true
	}
	start := a.first + elem*a.unit
	cells := a.cells[start : start+a.unit]
	for i := range cells {
		c := &cells[i]
		switch {
		case !m.happenedBefore(c.writeEpoch, c.writer, t):
			m.fail(Race, t, a.Name, elem, otherThread(c.writer))
			return false
		case !m.happenedBefore(c.readEpoch, c.reader, t):
			m.fail(Race, t, a.Name, elem, otherThread(c.reader))
			return false
		case a.Space == loop.Storage && c.writeGroup != 0 && c.writeGroup != m.group:
			m.fail(GroupRace, t, a.Name, elem, int(c.writeGroup)-1)
			return false
		case a.Space == loop.Storage && c.readGroup != 0 && c.readGroup != m.group:
			m.fail(GroupRace, t, a.Name, elem, max(int(c.readGroup)-1, several))
			return false
		}
		c.writeEpoch, c.writer, c.writeGroup = m.epoch, t, m.group
	}
	return true
}

// readOnly reports whether [machine.loadReadOnly] reads the array.
func (a *array) readOnly() bool { return a.Space == loop.Storage && a.cells == nil }

// loadReadOnly is a faster path for most loads: from storage in which no race is possible.
func (m *machine) loadReadOnly(a *array, at column, outs []column, active []int32) {
	if (a.DType == dtype.F32 || a.DType == dtype.F64) && a.Width == 1 {
		loadFloats(m, a, at.i, outs[0].f, active)
	} else {
		for _, t := range active {
			elem := m.index(a, at.i[t], t)
			if elem < 0 {
				return
			}
			for w, out := range outs {
				a.getStored(elem+w, t, out)
			}
		}
	}
	if c := m.opts.Counts; c != nil {
		c.Read += a.size * len(outs) * len(active)
		m.countAccess(a, at, active)
	}
}

// loadFloats is loadReadOnly for an array of single f32 or f64.
func loadFloats(m *machine, a *array, at []int64, out []float64, active []int32) {
	data, wide := a.data, a.DType == dtype.F64
	for _, t := range active {
		elem := m.index(a, at[t], t)
		if elem < 0 {
			return
		}
		if wide {
			out[t] = math.Float64frombits(binary.LittleEndian.Uint64(data[elem*8:]))
		} else {
			out[t] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[elem*4:])))
		}
	}
}

// loadShared is a faster path for loads of single elements from workgroup memory that only stores of the kernel write,
// in a kernel without roles.
func loadShared(m *machine, a *array, at, out column, active []int32) {
	if out.f != nil {
		sharedLoad(m, a, at.i, out.f, a.own.f, active)
	} else {
		sharedLoad(m, a, at.i, out.i, a.own.i, active)
	}
	if m.fault == nil {
		m.countAccess(a, at, active)
	}
}

func sharedLoad[T number](m *machine, a *array, at []int64, out, own []T, active []int32) {
	for _, t := range active {
		elem := m.index(a, at[t], t)
		if elem < 0 || !a.cells[elem].isRead(m.epoch, t) && !m.noteRead(a, elem, t) {
			return
		}
		out[t] = own[elem]
	}
}

// isRead reports whether thread t, or several, have read a cell of workgroup memory since the barrier before an epoch.
// Another read is allowed then, and changes nothing: a write since by another thread was a race.
func (c *cell) isRead(epoch uint32, t int32) bool {
	return c.readEpoch == epoch && (c.reader == t || c.reader == several)
}

// get loads an element into thread t's value of a column.
func (a *array) get(elem int, t int32, out column) {
	if a.Space != loop.Storage {
		elem += int(t) * a.perLane
		if out.f != nil {
			out.f[t] = a.own.f[elem]
		} else {
			out.i[t] = a.own.i[elem]
		}
		return
	}
	a.getStored(elem, t, out)
}

// getStored is get for an array in storage.
func (a *array) getStored(elem int, t int32, out column) {
	data := a.data[elem*a.size:]
	switch a.DType {
	case dtype.F32:
		out.f[t] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	case dtype.I32:
		out.i[t] = int64(int32(binary.LittleEndian.Uint32(data)))
	case dtype.U32:
		out.i[t] = int64(binary.LittleEndian.Uint32(data))
	case dtype.F64:
		out.f[t] = math.Float64frombits(binary.LittleEndian.Uint64(data))
	default:
		out.set(t, a.decode(data))
	}
}

// put is the inverse of get.
func (a *array) put(elem int, t int32, from column) {
	if a.Space != loop.Storage {
		elem += int(t) * a.perLane
		if from.f != nil {
			a.own.f[elem] = from.f[t]
		} else {
			a.own.i[elem] = from.i[t]
		}
		return
	}
	data := a.data[elem*a.size:]
	switch a.DType {
	case dtype.F32:
		binary.LittleEndian.PutUint32(data, math.Float32bits(float32(from.f[t])))
	case dtype.I32, dtype.U32:
		binary.LittleEndian.PutUint32(data, uint32(from.i[t]))
	case dtype.F64:
		binary.LittleEndian.PutUint64(data, math.Float64bits(from.f[t]))
	default:
		encode(a.DType, data[:a.size], from.value(t))
	}
}

// decode returns the element of a storage array at the beginning of data.
func (a *array) decode(data []byte) scalar.Value {
	var bits uint64
	switch a.size {
	case 2:
		bits = uint64(binary.LittleEndian.Uint16(data))
	case 4:
		bits = uint64(binary.LittleEndian.Uint32(data))
	case 8:
		bits = binary.LittleEndian.Uint64(data)
	default:
		bits = uint64(data[0])
	}
	if a.isFloat {
		return scalar.Value{F: a.DType.FloatFromBits(bits)}
	}
	return scalar.Value{I: a.DType.Wrap(int64(bits))}
}

func encode(t dtype.DType, data []byte, v scalar.Value) {
	bits := uint64(v.I)
	if t.IsFloat() {
		bits = t.FloatBits(v.F)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(data, b[:])
}
