package cpu

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native"
)

// minFourier is the minimum length of a transform with code of its own, unless there are many, of manyFourier
// numbers at least: a shorter one is a matrix product.
const minFourier, manyFourier = 33, 4096

// maxFourierPrime is the maximum prime factor of such a length. The body of dft transforms others
// by a convolution.
const maxFourierPrime = 13

// isFourier reports whether a node is a Fourier transform that [fourier] compiles.
func isFourier(n *ir.Node) bool {
	if n.Op() != ops.OpDFT || !jit.Available() {
		return false
	}
	size, _ := n.Input(0).Dim(-1).Const()
	many := size > 1 && countOf(n.Input(0)) >= manyFourier && inLanes(size, countOf(n.Input(0))/size, fourierWidth(n.Input(0).DType()))
	return (size >= minFourier || many) && radices(size) != nil
}

// countOf returns the number of elements of a value, 0 where its sizes are open.
func countOf(v ir.Value) int {
	count := 1
	for _, d := range v.Type().Shape {
		n, _ := d.Const()
		count *= n
	}
	return count
}

// fourierWidth returns the number of lanes of a vector.
func fourierWidth(d ir.DType) int { return (&jit.Kernel{Long: d == ir.F64}).Width() }

// fourierStep transforms the rows of an array. A row of n = a·b numbers is a matrix of a rows and b
// columns: its columns are transformed, multiplied by twiddle factors and transposed, and the
// columns of the result are transformed (D. H. Bailey, "FFTs in external or hierarchical memory",
// 1990). The lanes of vectors are columns, so that no transform shuffles lanes.
type fourierStep[T simd.Float] struct {
	length  int
	in, out []*buffer // the real and imaginary parts; in may lack the latter
	work    *buffer   // of each worker: two arrays of both parts
	columns [2]*columnTransform[T]
}

// columnTransform transforms the columns of a matrix with some rows. The rows are stride apart, a
// multiple of the vectors' length.
type columnTransform[T simd.Float] struct {
	rows, columns, stride int
	passes                []fourierPass[T]
}

// fourierPass is a pass of Stockham's algorithm (C. Van Loan, "Computational Frameworks for the
// Fast Fourier Transform", 1992, section 1.7): before it the rows are [radix, groups, done], where
// done counts the frequencies that earlier passes have separated, after it [groups, radix, done].
type fourierPass[T simd.Float] struct {
	radix, groups int
	run           int // elements of done rows
	calls         []*jit.Call
	factors       []T // of each group, or of each element in the last pass of the first transform
}

// fourier compiles a discrete Fourier transform.
func fourier(c *compiler, g *fusion.Group) error {
	if fusion.RoutineOf(g).Node.Input(0).DType() == ir.F64 {
		return fourierOf[float64](c, g, ir.F64)
	}
	return fourierOf[float32](c, g, ir.F32)
}

