//go:build !js

package ops

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Reference implementations of ops with a body, which are as large as the bodies: the wasm module
// does not have them.

// reference returns the reference implementation of an op on matrices, or of dft.
func reference(op ir.Op) evalRule {
	if op == OpDFT {
		return evalDFT
	}
	if r := matrixReferences[op]; r != nil {
		return r.eval
	}
	return nil
}

// matrixReference is the reference implementation of an op for one matrix of each operand.
type matrixReference func(n *ir.Node, in []matrix) []matrix

var matrixReferences = map[ir.Op]matrixReference{
	OpCholesky:        func(_ *ir.Node, in []matrix) []matrix { return []matrix{plainCholesky(in[0].symmetric())} },
	OpLU:              func(_ *ir.Node, in []matrix) []matrix { return plainLU(in[0].clone()) },
	OpTriangularSolve: plainTriangular,
	OpSolve:           plainSolve,
	OpHouseholder:     func(_ *ir.Node, in []matrix) []matrix { return plainHouseholder(in[0].clone()) },
	OpQR: func(n *ir.Node, in []matrix) []matrix {
		q, r := plainQR(in[0].clone())
		k := min(r.rows, r.cols)
		if isFull(n) {
			k = r.rows
		}
		return []matrix{q.block(q.rows, k), r.block(k, r.cols)}
	},
	OpJacobi: func(n *ir.Node, in []matrix) []matrix {
		return []matrix{plainJacobi(in[0].clone(), *n.Attrs().(*JacobiAttrs))}
	},
	OpEigh: func(_ *ir.Node, in []matrix) []matrix { return plainEigh(in[0].symmetric()) },
	OpSVD:  func(n *ir.Node, in []matrix) []matrix { return plainSVD(in[0], isFull(n)) },
}

// eval applies the reference implementation to each matrix of the batch.
func (f matrixReference) eval(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out := make([]*ir.Array, n.NumResults())
	for r := range out {
		var err error
		if out[r], err = resultArray(n, r); err != nil {
			return nil, err
		}
	}
	batch := product(in[0].Dims[:len(in[0].Dims)-2])
	for i := range batch {
		one := make([]matrix, len(in))
		for k, a := range in {
			one[k] = matrixAt(a, i)
		}
		for r, x := range f(n, one) {
			for e, v := range x.x {
				at := i*len(x.x) + e
				if out[r].F != nil {
					out[r].F[at] = v
				} else {
					out[r].I[at] = int64(v)
				}
			}
		}
	}
	for r := range out {
		out[r] = c.Round(out[r])
	}
	return out, nil
}

