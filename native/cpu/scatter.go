package cpu

import (
	"cmp"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
)

// scatterStep combines updates into the rows that they go to, in order.
type scatterStep struct {
	x                *group.Scatter
	row, update, out *buffer
	env              *environment
	guarded          bool // not once a check has failed
}

func (s *scatterStep) run(*runner) {
	if s.guarded && s.env.status.failed() {
		return
	}
	apply := s.applier()
	window := len(s.x.WindowAt)
	for i, row := range view[int32](s.row)[:s.row.elems] {
		if row >= 0 {
			apply(s.base(int(row)), i*window)
		}
	}
}

// base returns where the first element of a row lies.
func (s *scatterStep) base(row int) int {
	at := 0
	for k := len(s.x.RowDims) - 1; k >= 0; k-- {
		at += row % s.x.RowDims[k] * s.x.RowSteps[k]
		row /= s.x.RowDims[k]
	}
	return at
}

// applier returns the function that combines the update at one place into the
// row at another.
func (s *scatterStep) applier() func(row, update int) {
	if s.x.Mode == ir.ScatterSet {
		return s.copier()
	}
	switch s.out.dtype {
	case ir.F32:
		return combiner[float32](s, realCombine[float32](s.x.Mode))
	case ir.F64:
		return combiner[float64](s, realCombine[float64](s.x.Mode))
	case ir.F16, ir.BF16:
		return s.halves()
	case ir.C64:
		return combiner[complex64](s, numberCombine[complex64](s.x.Mode))
	case ir.C128:
		return combiner[complex128](s, numberCombine[complex128](s.x.Mode))
	case ir.I8:
		return combiner[int8](s, realCombine[int8](s.x.Mode))
	case ir.I16:
		return combiner[int16](s, realCombine[int16](s.x.Mode))
	case ir.I32:
		return combiner[int32](s, realCombine[int32](s.x.Mode))
	case ir.I64:
		return combiner[int64](s, realCombine[int64](s.x.Mode))
	case ir.U8:
		return combiner[uint8](s, realCombine[uint8](s.x.Mode))
	case ir.U16:
		return combiner[uint16](s, realCombine[uint16](s.x.Mode))
	case ir.U32:
		return combiner[uint32](s, realCombine[uint32](s.x.Mode))
	}
	return combiner[uint64](s, realCombine[uint64](s.x.Mode))
}

// copier is the applier of what is set.
func (s *scatterStep) copier() func(row, update int) {
	size := s.out.dtype.Size()
	return func(row, update int) {
		for w, at := range s.x.WindowAt {
			to, from := (row+at)*size, (update+w)*size
			copy(s.out.data[to:to+size], s.update.data[from:from+size])
		}
	}
}

func combiner[T unit](s *scatterStep, combine func(x, u T) T) func(row, update int) {
	out, updates := view[T](s.out), view[T](s.update)
	return func(row, update int) {
		for w, at := range s.x.WindowAt {
			out[row+at] = combine(out[row+at], updates[update+w])
		}
	}
}

// halves combines floats of 16 bits by way of those of 32.
func (s *scatterStep) halves() func(row, update int) {
	d, combine := s.out.dtype, realCombine[float32](s.x.Mode)
	return combiner[uint16](s, func(x, u uint16) uint16 {
		wide := func(bits uint16) float32 { return float32(d.FloatFromBits(uint64(bits))) }
		return uint16(d.FloatBits(float64(combine(wide(x), wide(u)))))
	})
}

// numberCombine returns how numbers are added or multiplied.
func numberCombine[T unit](mode ir.ScatterMode) func(x, u T) T {
	if mode == ir.ScatterMul {
		return func(x, u T) T { return x * u }
	}
	return func(x, u T) T { return x + u }
}

// realCombine is numberCombine for types with an order; NaN wins.
func realCombine[T interface {
	unit
	cmp.Ordered
}](mode ir.ScatterMode) func(x, u T) T {
	switch mode {
	case ir.ScatterMin:
		return func(x, u T) T { return min(x, u) }
	case ir.ScatterMax:
		return func(x, u T) T { return max(x, u) }
	}
	return numberCombine[T](mode)
}
