package routine

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Reference implements [Routine]. It computes in f64.
func (f Factor) Reference(memory [][]byte) {
	codes, size := memory[len(memory)-2], f.Rows*f.Cols
	for i := range f.Batch {
		m := columns{rows: f.Rows, cols: f.Cols, x: readFloats(f.DType, memory[0], i*size, size)}
		code, others := 0, []float64(nil)
		switch f.Op {
		case CholeskyFactor:
			code = m.cholesky()
		case LUFactor:
			var pivots []int
			pivots, code = m.eliminate()
			for k, p := range pivots {
				binary.LittleEndian.PutUint64(memory[1][8*(i*len(pivots)+k):], uint64(p+1))
			}
		case HouseholderFactor:
			others = m.reflect()
		case EigenFactor:
			others = m.diagonalise()
		}
		writeFloats(f.DType, memory[0], i*size, m.x)
		writeFloats(f.DType, memory[1], i*len(others), others)
		binary.LittleEndian.PutUint32(codes[4*i:], uint32(code))
	}
}

func readFloats(d dtype.DType, memory []byte, at, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		if d == dtype.F64 {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(memory[8*(at+i):]))
		} else {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(memory[4*(at+i):])))
		}
	}
	return out
}

func writeFloats(d dtype.DType, memory []byte, at int, x []float64) {
	for i, v := range x {
		if d == dtype.F64 {
			binary.LittleEndian.PutUint64(memory[8*(at+i):], math.Float64bits(v))
		} else {
			binary.LittleEndian.PutUint32(memory[4*(at+i):], math.Float32bits(float32(v)))
		}
	}
}

// columns is a matrix whose columns lie one after the other.
type columns struct {
	rows, cols int
	x          []float64
}

func (m columns) column(j int) []float64 { return m.x[j*m.rows : (j+1)*m.rows] }

// cholesky returns the first column, counted from 1, whose pivot is not positive, or 0.
func (m columns) cholesky() (code int) {
	for k := range m.cols {
		own := m.column(k)
		if !(own[k] > 0) {
			return k + 1
		}
		root := math.Sqrt(own[k])
		for i := k; i < m.rows; i++ {
			own[i] /= root
		}
		for j := k + 1; j < m.cols; j++ {
			subtract(m.column(j)[j:], own[j], own[j:])
		}
	}
	return 0
}

// subtract is y -= factor·x.
func subtract(y []float64, factor float64, x []float64) {
	for i, v := range x {
		y[i] -= factor * v
	}
}

// eliminate factors with partial pivoting. It returns the row swapped with each row, and the first
// column, counted from 1, without a pivot, or 0.
func (m columns) eliminate() (pivots []int, code int) {
	for k := range min(m.rows, m.cols) {
		own, best := m.column(k), k
		for i := k + 1; i < m.rows; i++ {
			if math.Abs(own[i]) > math.Abs(own[best]) {
				best = i
			}
		}
		pivots = append(pivots, best)
		for j := range m.cols {
			c := m.column(j)
			c[k], c[best] = c[best], c[k]
		}
		if own[k] == 0 {
			if code == 0 {
				code = k + 1
			}
			continue
		}
		for i := k + 1; i < m.rows; i++ {
			own[i] /= own[k]
		}
		for j := k + 1; j < m.cols; j++ {
			c := m.column(j)
			subtract(c[k+1:], c[k], own[k+1:])
		}
	}
	return pivots, code
}

// reflect triangularises by Householder reflections 1 - τ·v·vᵀ and returns each τ.
func (m columns) reflect() (taus []float64) {
	for k := range min(m.rows, m.cols) {
		own := m.column(k)[k:]
		rest := norm(own[1:])
		if rest == 0 {
			taus = append(taus, 0)
			continue
		}
		end := -math.Copysign(math.Hypot(own[0], rest), own[0])
		tau := (end - own[0]) / end
		for i := range own[1:] {
			own[1+i] /= own[0] - end
		}
		own[0] = 1
		for j := k + 1; j < m.cols; j++ {
			c := m.column(j)[k:]
			subtract(c, tau*dot(own, c), own)
		}
		own[0], taus = end, append(taus, tau)
	}
	return taus
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func norm(x []float64) float64 { return math.Sqrt(dot(x, x)) }

// eigenSweeps is enough sweeps of Jacobi rotations for any matrix in f64.
const eigenSweeps = 40

// diagonalise replaces a symmetric matrix by its eigenvectors, reading only the lower triangle, and
// returns the eigenvalues in ascending order (Jacobi's method by cyclic sweeps: Golub and Van Loan, Matrix
// Computations, section 8.5).
func (m columns) diagonalise() []float64 {
	n := m.rows
	a, v := columns{n, n, slices.Clone(m.x)}, columns{n, n, make([]float64, n*n)}
	for j := range n {
		v.x[j*n+j] = 1
		for i := range j {
			a.x[j*n+i] = a.x[i*n+j]
		}
	}
	size := norm(a.x)
	for range eigenSweeps {
		for p := range n {
			for q := p + 1; q < n; q++ {
				if math.Abs(a.x[q*n+p]) > size*0x1p-56 {
					a.rotate(v, p, q)
				}
			}
		}
	}
	order, values := permute.Counting(0, n), make([]float64, n)
	slices.SortFunc(order, func(i, j int) int {
		if a.x[i*n+i] < a.x[j*n+j] {
			return -1
		}
		return 1
	})
	for to, from := range order {
		values[to] = a.x[from*n+from]
		copy(m.column(to), v.column(from))
	}
	return values
}

// rotate makes element p, q of a symmetric matrix 0, and rotates the columns of v.
func (m columns) rotate(v columns, p, q int) {
	n := m.rows
	ratio := (m.x[q*n+q] - m.x[p*n+p]) / (2 * m.x[q*n+p])
	tan := math.Copysign(1, ratio) / (math.Abs(ratio) + math.Hypot(1, ratio))
	cos := 1 / math.Hypot(1, tan)
	sin := tan * cos
	turn := func(x, y *float64) { *x, *y = cos**x-sin**y, sin**x+cos**y }
	for k := range n {
		turn(&m.x[k*n+p], &m.x[k*n+q])
	}
	for k := range n {
		turn(&m.x[p*n+k], &m.x[q*n+k])
		turn(&v.x[p*n+k], &v.x[q*n+k])
	}
}
