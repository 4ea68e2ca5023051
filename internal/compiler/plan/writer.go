package plan

import "encoding/binary"

// writer appends to buf. Its methods mirror those of reader.
type writer struct{ buf []byte }

func (w *writer) u32(v int) { w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(v)) }

func (w *writer) u64(v int) { w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(v)) }

func (w *writer) triple(v [3]int) {
	for _, n := range v {
		w.u32(n)
	}
}

func (w *writer) str(s string) {
	w.u32(len(s))
	w.buf = append(w.buf, s...)
	w.pad()
}

// bytes writes data behind its length.
func (w *writer) bytes(data []byte) {
	w.u32(len(data))
	w.buf = append(w.buf, data...)
}

func (w *writer) pad() {
	for len(w.buf)%4 != 0 {
		w.buf = append(w.buf, 0)
	}
}

// sized writes u32 length and the bytes that body writes, padded to 4; the length
// excludes the padding.
func (w *writer) sized(body func()) {
	w.u32(0)
	start := len(w.buf)
	body()
	binary.LittleEndian.PutUint32(w.buf[start-4:], uint32(len(w.buf)-start))
	w.pad()
}

// list writes a count and the items, each as a record.
func list[T any](w *writer, items []T, item func(*T)) {
	w.u32(len(items))
	for i := range items {
		w.sized(func() { item(&items[i]) })
	}
}

func (w *writer) ints(v []int) {
	w.u32(len(v))
	for _, n := range v {
		w.u32(n)
	}
}

// longs writes a list of 64-bit numbers.
func (w *writer) longs(v []int) {
	w.u32(len(v))
	for _, n := range v {
		w.u64(n)
	}
}

func (w *writer) flag(set bool) {
	if set {
		w.u32(1)
	} else {
		w.u32(0)
	}
}
