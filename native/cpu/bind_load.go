package cpu

import (
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// boundAddress is an address with its registers.
type boundAddress struct {
	base   int
	coefs  []int
	values []counter
	stride int
	index  []int32 // nil where the address follows a pattern, or is long
	long   []int64 // the index of a long address that follows none
	mask   []int32 // nil where it holds for all lanes
	whole  bool    // the mask has one lane, for all of the block
}

func (m *machine) bindAddress(a *address) *boundAddress {
	b := &boundAddress{base: a.base, stride: a.stride}
	if a.mask != nil {
		b.mask, b.whole = m.files.ints[a.mask.reg.index], !a.mask.wide
	}
	switch {
	case a.general && a.index.class == classLong:
		b.long = m.files.long[a.index.index]
		return b
	case a.general:
		b.index = m.files.ints[a.index.index]
		return b
	}
	for _, t := range a.terms {
		b.coefs = append(b.coefs, t.coef)
		b.values = append(b.values, m.files.counter(t.reg))
	}
	return b
}

// first returns the element of lane 0.
func (b *boundAddress) first() int {
	at := b.base
	for i, c := range b.coefs {
		at += c * b.values[i].get()
	}
	return at
}

func (m *machine) bindLoad(in *instr) op {
	a := m.bindAddress(in.at)
	if !a.whole {
		return bindLoadAt(m.files, in, a)
	}
	// All lanes have the same condition: the load is one with a pattern, or of
	// element 0.
	follows := *a
	follows.mask, follows.whole = nil, false
	inside, outside, mask := bindLoadAt(m.files, in, &follows), bindLoadAt(m.files, in, &boundAddress{}), a.mask
	return func(n int) {
		if mask[0] != 0 {
			inside(n)
		} else {
			outside(n)
		}
	}
}

func bindLoadAt(f *files, in *instr, a *boundAddress) op {
	switch in.buf.dtype {
	case ir.F32:
		return loadSame(lanesOf[float32](f, in.dst), in.buf, a)
	case ir.F64:
		return loadSame(lanesOf[float64](f, in.dst), in.buf, a)
	case ir.I64, ir.U64:
		return loadSame(lanesOf[int64](f, in.dst), in.buf, a)
	case ir.C128:
		return loadComplex(lanesOf[complex128](f, in.dst), in.buf, a)
	case ir.C64:
		return loadAs(lanesOf[complex128](f, in.dst), in.buf, a, func(x complex64) complex128 { return complex128(x) })
	case ir.F16, ir.BF16:
		d := in.buf.dtype
		return loadAs(lanesOf[float32](f, in.dst), in.buf, a, func(x uint16) float32 { return float32(d.FloatFromBits(uint64(x))) })
	}
	if d := in.buf.dtype; d.IsFloat8() {
		return loadAs(lanesOf[float32](f, in.dst), in.buf, a, func(x uint8) float32 { return float32(d.FloatFromBits(uint64(x))) })
	}
	return bindIntLoad(lanesOf[int32](f, in.dst), in.buf, a)
}

func bindIntLoad(d []int32, buf *buffer, a *boundAddress) op {
	switch buf.dtype {
	case ir.I8:
		return loadInt[int8](d, buf, a)
	case ir.I16:
		return loadInt[int16](d, buf, a)
	case ir.I32, ir.U32:
		return loadSame(d, buf, a)
	case ir.U16:
		return loadInt[uint16](d, buf, a)
	}
	return loadInt[uint8](d, buf, a) // u8 and bool
}

// loadSame loads elements that registers hold as they are.
func loadSame[T float32 | float64 | int32 | int64](d []T, buf *buffer, a *boundAddress) op {
	switch {
	case a.mask != nil:
		return loadAs(d, buf, a, func(x T) T { return x })
	case a.index != nil:
		return func(n int) {
			from, index := view[T](buf), a.index[:n]
			for i, at := range index {
				d[i] = from[at]
			}
		}
	case a.long != nil:
		return loadAs(d, buf, a, func(x T) T { return x })
	case a.stride == 1:
		return func(n int) {
			at := a.first()
			copy(d[:n], view[T](buf)[at:at+n])
		}
	}
	return func(n int) {
		from, at := view[T](buf), a.first()
		for i := range d[:n] {
			d[i] = from[at]
			at += a.stride
		}
	}
}

// loadInt loads integers of less than 32 bits.
func loadInt[T int8 | int16 | uint8 | uint16](d []int32, buf *buffer, a *boundAddress) op {
	if a.index == nil && a.long == nil && a.mask == nil && a.stride == 1 {
		return func(n int) {
			at := a.first()
			for i, x := range view[T](buf)[at : at+n] {
				d[i] = int32(x)
			}
		}
	}
	return loadAs(d, buf, a, func(x T) int32 { return int32(x) })
}

// loadAs loads elements of another form.
func loadAs[S unit, T lane](d []T, buf *buffer, a *boundAddress, convert func(S) T) op {
	if a.mask != nil {
		return func(n int) {
			from, at := view[S](buf), a.first()
			for i, inside := range a.mask[:n] {
				if inside != 0 {
					d[i] = convert(from[at])
				} else {
					d[i] = convert(from[0])
				}
				at += a.stride
			}
		}
	}
	if a.index != nil {
		return func(n int) {
			from := view[S](buf)
			for i, at := range a.index[:n] {
				d[i] = convert(from[at])
			}
		}
	}
	if a.long != nil {
		return func(n int) {
			from := view[S](buf)
			for i, at := range a.long[:n] {
				d[i] = convert(from[at])
			}
		}
	}
	return func(n int) {
		from, at := view[S](buf), a.first()
		for i := range d[:n] {
			d[i] = convert(from[at])
			at += a.stride
		}
	}
}

// loadComplex loads c128, which [unit] leaves out for its size.
func loadComplex(d []complex128, buf *buffer, a *boundAddress) op {
	return func(n int) {
		from := complexView(buf)
		for i := range d[:n] {
			d[i] = from[a.lane(i)]
		}
	}
}

func complexView(buf *buffer) []complex128 {
	return unsafe.Slice((*complex128)(unsafe.Pointer(unsafe.SliceData(buf.data))), max(buf.elems, 1))
}

// lane returns the element of a lane.
func (b *boundAddress) lane(i int) int {
	switch {
	case b.index != nil:
		return int(b.index[i])
	case b.long != nil:
		return int(b.long[i])
	case b.mask != nil && b.mask[i] == 0:
		return 0
	}
	return b.first() + i*b.stride
}
