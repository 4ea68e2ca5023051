package collective

import (
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// Reduce combines arrays of one element type into dst, element by element, in the order of the
// arrays. Arrays have the length of dst and are aligned to the element type; dst may be the first
// of them and overlaps no other. Complex numbers are reduced as pairs.
func Reduce(d ir.DType, r Reduction, dst []byte, arrays [][]byte) {
	switch d {
	case ir.F32, ir.C64:
		reduce[float32](r, dst, arrays)
	case ir.F64, ir.C128:
		reduce[float64](r, dst, arrays)
	case ir.I8:
		reduce[int8](r, dst, arrays)
	case ir.U8:
		reduce[uint8](r, dst, arrays)
	case ir.I16:
		reduce[int16](r, dst, arrays)
	case ir.U16:
		reduce[uint16](r, dst, arrays)
	case ir.I32:
		reduce[int32](r, dst, arrays)
	case ir.U32:
		reduce[uint32](r, dst, arrays)
	case ir.I64:
		reduce[int64](r, dst, arrays)
	case ir.U64:
		reduce[uint64](r, dst, arrays)
	default:
		reduceNarrow(d, r, dst, arrays)
	}
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// reduce is [Reduce] for a type that Go has.
func reduce[T number](r Reduction, dst []byte, arrays [][]byte) {
	copy(dst, arrays[0])
	out := view[T](dst)
	for _, a := range arrays[1:] {
		x := view[T](a)[:len(out)]
		switch r {
		case Max:
			for i := range out {
				out[i] = max(out[i], x[i])
			}
		case Min:
			for i := range out {
				out[i] = min(out[i], x[i])
			}
		default:
			for i := range out {
				out[i] += x[i]
			}
		}
	}
}

// reduceNarrow is [Reduce] for floats of 8 and 16 bits: it computes in f32 and rounds once.
func reduceNarrow(d ir.DType, r Reduction, dst []byte, arrays [][]byte) {
	size := d.Size()
	bits := func(a []byte, i int) float32 {
		if size == 1 {
			return float32(d.FloatFromBits(uint64(a[i])))
		}
		return float32(d.FloatFromBits(uint64(view[uint16](a)[i])))
	}
	for i := range len(dst) / size {
		x := bits(arrays[0], i)
		for _, a := range arrays[1:] {
			switch y := bits(a, i); r {
			case Max:
				x = max(x, y)
			case Min:
				x = min(x, y)
			default:
				x += y
			}
		}
		if b := d.FloatBits(float64(x)); size == 1 {
			dst[i] = byte(b)
		} else {
			view[uint16](dst)[i] = uint16(b)
		}
	}
}

// view returns memory as elements of a type. The memory is aligned.
func view[T any](data []byte) []T {
	var element T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(element)))
}

// Reference computes the results of a call on all ranks of a group, given the call of each rank. It
// is the reference implementation of collectives: engines return the same results up to the order
// of sums, and those of this module the same bits.
func Reference(calls []*Call) {
	n, c := len(calls), calls[0]
	switch c.Op {
	case AllReduce, ReduceScatter:
		sent := make([][]byte, n)
		for i, c := range calls {
			sent[i] = c.Send
		}
		for i, to := range calls {
			if c.Op == ReduceScatter {
				for k, from := range calls {
					sent[k] = part(from.Send, i, n)
				}
			}
			Reduce(c.DType, c.Reduction, to.Recv, sent)
		}
	case AllGather:
		for _, to := range calls {
			for k, from := range calls {
				copy(part(to.Recv, k, n), from.Send)
			}
		}
	case AllToAll:
		for i, to := range calls {
			for k, from := range calls {
				copy(part(to.Recv, k, n), part(from.Send, i, n))
			}
		}
	case Permute:
		for i, to := range calls {
			if from := c.Sender(i); from >= 0 {
				copy(to.Recv, calls[from].Send)
			} else {
				clear(to.Recv)
			}
		}
	case Broadcast:
		for _, to := range calls {
			copy(to.Recv, calls[c.Root].Send)
		}
	}
}

// part returns one of n equal parts.
func part(data []byte, i, n int) []byte {
	size := len(data) / n
	return data[i*size : (i+1)*size]
}
