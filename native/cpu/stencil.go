package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// stencilStep computes a contraction with one column for each of many contiguous channels, as a
// depthwise convolution and its gradients are, with lanes along the channels:
// c[i][channel] = Σ a[rowAt[i] + colAt[l] + channel]·b[l][channel]. The shorter of the axes i
// and l are the taps, the longer the positions. Where the taps are summed, each position is
// written once; where the positions are, each chunk of them has partial sums.
type stencilStep struct {
	*matrixProduct
	channels           int
	sumsTaps           bool
	aPosition, aTap    []int32 // offsets in a
	bPosition, bTap    []int32 // in b
	runs               []stencilRun
	groups             []stencilGroup
	spans              []stencilSpan
	partial            *buffer // of each chunk, where positions are summed
	partialRow         int     // its elements for each tap
	perChunk, chunkNum int     // runs of a chunk
}

// stencilRun is a range of equally spaced positions.
type stencilRun struct{ first, count int }

// stencilSpan is a range of channels, of whole vectors. The last vector may overlap the one before; its
// partial sums have a place of their own.
type stencilSpan struct{ first, partial, count int }

// stencilGroup is the code for a range of taps, its arrays, and a call of it for each worker.
type stencilGroup struct {
	arrays []stencilArray
	calls  []*jit.Call
}

// stencilArray is the elements of a factor or of the result from an offset to one span elements further.
type stencilArray struct {
	of       stencilOperand
	at, span int32
}

// stencilOperand is a factor or the result of a stencil.
type stencilOperand uint8

const (
	factorA stencilOperand = iota
	factorB
	stencilResult
)

const (
	maxTaps        = 128
	tapsOfGroup    = 16
	positionsChunk = 512 // least number of positions in a chunk
	// maxPartial is the number of partial sums above which there are no more than 32 chunks.
	maxPartial = 1 << 20
)

// newStencil returns the step of a contraction whose result has the channels last; nil where
// there are no channels.
func newStencil(c *compiler, x *matrixProduct) *stencilStep {
	one := func(m *matrix) bool { return slices.Equal(m.batch, rowMajor(x.batch, 1)) }
	if len(x.batch) == 0 || !one(&x.a) || !one(&x.b) || x.n != 1 || x.double || !fitsStencil(x.m, x.k, x.count) || max(x.a.buf.elems, x.b.buf.elems) > math.MaxInt32 {
		return nil // offsets have 32 bits
	}
	s := &stencilStep{matrixProduct: x, channels: x.count, sumsTaps: x.k <= x.m}
	rows, columns := offsetsOf(x.a.rowAt, x.m, x.a.row), offsetsOf(x.a.colAt, x.k, x.a.col)
	if b := offsetsOf(x.b.rowAt, x.k, x.b.row); s.sumsTaps {
		s.aPosition, s.aTap, s.bTap = rows, columns, b
		s.bPosition = make([]int32, x.m)
	} else {
		s.aPosition, s.aTap, s.bPosition = columns, rows, b
		s.bTap = make([]int32, x.m)
	}
	s.findRuns()
	s.findSpans()
	s.compile(&c.env.kernels)
	s.chunkNum = min(max(32, maxPartial/(x.m*x.count)), max(1, len(s.aPosition)/positionsChunk))
	s.perChunk = (len(s.runs) + s.chunkNum - 1) / s.chunkNum
	s.chunkNum = (len(s.runs) + s.perChunk - 1) / s.perChunk
	if !s.sumsTaps {
		s.partial = c.scratch(ir.F32, s.chunkNum*x.m*s.partialRow)
	}
	return s
}

// fitsStencil reports whether a contraction of m rows and k summed elements for each of the channels may be
// a stencil: it has few taps, many positions and at least a vector of channels, and its offsets have 32 bits.
func fitsStencil(m, k, channels int) bool {
	taps, positions := min(m, k), max(m, k)
	return jit.Available() && channels >= jit.Width() && taps >= 2 && taps <= maxTaps && positions >= 4*taps && channels <= math.MaxInt32/positions
}

// findSpans divides the channels.
func (s *stencilStep) findSpans() {
	width := jit.Width()
	full := s.channels - s.channels%width
	s.spans, s.partialRow = []stencilSpan{{0, 0, full}}, full
	if full < s.channels {
		s.spans = append(s.spans, stencilSpan{s.channels - width, full, width})
		s.partialRow += width
	}
}

// offsetsOf returns a table, or that of a stride.
func offsetsOf(table []int32, n, stride int) []int32 {
	if table != nil {
		return table
	}
	return offsets([]int{n}, []int{stride})
}

// findRuns divides the positions.
func (s *stencilStep) findRuns() {
	a, b := s.steps()
	last := 0
	for i := 1; i <= len(s.aPosition); i++ {
		if i < len(s.aPosition) && s.aPosition[i]-s.aPosition[i-1] == a && s.bPosition[i]-s.bPosition[i-1] == b {
			continue
		}
		s.runs = append(s.runs, stencilRun{last, i - last})
		last = i
	}
}

// steps returns the distances between the positions of a run in both factors.
func (s *stencilStep) steps() (a, b int32) {
	return s.aPosition[1] - s.aPosition[0], s.bPosition[1] - s.bPosition[0]
}

// compile compiles the code of groups of taps.
func (s *stencilStep) compile(set *jit.Set) {
	for first := 0; first < len(s.aTap); first += tapsOfGroup {
		k := &stencilKernel{s: s, rows: &jit.Rows{Counter: -1}, shared: map[stencilOperand]int{}}
		k.rows.Kernels = []*jit.Kernel{&k.Kernel}
		if end := min(first+tapsOfGroup, len(s.aTap)); s.sumsTaps {
			k.sumTaps(first, end)
		} else {
			k.sumPositions(first, end)
		}
		code, g := set.Compile(k.rows), stencilGroup{arrays: k.arrays}
		for range workers() {
			g.calls = append(g.calls, code.NewCall())
		}
		s.groups = append(s.groups, g)
	}
}