// fourierOf is [fourier] for a type.
func fourierOf[T simd.Float](c *compiler, g *fusion.Group, d ir.DType) error {
	x := fusion.RoutineOf(g)
	elems := product(x.In[0].Dims)
	if elems == 0 {
		return nil
	}
	s := &fourierStep[T]{length: x.In[0].Dims[len(x.In[0].Dims)-1]}
	arrays := newNestArrays(c, elems)
	for i, e := range x.In {
		e.Value = arrays.partsOf(e.Value)
		buf, err := c.operand(fmt.Sprint(g.Name(), " operand ", i), e, nil)
		if err != nil {
			return err
		}
		s.in = append(s.in, buf)
	}
	var direct [2]bool
	for i, space := range x.Out {
		if space != nil {
			value := scalar.FreeVar("result", d)
			if to := resultBuffer(c.buffers, *space, x.Store(i, value), value); to != nil && !slices.Contains(s.in, to) {
				s.out, direct[i] = append(s.out, to), true
				continue
			}
		}
		s.out = append(s.out, c.scratch(d, elems))
	}
	c.add(s.plan(c, g, d, x.Node.Attrs().(*ops.DFTAttrs).Inverse))
	for i, space := range x.Out {
		if space == nil || direct[i] {
			continue
		}
		err := c.storeResult(g.Name(), *space, s.out[i], func(value scalar.Expr) fusion.ElementStore { return x.Store(i, value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// plan returns the step, with its memory and the code of its passes: of many short transforms, or of a matrix
// whose shape it chooses.
func (s *fourierStep[T]) plan(c *compiler, g *fusion.Group, d ir.DType, inverse bool) step {
	width, count := fourierWidth(d), s.in[0].elems/s.length
	code := fourierKernel{d: d, sign: -1, real: len(s.in) == 1}
	if inverse {
		code.sign = 1
	}
	var made step = s
	elems := 0 // of a worker
	if inLanes(s.length, count, width) {
		x := newLanesFourier(c, s, code, width)
		s.columns[0], s.columns[1] = x.t, &columnTransform[T]{}
		elems, count = 4*s.length*x.t.stride, x.chunks()
		made = x
	} else {
		rows := fourierRows(s.length, width)
		s.columns[0] = newColumnTransform[T](c, code, rows, s.length/rows, width, true)
		code.real = false
		s.columns[1] = newColumnTransform[T](c, code, s.length/rows, rows, width, false)
		elems = s.workElems()
	}
	s.work = c.scratch(d, min(workers(), count)*elems)
	bytes := 0
	for _, t := range s.columns {
		for _, p := range t.passes {
			bytes += len(p.factors) * d.Size()
		}
	}
	c.program.memory.reserve(native.Allocation{Name: "twiddle factors of " + g.Name(), Bytes: int64(bytes)}, nil)
	return made
}

// newColumnTransform compiles the passes of a transform of columns; twiddles multiplies the results by those of
// the matrix.
func newColumnTransform[T simd.Float](c *compiler, code fourierKernel, rows, columns, width int, twiddles bool) *columnTransform[T] {
	t := &columnTransform[T]{rows: rows, columns: columns, stride: roundUp(columns, width)}
	done := 1
	for _, r := range radices(rows) {
		p := fourierPass[T]{radix: r, groups: rows / done / r, run: done * t.stride}
		code.radix, code.run, code.twiddles = r, p.run, groupTwiddles
		switch {
		case p.groups > 1:
			p.factors = groupFactors[T](p.groups, r, code.sign)
		case twiddles:
			code.twiddles, p.factors = elementTwiddles, t.matrixFactors(rows*columns, code.sign)
		default:
			code.twiddles = noTwiddles
		}
		pass := code
		compiled := pass.compile(&c.env.kernels)
		for range workers() {
			p.calls = append(p.calls, compiled.NewCall())
		}
		t.passes = append(t.passes, p)
		done *= r
		code.real = false
	}
	return t
}

func roundUp(n, by int) int { return (n + by - 1) / by * by }

// fourierRows returns the number of rows of the matrix of n numbers for which the transforms
// compute fewest elements.
func fourierRows(n, width int) int {
	best, least := 1, math.MaxInt
	for rows := 1; rows <= n; rows++ {
		if n%rows != 0 {
			continue
		}
		columns := n / rows
		cost := rows*roundUp(columns, width)*len(radices(rows)) + columns*roundUp(rows, width)*len(radices(columns))
		if cost < least && rows > 1 && columns > 1 {
			best, least = rows, cost
		}
	}
	return best
}

// radices returns the radices of the passes for a length; nil where it has a large prime factor.
func radices(n int) []int {
	var list []int
	for _, r := range []int{8, 4, 2, 3, 5, 7, 11, maxFourierPrime} {
		for ; n%r == 0 && n > 1; n /= r {
			if r == 8 && n == 16 { // two passes of radix 4
				break
			}
			list = append(list, r)
		}
	}
	if n > 1 {
		return nil
	}
	return list
}

// twiddle returns exp(sign·2πi·k/n), from an angle of at most π.
func twiddle(k, n int, sign float64) complex128 {
	if k %= n; 2*k > n {
		k -= n
	}
	return cmplx.Rect(1, sign*2*math.Pi*float64(k)/float64(n))
}

// groupFactors returns the real and imaginary parts of the twiddle factors of each group, for
// frequencies 1 to radix-1 of a pass.
func groupFactors[T simd.Float](groups, radix int, sign float64) []T {
	list := make([]T, 0, 2*groups*(radix-1))
	for p := range groups {
		for k := 1; k < radix; k++ {
			w := twiddle(p*k, groups*radix, sign)
			list = append(list, T(real(w)), T(imag(w)))
		}
	}
	return list
}

// matrixFactors returns the twiddle factors between the two transforms of n numbers: the real
// parts of all elements, then the imaginary parts.
func (t *columnTransform[T]) matrixFactors(n int, sign float64) []T {
	list := make([]T, 2*t.rows*t.stride)
	for i := range t.rows {
		for j := range t.columns {
			w := twiddle(i*j, n, sign)
			at := i*t.stride + j
			list[at], list[t.rows*t.stride+at] = T(real(w)), T(imag(w))
		}
	}
	return list
}

// partElems returns the number of elements of one part in a worker's memory.
func (s *fourierStep[T]) partElems() int {
	a, b := s.columns[0], s.columns[1]
	return max(a.rows*a.stride, b.rows*b.stride)
}

// workElems returns the number of elements of a worker's memory.
func (s *fourierStep[T]) workElems() int { return 4 * s.partElems() }

func (s *fourierStep[T]) run(r *runner) { r.job.run(s, s.in[0].elems/s.length) }

// complexArray is the real and the imaginary parts of numbers; the latter may be nil, for 0.
type complexArray[T simd.Float] [2][]T

func (s *fourierStep[T]) do(worker, row int) {
	var in, out complexArray[T]
	for i, b := range s.in {
		in[i] = view[T](b)[row*s.length:][:s.length]
	}
	for i, b := range s.out {
		out[i] = view[T](b)[row*s.length:][:s.length]
	}
	part := s.partElems()
	memory := view[T](s.work)[worker*4*part:][:4*part]
	free := [2]complexArray[T]{{memory[:part], memory[part : 2*part]}, {memory[2*part : 3*part], memory[3*part:]}}
	a, b := s.columns[0], s.columns[1]
	if a.stride != a.columns {
		in = copyRows(free[1], a.stride, in, a.columns, a.rows, a.columns)
	}
	x, other := a.transform(worker, in, free[0], free[1])
	for i := range x {
		simd.Transpose(other[i], b.stride, x[i], a.stride, a.rows, a.columns)
	}
	if b.stride == b.columns && len(b.passes)%2 == 1 {
		b.transform(worker, other, out, x)
		return
	}
	if b.stride == b.columns {
		b.transform(worker, other, x, out)
		return
	}
	x, _ = b.transform(worker, other, x, other)
	copyRows(out, b.columns, x, b.stride, b.rows, b.columns)
}

// copyRows copies rows of n elements of both parts, where in has them, and returns the copy.
func copyRows[T simd.Float](to complexArray[T], toStride int, from complexArray[T], fromStride, rows, n int) complexArray[T] {
	for i := range to {
		if from[i] == nil {
			to[i] = nil
			continue
		}
		for r := range rows {
			copy(to[i][r*toStride:][:n], from[i][r*fromStride:][:n])
		}
	}
	return to
}

// transform runs the passes, the first of which writes to a, the next to b and so on in turns.
// It returns the array with the result, and the other one.
func (t *columnTransform[T]) transform(worker int, in, a, b complexArray[T]) (result, other complexArray[T]) {
	for i := range t.passes {
		t.passes[i].execute(worker, in, a)
		in, a, b = a, b, a
	}
	return in, a
}

func (p *fourierPass[T]) execute(worker int, in, out complexArray[T]) {
	call, array := p.calls[worker], 0
	set := func(at *T) {
		call.Set(array, unsafe.Pointer(at))
		array++
	}
	for j := range p.radix {
		for _, part := range in {
			if part != nil {
				set(&part[j*p.groups*p.run])
			}
		}
	}
	for k := range p.radix {
		for _, part := range out {
			set(&part[k*p.run])
		}
	}
	switch {
	case p.groups > 1:
		for i := range 2 * (p.radix - 1) {
			set(&p.factors[i])
		}
	case p.factors != nil:
		for k := range p.radix {
			set(&p.factors[k*p.run])
			set(&p.factors[(p.radix+k)*p.run])
		}
	}
	call.RunRows(p.groups, p.run)
}
