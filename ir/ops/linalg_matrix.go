package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

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

func (m matrix) at(i, j int) float64     { return m.x[i*m.cols+j] }
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
