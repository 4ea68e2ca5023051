package cpu

import "github.com/rlx-go/rlx/ir"

// convertOp covers conversions between the types that models are made of.
func convertOp(f *files, in *instr, from, to ir.DType) op {
	switch {
	case to == ir.F32 && (from == ir.F16 || from == ir.BF16):
		return f.of(in.dst).move(in.dst.index, in.args[0].index)
	case to == ir.BF16 && from == ir.F32:
		return mapLanes(lanesOf[float32](f, in.dst), lanesOf[float32](f, in.args[0]), func(x float32) float32 { return roundTo(ir.BF16, x) })
	case to == ir.F64 && from == ir.F32:
		return castLanes[float64, float32](f, in)
	case to == ir.F32 && from == ir.F64:
		return castLanes[float32, float64](f, in)
	case from == ir.U64 && !to.IsInteger() || !from.IsInteger() && from != ir.Bool:
		return nil
	case from == ir.U32:
		return integerTo[uint32](f, in, to)
	case in.args[0].class == classLong:
		return integerTo[int64](f, in, to)
	}
	return integerTo[int32](f, in, to)
}

// integerTo converts integers.
func integerTo[S number](f *files, in *instr, to ir.DType) op {
	switch {
	case to == ir.F32:
		return castLanes[float32, S](f, in)
	case to == ir.F64:
		return castLanes[float64, S](f, in)
	case in.dst.class == classLong:
		return castLanes[int64, S](f, in)
	case to.IsInteger():
		return wrapped(castLanes[int32, S](f, in), f, in.dst, to)
	}
	return nil
}

func castLanes[D, S number](f *files, in *instr) op {
	d, a := lanesOf[D](f, in.dst), lanesOf[S](f, in.args[0])
	return func(n int) {
		d := d[:n]
		for i, x := range a[:n] {
			d[i] = D(x)
		}
	}
}

// wrapped reduces what an operation gives to the width of an integer type.
func wrapped(o op, f *files, dst register, t ir.DType) op {
	if o == nil || dst.class != classInt {
		return o
	}
	d := f.ints[dst.index]
	switch t {
	case ir.I16:
		return wrapLanes[int16](o, d)
	case ir.U16:
		return wrapLanes[uint16](o, d)
	case ir.I8:
		return wrapLanes[int8](o, d)
	case ir.U8:
		return wrapLanes[uint8](o, d)
	}
	return o
}

func wrapLanes[T int8 | int16 | uint8 | uint16](o op, d []int32) op {
	return func(n int) {
		o(n)
		d := d[:n]
		for i, x := range d {
			d[i] = int32(T(x))
		}
	}
}
