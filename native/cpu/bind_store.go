package cpu

import "github.com/rlx-go/rlx/ir"

func (m *machine) bindStore(in *instr) op {
	f, a, src := m.files, m.bindAddress(in.at), in.args[0]
	switch in.buf.dtype {
	case ir.F32:
		return storeSame(lanesOf[float32](f, src), in.buf, a)
	case ir.F64:
		return storeSame(lanesOf[float64](f, src), in.buf, a)
	case ir.I64, ir.U64:
		return storeSame(lanesOf[int64](f, src), in.buf, a)
	case ir.C128:
		x := lanesOf[complex128](f, src)
		return func(n int) {
			to := complexView(in.buf)
			for i, v := range x[:n] {
				to[a.lane(i)] = v
			}
		}
	case ir.C64:
		return storeAs(lanesOf[complex128](f, src), in.buf, a, func(x complex128) complex64 { return complex64(x) })
	case ir.F16, ir.BF16:
		d := in.buf.dtype
		return storeAs(lanesOf[float32](f, src), in.buf, a, func(x float32) uint16 { return uint16(d.FloatBits(float64(x))) })
	}
	if d := in.buf.dtype; d.IsFloat8() {
		return storeAs(lanesOf[float32](f, src), in.buf, a, func(x float32) uint8 { return uint8(d.FloatBits(float64(x))) })
	}
	return bindIntStore(lanesOf[int32](f, src), in.buf, a)
}

func bindIntStore(x []int32, buf *buffer, a *boundAddress) op {
	switch buf.dtype.Size() {
	case 1:
		return storeAs(x, buf, a, func(x int32) uint8 { return uint8(x) })
	case 2:
		return storeAs(x, buf, a, func(x int32) uint16 { return uint16(x) })
	}
	return storeSame(x, buf, a)
}

// storeSame stores elements that registers hold as they are.
func storeSame[T float32 | float64 | int32 | int64](x []T, buf *buffer, a *boundAddress) op {
	if a.index == nil && a.long == nil && a.stride == 1 {
		return func(n int) { copy(view[T](buf)[a.first():], x[:n]) }
	}
	return storeAs(x, buf, a, func(x T) T { return x })
}

// storeAs stores elements in another form.
func storeAs[T lane, S unit](x []T, buf *buffer, a *boundAddress, convert func(T) S) op {
	if a.index != nil {
		return func(n int) {
			to := view[S](buf)
			for i, v := range x[:n] {
				to[a.index[i]] = convert(v)
			}
		}
	}
	if a.long != nil {
		return func(n int) {
			to := view[S](buf)
			for i, v := range x[:n] {
				to[a.long[i]] = convert(v)
			}
		}
	}
	return func(n int) {
		to, at := view[S](buf), a.first()
		for _, v := range x[:n] {
			to[at] = convert(v)
			at += a.stride
		}
	}
}