// matrix is one matrix of a reference implementation, in row-major order; a vector has one
// row.
type matrix struct {
	rows, cols int
	x          []float64
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

// matrixAt returns matrix i of a batch, as a copy.
func matrixAt(a *ir.Array, i int) matrix {
	rank := len(a.Dims)
	m := newMatrix(a.Dims[rank-2], a.Dims[rank-1])
	copy(m.x, a.F[i*len(m.x):])
	return m
}

func (m matrix) at(i, j int) float64 { return m.x[i*m.cols+j] }

func (m matrix) set(i, j int, v float64) { m.x[i*m.cols+j] = v }

func (m matrix) clone() matrix {
	c := newMatrix(m.rows, m.cols)
	copy(c.x, m.x)
	return c
}

func (m matrix) transposed() matrix {
	t := newMatrix(m.cols, m.rows)
	for i := range m.rows {
		for j := range m.cols {
			t.set(j, i, m.at(i, j))
		}
	}
	return t
}

func (m matrix) times(o matrix) matrix {
	p := newMatrix(m.rows, o.cols)
	for i := range m.rows {
		for j := range o.cols {
			sum := 0.0
			for k := range m.cols {
				sum += m.at(i, k) * o.at(k, j)
			}
			p.set(i, j, sum)
		}
	}
	return p
}

// symmetric returns the symmetric part.
func (m matrix) symmetric() matrix {
	s := m.clone()
	for i := range m.rows {
		for j := range m.cols {
			s.set(i, j, (m.at(i, j)+m.at(j, i))/2)
		}
	}
	return s
}

func identity(n int) matrix {
	m := newMatrix(n, n)
	for i := range n {
		m.set(i, i, 1)
	}
	return m
}

// fill sets all elements to v.
func (m matrix) fill(v float64) matrix {
	for i := range m.x {
		m.x[i] = v
	}
	return m
}

// block returns the first rows and columns.
func (m matrix) block(rows, cols int) matrix {
	c := newMatrix(rows, cols)
	for i := range rows {
		copy(c.x[i*cols:(i+1)*cols], m.x[i*m.cols:])
	}
	return c
}

// columnNorm returns the Euclidean norm of a column.
func (m matrix) columnNorm(j int) float64 {
	sum := 0.0
	for i := range m.rows {
		sum = math.Hypot(sum, m.at(i, j))
	}
	return sum
}

// columnsDot returns the dot product of two columns.
func (m matrix) columnsDot(p, q int) float64 {
	sum := 0.0
	for i := range m.rows {
		sum += m.at(i, p) * m.at(i, q)
	}
	return sum
}

// columns returns some of the columns.
func (m matrix) columns(which []int) matrix {
	c := newMatrix(m.rows, len(which))
	for j, from := range which {
		for i := range m.rows {
			c.set(i, j, m.at(i, from))
		}
	}
	return c
}

// orthogonaliseColumns orthogonalises the columns of a matrix in cyclic order, and returns them and
// the orthogonal matrix of the rotations.
func orthogonaliseColumns(x matrix) (rotated, rotation matrix) {
	rotation = identity(x.cols)
	for range 60 {
		still := true
		for p := range x.cols {
			for q := p + 1; q < x.cols; q++ {
				still = orthogonalisePair(x, rotation, p, q) && still
			}
		}
		if still {
			break
		}
	}
	return x, rotation
}

// orthogonalisePair makes two columns of x orthogonal, and reports whether they already were.
func orthogonalisePair(x, rotation matrix, p, q int) bool {
	a, c, d := x.columnsDot(p, p), x.columnsDot(q, q), x.columnsDot(p, q)
	if math.Abs(d) <= 1e-17*math.Sqrt(a*c) {
		return true
	}
	zeta := (c - a) / (2 * d)
	tan := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
	cos := 1 / math.Hypot(1, tan)
	for _, m := range []matrix{x, rotation} {
		for i := range m.rows {
			u, v := m.at(i, p), m.at(i, q)
			m.set(i, p, cos*(u-tan*v))
			m.set(i, q, cos*(tan*u+v))
		}
	}
	return false
}

// orient negates the columns that violate the sign convention, in all matrices.
func orient(x matrix, more ...matrix) {
	for j := range x.cols {
		sum := 0.0
		for i := range x.rows {
			sum += x.at(i, j) / (float64(i) + math.Sqrt2)
		}
		if sum >= 0 {
			continue
		}
		for _, m := range append(more, x) {
			for i := range m.rows {
				m.set(i, j, -m.at(i, j))
			}
		}
	}
}

func plainCholesky(a matrix) matrix {
	l := newMatrix(a.rows, a.rows)
	for j := range a.rows {
		for i := j; i < a.rows; i++ {
			sum := a.at(i, j)
			for k := range j {
				sum -= l.at(i, k) * l.at(j, k)
			}
			switch {
			case i > j:
				l.set(i, j, sum/l.at(j, j))
			case sum > 0:
				l.set(j, j, math.Sqrt(sum))
			default:
				return l.fill(math.NaN())
			}
		}
	}
	return l
}

func plainLU(a matrix) []matrix {
	k := min(a.rows, a.cols)
	pivots, order := newMatrix(1, k), newMatrix(1, a.rows)
	for i := range a.rows {
		order.x[i] = float64(i)
	}
	for j := range k {
		p := j
		for i := j + 1; i < a.rows; i++ {
			if x, best := a.at(i, j), a.at(p, j); math.Abs(x) > math.Abs(best) || x != x && best == best {
				p = i
			}
		}
		pivots.x[j] = float64(p)
		order.x[j], order.x[p] = order.x[p], order.x[j]
		for c := range a.cols {
			above, below := a.at(j, c), a.at(p, c)
			a.set(j, c, below)
			a.set(p, c, above)
		}
		if a.at(j, j) == 0 {
			continue
		}
		for i := j + 1; i < a.rows; i++ {
			a.set(i, j, a.at(i, j)/a.at(j, j))
			for c := j + 1; c < a.cols; c++ {
				a.set(i, c, a.at(i, c)-a.at(i, j)*a.at(j, c))
			}
		}
	}
	return []matrix{a, pivots, order}
}

func plainTriangular(n *ir.Node, in []matrix) []matrix {
	a := n.Attrs().(*TriangularAttrs)
	t, y := in[0].clone(), in[1].clone()
	for i := range t.rows {
		for j := range t.cols {
			if i != j && (i > j) != a.Lower {
				t.set(i, j, 0)
			}
		}
		if a.UnitDiagonal {
			t.set(i, i, 1)
		}
	}
	// x·op(a) = b is op(a)ᵀ·xᵀ = bᵀ
	if !a.LeftSide {
		y = y.transposed()
	}
	lower := a.Lower
	if a.TransposeA == a.LeftSide {
		t, lower = t.transposed(), !lower
	}
	x := substitute(t, y, lower)
	if !a.LeftSide {
		x = x.transposed()
	}
	return []matrix{x}
}

// substitute solves t·x = y for a triangular t.
func substitute(t, y matrix, lower bool) matrix {
	x := y.clone()
	for step := range t.rows {
		i := step
		if !lower {
			i = t.rows - 1 - step
		}
		for c := range x.cols {
			sum := x.at(i, c)
			for k := range t.cols {
				if k < i == lower && k != i {
					sum -= t.at(i, k) * x.at(k, c)
				}
			}
			x.set(i, c, sum/t.at(i, i))
		}
	}
	return x
}

func plainSolve(n *ir.Node, in []matrix) []matrix {
	a := in[0]
	if n.Attrs().(*SolveAttrs).TransposeA {
		a = a.transposed()
	}
	f := plainLU(a.clone())
	y := in[1].clone()
	for i, from := range f[2].x {
		copy(y.x[i*y.cols:(i+1)*y.cols], in[1].x[int(from)*y.cols:])
	}
	l := f[0].clone()
	for i := range l.rows {
		l.set(i, i, 1)
	}
	return []matrix{substitute(f[0], substitute(l, y, true), false)}
}

// normBelow returns the norm of the part of column j below the diagonal. A norm so small that quotients by
// it are inexact, since its elements are subnormal, is 0, and so are they then.
func (m matrix) normBelow(j int) (norm float64) {
	for i := j + 1; i < m.rows; i++ {
		norm = math.Hypot(norm, m.at(i, j))
	}
	if norm < 0x1p-1022/0x1p-52 {
		norm = 0
		for i := j + 1; i < m.rows; i++ {
			m.set(i, j, 0)
		}
	}
	return norm
}

func plainHouseholder(x matrix) []matrix {
	tau := newMatrix(1, min(x.rows, x.cols))
	for j := range tau.x {
		below := x.normBelow(j)
		if below == 0 {
			continue
		}
		head := x.at(j, j)
		end := -math.Copysign(math.Hypot(head, below), head)
		v := newMatrix(x.rows, 1)
		v.x[j] = 1
		for i := j + 1; i < x.rows; i++ {
			v.x[i] = x.at(i, j) / (head - end)
		}
		tau.x[j] = (end - head) / end
		for c := j; c < x.cols; c++ {
			along := 0.0
			for i := j; i < x.rows; i++ {
				along += v.x[i] * x.at(i, c)
			}
			for i := j; i < x.rows; i++ {
				x.set(i, c, x.at(i, c)-tau.x[j]*along*v.x[i])
			}
		}
		for i := j + 1; i < x.rows; i++ {
			x.set(i, j, v.x[i])
		}
	}
	return []matrix{x, tau}
}

// plainQR returns full factors.
func plainQR(r matrix) (q, _ matrix) {
	q = identity(r.rows)
	for j := range min(r.rows, r.cols) {
		below := r.normBelow(j)
		if below == 0 {
			continue
		}
		end := -math.Copysign(math.Hypot(r.at(j, j), below), r.at(j, j))
		v := newMatrix(r.rows, 1)
		for i := j; i < r.rows; i++ {
			v.x[i] = r.at(i, j) / (r.at(j, j) - end)
		}
		v.x[j] = 1
		scale := (end - r.at(j, j)) / end
		reflect(r, v, scale)
		rotated := q.transposed()
		reflect(rotated, v, scale)
		q = rotated.transposed()
		for i := j + 1; i < r.rows; i++ {
			r.set(i, j, 0)
		}
	}
	return q, r
}

// reflect subtracts scale·v·vᵀ·m from m.
func reflect(m, v matrix, scale float64) {
	along := v.transposed().times(m)
	for i := range m.rows {
		for c := range m.cols {
			m.set(i, c, m.at(i, c)-scale*v.x[i]*along.x[c])
		}
	}
}

// plainJacobi rotates the same pairs one after the other.
func plainJacobi(x matrix, a JacobiAttrs) matrix {
	others := x.rows + x.rows%2 - 1
	for k := range a.sweeps(x.rows) * max(others, 0) {
		for i := range x.rows {
			j := (2*k%others - i + others) % others
			if i == j || i == others {
				j = others
			}
			if i < j && j < x.rows {
				orthogonaliseRows(x, i, j, a.Length)
			}
		}
	}
	return x
}

// orthogonaliseRows makes the first length elements of two rows orthogonal.
func orthogonaliseRows(x matrix, i, j, length int) {
	var own, other, across float64
	for c := range length {
		own += x.at(i, c) * x.at(i, c)
		other += x.at(j, c) * x.at(j, c)
		across += x.at(i, c) * x.at(j, c)
	}
	if math.Abs(across) <= 0x1p-52*math.Sqrt(own*other) {
		return
	}
	zeta := (other - own) / (2 * across)
	tan := 1 / (math.Abs(zeta) + math.Hypot(1, zeta))
	if zeta < 0 {
		tan = -tan
	}
	cos := 1 / math.Hypot(1, tan)
	for c := range x.cols {
		u, v := x.at(i, c), x.at(j, c)
		x.set(i, c, cos*(u-tan*v))
		x.set(j, c, cos*(tan*u+v))
	}
}

// plainEigh orthogonalises the columns of a + c, where the shift c makes it positive
// definite: they become eigenvectors times shifted eigenvalues.
func plainEigh(a matrix) []matrix {
	n := a.rows
	c := 0.0
	for j := range n {
		c += 2 * a.columnNorm(j)
	}
	shifted := a.clone()
	for i := range n {
		shifted.set(i, i, a.at(i, i)+c)
	}
	_, v := orthogonaliseColumns(shifted)
	w, image := newMatrix(1, n), a.times(v)
	for j := range n {
		for i := range n {
			w.x[j] += v.at(i, j) * image.at(i, j)
		}
	}
	order := counting(0, n)
	slices.SortStableFunc(order, func(i, j int) int { return boolInt(w.x[i] > w.x[j]) - boolInt(w.x[i] < w.x[j]) })
	v = v.columns(order)
	orient(v)
	return []matrix{{1, n, pick(w.x, order)}, v}
}

func plainSVD(x matrix, full bool) []matrix {
	if x.rows < x.cols {
		f := plainSVD(x.transposed(), full)
		v, u := f[0].clone(), f[2].transposed()
		orient(v.block(v.rows, u.cols), u)
		orient(v)
		return []matrix{u, f[1], v.transposed()}
	}
	rotated, v := orthogonaliseColumns(x.clone())
	s := newMatrix(1, x.cols)
	for j := range s.x {
		s.x[j] = rotated.columnNorm(j)
	}
	order := counting(0, x.cols)
	slices.SortStableFunc(order, func(i, j int) int { return boolInt(s.x[i] < s.x[j]) - boolInt(s.x[i] > s.x[j]) })
	rotated, v = rotated.columns(order), v.columns(order)
	// the columns of rotated are orthogonal: q has them normalised, and vectors for zero
	// singular values too
	u, r := plainQR(rotated)
	for j := range x.cols {
		if r.at(j, j) < 0 {
			for i := range u.rows {
				u.set(i, j, -u.at(i, j))
			}
		}
	}
	if orient(v, u); !full {
		u = u.block(u.rows, x.cols)
	}
	return []matrix{u, {1, x.cols, pick(s.x, order)}, v.transposed()}
}

// evalDFT computes the defining sum.
func evalDFT(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	re, im := in[0].Clone(), in[0].Clone()
	size := re.Dims[len(re.Dims)-1]
	sign := -2 * math.Pi
	if n.Attrs().(*DFTAttrs).Inverse {
		sign = -sign
	}
	roots := make([]complex128, size)
	for k := range roots {
		roots[k] = cmplx.Rect(1, sign*float64(k)/float64(size))
	}
	for at := range re.F {
		first, k := at/size*size, at%size
		sum := complex(0, 0)
		for j := range size {
			x := complex(in[0].F[first+j], 0)
			if len(in) > 1 {
				x += complex(0, in[1].F[first+j])
			}
			sum += x * roots[j*k%size]
		}
		re.F[at], im.F[at] = real(sum), imag(sum)
	}
	return []*ir.Array{c.Round(re), c.Round(im)}, nil
}
