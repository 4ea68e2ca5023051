package cpu

import (
	"cmp"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// scatterStep combines updates into their rows, in order.
type scatterStep struct {
	x                *fusion.Scatter
	row, update, out *buffer
	env              *environment
	guarded          bool // does nothing once a check has failed
	// hot compensates rows with many updates in sums of f32; nil for all other scatters.
	hot *hotRows
}

func (s *scatterStep) run(*runner) {
	if s.guarded && s.env.status.failed() {
		return
	}
	apply, rows := s.applier(), view[int32](s.row)[:s.row.elems]
	window := len(s.x.WindowAt)
	if s.hot != nil && s.hot.find(rows, window) {
		s.sum(rows, apply)
		return
	}
	for i, row := range rows {
		if row >= 0 {
			apply(s.base(int(row)), i*window)
		}
	}
}

// base returns the first element of a row.
func (s *scatterStep) base(row int) int {
	at := 0
	for k := len(s.x.RowDims) - 1; k >= 0; k-- {
		at += row % s.x.RowDims[k] * s.x.RowSteps[k]
		row /= s.x.RowDims[k]
	}
	return at
}

// applier returns the function that combines the update at one element offset into the row at
// another.
func (s *scatterStep) applier() func(row, update int) {
	if s.x.Mode == ir.ScatterSet {
		return s.copier()
	}
	return combiners[s.out.dtype](s)
}

// combiners are the appliers of all modes but set, by element type.
var combiners = map[ir.DType]func(s *scatterStep) func(row, update int){
	ir.F32: ofOrdered[float32], ir.F64: ofOrdered[float64], ir.F16: (*scatterStep).halves, ir.BF16: (*scatterStep).halves,
	ir.C64: ofNumbers[complex64], ir.C128: ofNumbers[complex128],
	ir.I8: ofOrdered[int8], ir.I16: ofOrdered[int16], ir.I32: ofOrdered[int32], ir.I64: ofOrdered[int64],
	ir.U8: ofOrdered[uint8], ir.U16: ofOrdered[uint16], ir.U32: ofOrdered[uint32], ir.U64: ofOrdered[uint64],
}

func ofNumbers[T unit](s *scatterStep) func(row, update int) {
	return combiner(s, numberCombine[T](s.x.Mode))
}

func ofOrdered[T interface {
	unit
	cmp.Ordered
}](s *scatterStep) func(row, update int) {
	return combiner(s, realCombine[T](s.x.Mode))
}

// copier returns the applier of [ir.ScatterSet].
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

// halves combines 16-bit floats in f32.
func (s *scatterStep) halves() func(row, update int) {
	d, combine := s.out.dtype, realCombine[float32](s.x.Mode)
	return combiner[uint16](s, func(x, u uint16) uint16 {
		wide := func(bits uint16) float32 { return float32(d.FloatFromBits(uint64(bits))) }
		return uint16(d.FloatBits(float64(combine(wide(x), wide(u)))))
	})
}

// numberCombine returns addition or multiplication.
func numberCombine[T unit](mode ir.ScatterMode) func(x, u T) T {
	if mode == ir.ScatterMul {
		return func(x, u T) T { return x * u }
	}
	return func(x, u T) T { return x + u }
}

// realCombine is numberCombine with minimum and maximum, which propagate NaN.
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

// hotRows holds the rounding errors of rows that receive more than [fusion.SumBlockLen] updates.
type hotRows struct {
	places *buffer // for each row its number among the hot ones, from 1, or 0
	errs   *buffer // the errors of hot rows, one row after the other
	count  int
}

// newHotRows reserves the memory for compensated rows; nil where the scatter is no sum of f32
// or has too few updates for a hot row.
func (c *compiler) newHotRows(x *fusion.Scatter) *hotRows {
	updates := product(x.Row.Dims)
	if x.Mode != ir.ScatterAdd || x.Out.DType != ir.F32 || updates <= fusion.SumBlockLen {
		return nil
	}
	maxHot := updates / (fusion.SumBlockLen + 1)
	return &hotRows{places: c.scratch(ir.I32, product(x.RowDims)), errs: c.scratch(ir.F32, maxHot*len(x.WindowAt))}
}

// find counts the updates of each row and reports whether there are hot rows.
func (o *hotRows) find(rows []int32, window int) bool {
	places := view[int32](o.places)[:o.places.elems]
	clear(places)
	for _, row := range rows {
		if row >= 0 {
			places[row]++
		}
	}
	o.count = 0
	for row, updates := range places {
		places[row] = 0
		if updates > fusion.SumBlockLen {
			o.count++
			places[row] = int32(o.count)
		}
	}
	clear(view[float32](o.errs)[:o.count*window])
	return o.count > 0
}

// sum adds updates to their rows in order, with compensation in hot rows.
func (s *scatterStep) sum(rows []int32, apply func(row, update int)) {
	window, places := len(s.x.WindowAt), view[int32](s.hot.places)
	out, updates, rests := view[float32](s.out), view[float32](s.update), view[float32](s.hot.errs)
	for i, row := range rows {
		switch {
		case row < 0:
		case places[row] == 0:
			apply(s.base(int(row)), i*window)
		default:
			at, rest := s.base(int(row)), rests[int(places[row]-1)*window:][:window]
			for w, offset := range s.x.WindowAt {
				t := simd.CompensatedSum[float32]{Sum: out[at+offset], Err: rest[w]}
				t.Add(updates[i*window+w])
				out[at+offset], rest[w] = t.Sum, t.Err
			}
		}
	}
	for row, place := range places[:s.hot.places.elems] {
		if place > 0 {
			at := s.base(row)
			for w, offset := range s.x.WindowAt {
				out[at+offset] += rests[int(place-1)*window+w]
			}
		}
	}
}
