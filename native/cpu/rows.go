package cpu

import "unsafe"

// bindRows gives the kernel of a nest's rows its registers and tensors; what it
// returns computes as many rows of lanes as it is told.
func (m *machine) bindRows(x *fused) func(rows int) {
	call, lanes := x.code.NewCall(), m.n.along().row
	axis := m.n.rowAxis().reg
	var tensors []boundAccess
	for i, a := range x.arrays {
		if a.access == nil {
			call.Set(i, m.files.of(a.reg).memory(a.reg.index))
			continue
		}
		t := boundAccess{array: i, at: m.bindAddress(a.access.at), buf: a.access.buf, size: a.access.buf.dtype.Size()}
		t.step, t.lanes = a.access.at.coef(axis), lanes
		if a.access.one {
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
			last := at + (rows-1)*t.step
			_ = t.buf.data[last*t.size : (last+t.lanes)*t.size]
			now := t.buf.data[at*t.size : (at+t.lanes)*t.size]
			call.Set(t.array, unsafe.Pointer(&now[0]))
		}
		call.RunRows(rows, lanes)
	}
}

// rowsFrom computes rows of the nest from first up to, not including, last.
func (m *machine) rowsFrom(first, last int) {
	size := m.n.rowAxis().size
	for row := first; row < last; {
		rows := min(last-row, size-row%size)
		m.outer.setRow(row)
		if len(m.rows) > 0 {
			rows = 1
			runAll(m.rows, 1)
		}
		m.sweep(rows)
		row += rows
	}
}