// stencilKernel is the code of a group of taps in the making.
type stencilKernel struct {
	jit.Kernel
	s      *stencilStep
	rows   *jit.Rows
	arrays []stencilArray
	shared map[stencilOperand]int // the arrays of operands
}

// access returns the array for an operand at one of several offsets. Where kernels
// have shifts, which move later loads and stores, and few enough arrays for registers, all offsets share one array.
func (k *stencilKernel) access(of stencilOperand, offsets []int32, i int) int {
	array := func(at, span int32) int {
		k.arrays = append(k.arrays, stencilArray{of, at, span})
		k.rows.Strides = append(k.rows.Strides, 4*int(k.s.step(of)))
		return k.Array()
	}
	if !jit.HasShifts() {
		return array(offsets[i], 0)
	}
	first := slices.Min(offsets)
	if _, ok := k.shared[of]; !ok {
		k.shared[of] = array(first, slices.Max(offsets)-first)
	}
	k.Shift(int(offsets[i] - first))
	return k.shared[of]
}

var (
	stencilMultiply = jit.Operation{Op: scalar.OpMul, From: ir.F32, To: ir.F32}
	stencilAdd      = jit.Operation{Op: scalar.OpAdd, From: ir.F32, To: ir.F32}
)

// sumTaps adds the products of taps at each position.
func (k *stencilKernel) sumTaps(first, end int) {
	var products []jit.Value
	for i := range end - first {
		x := k.Load(k.access(factorA, k.s.aTap[first:end], i), ir.F32)
		y := k.Load(k.access(factorB, k.s.bTap[first:end], i), ir.F32)
		v, _ := k.Apply(stencilMultiply, x, y)
		products = append(products, v)
	}
	result := k.access(stencilResult, []int32{0}, 0)
	if first > 0 {
		products = append(products, k.Load(result, ir.F32))
	}
	for ; len(products) > 1; products = products[1:] { // adds up in pairs
		v, _ := k.Apply(stencilAdd, products[0], products[1])
		products = append(products[1:], v)
	}
	k.Store(result, ir.F32, products[0])
}

// sumPositions adds the products at a position to the sums of the taps.
func (k *stencilKernel) sumPositions(first, end int) {
	sums := make([]int32, end-first)
	for i := range sums {
		sums[i] = int32((first + i) * k.s.partialRow)
	}
	shared := k.Load(k.access(factorB, []int32{0}, 0), ir.F32)
	for i := range sums {
		x := k.Load(k.access(factorA, k.s.aTap[first:end], i), ir.F32)
		v, _ := k.Apply(stencilMultiply, x, shared)
		to := k.access(stencilResult, sums, i)
		v, _ = k.Apply(stencilAdd, k.Load(to, ir.F32), v)
		k.Store(to, ir.F32, v)
	}
}

// step returns the distance of an operand's elements from position to position.
func (s *stencilStep) step(of stencilOperand) int32 {
	a, b := s.steps()
	switch {
	case of == factorA:
		return a
	case of == factorB && !s.sumsTaps:
		return b
	case of == stencilResult && s.sumsTaps:
		return int32(s.channels)
	}
	return 0
}

func (s *stencilStep) run(r *runner) {
	r.job.runCosting(s.cost, s, s.chunkNum)
	if s.sumsTaps {
		return
	}
	partial := view[float32](s.partial)
	sums := partial[:s.m*s.partialRow]
	for i := 1; i < s.chunkNum; i++ {
		for j, x := range partial[i*len(sums):][:len(sums)] {
			sums[j] += x
		}
	}
	c := view[float32](s.c)
	for tap := range s.m {
		for _, x := range s.spans {
			copy(c[tap*s.channels+x.first:], sums[tap*s.partialRow+x.partial:][:x.count])
		}
	}
}

// do computes the runs of a chunk.
func (s *stencilStep) do(worker, chunk int) {
	a, b := view[float32](s.a.buf)[s.a.first(s.batch, 0, s.env):], view[float32](s.b.buf)[s.b.first(s.batch, 0, s.env):]
	c := view[float32](s.c)
	if !s.sumsTaps {
		c = view[float32](s.partial)[chunk*s.m*s.partialRow:][:s.m*s.partialRow]
		clear(c)
	}
	for _, r := range s.runs[chunk*s.perChunk : min(len(s.runs), (chunk+1)*s.perChunk)] {
		for _, x := range s.spans {
			for i := range s.groups {
				s.call(worker, &s.groups[i], r, x, a, b, c)
			}
		}
	}
}

// call computes a group of taps for a run of positions and a span of channels.
func (s *stencilStep) call(worker int, g *stencilGroup, r stencilRun, x stencilSpan, a, b, c []float32) {
	call, first := g.calls[worker], int32(x.first)
	for i, array := range g.arrays {
		from, at := a, array.at+first+s.aPosition[r.first]
		switch {
		case array.of == factorB:
			from, at = b, array.at+first+s.bPosition[r.first]
		case array.of == stencilResult && s.sumsTaps:
			from, at = c, array.at+first+int32(r.first*s.channels)
		case array.of == stencilResult:
			from, at = c, array.at+int32(x.partial)
		}
		last := int(at) + max(0, (r.count-1)*int(s.step(array.of))) + int(array.span) + x.count
		call.Set(i, unsafe.Pointer(unsafe.SliceData(from[at:last])))
	}
	call.RunRows(r.count, x.count)
}
