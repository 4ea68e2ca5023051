package cpu

import (
	"cmp"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scatterStep combines updates into their rows, in order. Each worker has a range of rows.
type scatterStep struct {
	x                *fusion.Scatter
	windowAt         []int // the offsets of the elements of a row in out
	row, update, out *buffer
	env              *environment
	guarded          bool // does nothing once a check has failed
	// hot sums the updates of rows with many in f64, where results are f32; nil for all other scatters.
	hot *hotRows
	// combine has the function of each worker that combines the update at one element offset into
	// the row at another.
	combine []func(row, update int)
	short   func(rows []int32, first, end int) // combines all updates of rows of one number or a few; nil for other rows
	code    *jit.Code                          // combines vectors of a row; nil where there are none
	rows    int                                // of the result
	chunk   int                                // rows of a chunk
}

// newScatter completes a step: it compiles the combination of vectors, and shares out the rows.
func newScatter(c *compiler, s *scatterStep) *scatterStep {
	s.rows, s.hot, s.windowAt = product(s.x.RowDims), newHotRows(c, s.x), s.x.WindowAt()
	if s.isContiguous() {
		s.code = s.compile(&c.env.kernels)
	}
	// Every chunk reads the rows of all updates.
	const readCost, elementCost = 0.5, 0.3 // nanoseconds
	updates, window := float64(s.row.elems), float64(len(s.windowAt))
	chunks := 1
	if updates*window*elementCost > 2*chunkCost && window*elementCost > readCost {
		chunks = min(workers(), s.rows)
	}
	s.chunk = (s.rows + chunks - 1) / max(chunks, 1)
	s.short = s.ofShortRows()
	for range workers() {
		s.combine = append(s.combine, s.combiner())
	}
	return s
}

// isContiguous reports whether a row of the result has the layout of its update.
func (s *scatterStep) isContiguous() bool {
	for w, at := range s.windowAt {
		if at != w {
			return false
		}
	}
	return true
}

// compile returns code that combines vectors of an update, array 1, into those of a row, array
// 0; nil where kernels cannot.
func (s *scatterStep) compile(set *jit.Set) *jit.Code {
	d := s.out.dtype
	op, ok := map[ir.ScatterMode]scalar.Op{
		ir.ScatterAdd: scalar.OpAdd, ir.ScatterMul: scalar.OpMul, ir.ScatterMin: scalar.OpMin, ir.ScatterMax: scalar.OpMax,
	}[s.x.Mode]
	in := d
	if d == ir.F16 || d == ir.BF16 {
		in = ir.F32
	}
	o := jit.Operation{Op: op, From: in, To: in}
	if !ok || !jit.Available() || !jit.Stored(d) || !jit.Has(o) || in.Size() < 4 {
		return nil
	}
	k := &jit.Kernel{Long: d.Size() == 8}
	if len(s.windowAt) < k.Width() {
		return nil
	}
	to, from := k.Array(), k.Array()
	v, _ := k.Apply(o, k.Load(to, d), k.Load(from, d))
	k.Store(to, d, v)
	return set.Compile(jit.One(k))
}

func (s *scatterStep) run(r *runner) {
	if s.guarded && s.env.status.failed() || s.rows == 0 {
		return
	}
	rows, window := view[int32](s.row)[:s.row.elems], len(s.windowAt)
	if s.hot != nil && !s.hot.all {
		s.hot.any = s.hot.find(rows, window)
	}
	r.job.run(s, (s.rows+s.chunk-1)/s.chunk)
}

// do combines the updates of a range of rows.
func (s *scatterStep) do(worker, chunk int) {
	combine, rows := s.combine[worker], view[int32](s.row)[:s.row.elems]
	first := chunk * s.chunk
	end := min(first+s.chunk, s.rows)
	switch {
	case s.hot != nil && s.hot.all:
		s.sumNumbers(rows, first, end)
		return
	case s.hot != nil && s.hot.any:
		s.sum(rows, first, end, combine)
		return
	case s.short != nil:
		s.short(rows, first, end)
		return
	}
	window := len(s.windowAt)
	for i, row := range rows {
		if row := int(row); row >= first && row < end {
			combine(s.base(row), i*window)
		}
	}
}

// ofShortRows returns the function that combines updates with rows [first, end) of fewer numbers than a vector, which are one
// after the other; nil for any other scatter.
func (s *scatterStep) ofShortRows() func(rows []int32, first, end int) {
	steps, dims, window := s.x.RowSteps, s.x.RowDims, len(s.windowAt)
	if s.x.Mode == ir.ScatterSet || s.code != nil || !s.isContiguous() || len(steps) == 0 || steps[len(steps)-1] != window {
		return nil
	}
	for k, step := range steps[:len(steps)-1] {
		if step != steps[k+1]*dims[k+1] {
			return nil
		}
	}
	switch s.out.dtype {
	case ir.F32:
		return shortRows[float32](s)
	case ir.F64:
		return shortRows[float64](s)
	case ir.I32:
		return shortRows[int32](s)
	case ir.I64:
		return shortRows[int64](s)
	case ir.U32:
		return shortRows[uint32](s)
	case ir.U64:
		return shortRows[uint64](s)
	}
	return nil
}

// shortNumber is an element type of [shortRows].
type shortNumber interface{ number | uint64 }

// shortRows is [scatterStep.ofShortRows] of an element type.
func shortRows[T shortNumber](s *scatterStep) func(rows []int32, first, end int) {
	window := len(s.windowAt)
	if s.x.Mode == ir.ScatterAdd && window == 1 {
		return addOnes[T](s)
	}
	return func(rows []int32, first, end int) {
		out, updates := view[T](s.out)[first*window:end*window], view[T](s.update)[:len(rows)*window]
		for _, row := range rows {
			update := updates[:window]
			updates = updates[window:]
			if row := uint(int(row) - first); row < uint(end-first) {
				combineShort(s.x.Mode, out[int(row)*window:][:window], update)
			}
		}
	}
}

// combineShort combines an update with a row, which is as long.
func combineShort[T shortNumber](mode ir.ScatterMode, row, update []T) {
	update = update[:len(row)]
	switch mode {
	case ir.ScatterMul:
		for i, x := range update {
			row[i] *= x
		}
	case ir.ScatterMin:
		for i, x := range update {
			row[i] = min(row[i], x)
		}
	case ir.ScatterMax:
		for i, x := range update {
			row[i] = max(row[i], x)
		}
	default:
		for i, x := range update {
			row[i] += x
		}
	}
}

// addOnes is [shortRows] of sums of rows of one number.
func addOnes[T shortNumber](s *scatterStep) func(rows []int32, first, end int) {
	return func(rows []int32, first, end int) {
		out, updates := view[T](s.out)[first:end], view[T](s.update)[:len(rows)]
		for i, row := range rows {
			if at := uint(int(row) - first); at < uint(len(out)) {
				out[at] += updates[i]
			}
		}
	}
}

// base returns the first element of a row.
func (s *scatterStep) base(row int) int {
	if len(s.x.RowDims) == 1 {
		return row * s.x.RowSteps[0]
	}
	at := 0
	for k := len(s.x.RowDims) - 1; k >= 0; k-- {
		at += row % s.x.RowDims[k] * s.x.RowSteps[k]
		row /= s.x.RowDims[k]
	}
	return at
}

// combiner returns the function that combines an update into a row, for one worker.
func (s *scatterStep) combiner() func(row, update int) {
	if s.x.Mode == ir.ScatterSet {
		return s.copier()
	}
	rest := combiners[s.out.dtype]
	if s.code == nil {
		return rest(s, 0)
	}
	call, size, window := s.code.NewCall(), s.out.dtype.Size(), len(s.windowAt)
	full := window - window%call.Width()
	finish := rest(s, full)
	return func(row, update int) {
		to, from := s.out.data[row*size:(row+window)*size], s.update.data[update*size:(update+window)*size]
		call.Set(0, unsafe.Pointer(unsafe.SliceData(to)))
		call.Set(1, unsafe.Pointer(unsafe.SliceData(from)))
		call.Run(full)
		if full < window {
			finish(row, update)
		}
	}
}

// combiners are the combinations of all modes but set, by element type, of the elements of a
// window from a given one on.
var combiners = map[ir.DType]func(s *scatterStep, from int) func(row, update int){
	ir.F32: ofOrdered[float32], ir.F64: ofOrdered[float64], ir.F16: (*scatterStep).halves, ir.BF16: (*scatterStep).halves,
	ir.C64: ofNumbers[complex64], ir.C128: ofNumbers[complex128],
	ir.I8: ofOrdered[int8], ir.I16: ofOrdered[int16], ir.I32: ofOrdered[int32], ir.I64: ofOrdered[int64],
	ir.U8: ofOrdered[uint8], ir.U16: ofOrdered[uint16], ir.U32: ofOrdered[uint32], ir.U64: ofOrdered[uint64],
}

func ofNumbers[T unit](s *scatterStep, from int) func(row, update int) {
	return combineEach(s, from, numberCombine[T](s.x.Mode))
}

func ofOrdered[T interface {
	unit
	cmp.Ordered
}](s *scatterStep, from int) func(row, update int) {
	return combineEach(s, from, realCombine[T](s.x.Mode))
}

// copier returns the function of [ir.ScatterSet].
func (s *scatterStep) copier() func(row, update int) {
	size, window := s.out.dtype.Size(), len(s.windowAt)
	if s.isContiguous() {
		return func(row, update int) {
			copy(s.out.data[row*size:(row+window)*size], s.update.data[update*size:(update+window)*size])
		}
	}
	return func(row, update int) {
		for w, at := range s.windowAt {
			to, from := (row+at)*size, (update+w)*size
			copy(s.out.data[to:to+size], s.update.data[from:from+size])
		}
	}
}

func combineEach[T unit](s *scatterStep, from int, combine func(x, u T) T) func(row, update int) {
	window := s.windowAt[from:]
	return func(row, update int) {
		out, updates := view[T](s.out), view[T](s.update)[update+from:]
		for w, at := range window {
			out[row+at] = combine(out[row+at], updates[w])
		}
	}
}

// halves combines 16-bit floats in f32.
func (s *scatterStep) halves(from int) func(row, update int) {
	d, combine := s.out.dtype, realCombine[float32](s.x.Mode)
	return combineEach(s, from, func(x, u uint16) uint16 {
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

// hotRows holds the sums of rows that receive more than [fusion.SumBlockLen] updates.
type hotRows struct {
	places *buffer // for each row its number among the hot ones, from 1, or 0
	sums   *buffer // the sums of hot rows in f64, one row after the other
	rows   []int32 // the hot ones
	any    bool
	all    bool // rows are single numbers with many updates on average: all of them are summed in f64
}

// numbersPerRow is the number of updates on average from which all rows of one number are summed in f64.
const numbersPerRow = 8

// newHotRows reserves the memory for hot rows; nil where the scatter is no sum of f32
// or has too few updates for a hot row.
func newHotRows(c *compiler, x *fusion.Scatter) *hotRows {
	updates := product(x.Row.Dims)
	if x.Mode != ir.ScatterAdd || x.Out.DType != ir.F32 || updates <= fusion.SumBlockLen {
		return nil
	}
	if rows := product(x.RowDims); product(x.WindowDims) == 1 && updates >= numbersPerRow*rows {
		return &hotRows{sums: c.scratch(ir.F64, rows), all: true}
	}
	maxHot := updates / (fusion.SumBlockLen + 1)
	return &hotRows{places: c.scratch(ir.I32, product(x.RowDims)), sums: c.scratch(ir.F64, maxHot*product(x.WindowDims)), rows: make([]int32, 0, maxHot)}
}

// find counts the updates of each row and reports whether there are hot rows. It takes time by the updates, or by
// the rows where those are fewer.
func (o *hotRows) find(rows []int32, window int) bool {
	places := view[int32](o.places)[:o.places.elems]
	o.clear(rows, places)
	o.rows = o.rows[:0]
	for _, row := range rows {
		if row >= 0 {
			if places[row]++; places[row] == fusion.SumBlockLen+1 {
				o.rows = append(o.rows, row)
			}
		}
	}
	if len(o.rows) == 0 {
		return false
	}
	o.clear(rows, places)
	for i, row := range o.rows {
		places[row] = int32(i + 1)
	}
	clear(view[float64](o.sums)[:len(o.rows)*window])
	return true
}

// clear zeroes the places of all rows that have updates.
func (o *hotRows) clear(rows, places []int32) {
	if len(rows) > len(places)/4 {
		clear(places)
		return
	}
	for _, row := range rows {
		if row >= 0 {
			places[row] = 0
		}
	}
}

// sum adds updates to their rows in [first, end) in order.
func (s *scatterStep) sum(rows []int32, first, end int, combine func(row, update int)) {
	window, places := len(s.windowAt), view[int32](s.hot.places)
	out, updates, sums := view[float32](s.out), view[float32](s.update), view[float64](s.hot.sums)
	for i, row := range rows {
		row := int(row)
		if row < first || row >= end {
			continue
		}
		place := int(places[row])
		if place == 0 {
			combine(s.base(row), i*window)
			continue
		}
		sum := sums[(place-1)*window:][:window]
		for w, x := range updates[i*window:][:len(sum)] {
			sum[w] += float64(x)
		}
	}
	for i, row := range s.hot.rows {
		if row := int(row); row >= first && row < end {
			at, sum := s.base(row), sums[i*window:]
			for w, offset := range s.windowAt {
				out[at+offset] = float32(float64(out[at+offset]) + sum[w])
			}
		}
	}
}

// sumNumbers adds updates of one number to their rows in [first, end) in order.
func (s *scatterStep) sumNumbers(rows []int32, first, end int) {
	sums, updates := view[float64](s.hot.sums)[first:end], view[float32](s.update)[:len(rows)]
	clear(sums)
	for i, row := range rows {
		if at := uint(int(row) - first); at < uint(len(sums)) {
			sums[at] += float64(updates[i])
		}
	}
	out, offset := view[float32](s.out), s.windowAt[0]
	for i, sum := range sums {
		if sum != 0 {
			at := s.base(first+i) + offset
			out[at] = float32(float64(out[at]) + sum)
		}
	}
}
