package cpu

import "runtime"

// inRegisters says that products are computed by [blocks]: for WebAssembly
// gonum has no assembly, and its loops in Go keep their sums in memory.
const inRegisters = runtime.GOARCH == "wasm"

// blockM and blockN are the size of a block whose sums stay in registers.
const (
	blockM = 4
	blockN = 2
)

// blocks computes m×n elements of a product whose inner axis is not empty, block
// by block.
func blocks[T float32 | float64](x *contraction, a, b, c []T, m, n int) {
	fullM, fullN := m-m%blockM, n-n%blockN
	for i := 0; i < fullM; i += blockM {
		for j := 0; j < fullN; j += blockN {
			block(x, a[i*x.a.row:], b[j*x.b.col:], c[i*x.n+j:])
		}
	}
	for i := range m {
		first := 0
		if i < fullM {
			first = fullN
		}
		for j := first; j < n; j++ {
			c[i*x.n+j] = dot(x, a[i*x.a.row:], b[j*x.b.col:])
		}
	}
}

// block computes the block at the beginning of c.
func block[T float32 | float64](x *contraction, a, b, c []T) {
	var s00, s01, s10, s11, s20, s21, s30, s31 T
	p, q, row, col := 0, 0, x.a.row, x.b.col
	for range x.k {
		b0, b1 := b[q], b[q+col]
		v := a[p]
		s00 += v * b0
		s01 += v * b1
		v = a[p+row]
		s10 += v * b0
		s11 += v * b1
		v = a[p+2*row]
		s20 += v * b0
		s21 += v * b1
		v = a[p+3*row]
		s30 += v * b0
		s31 += v * b1
		p += x.a.col
		q += x.b.row
	}
	n := x.n
	c[0], c[1] = s00, s01
	c[n], c[n+1] = s10, s11
	c[2*n], c[2*n+1] = s20, s21
	c[3*n], c[3*n+1] = s30, s31
}

// dot returns the sum over the inner axis for the first row of a and the first
// column of b.
func dot[T float32 | float64](x *contraction, a, b []T) T {
	var sum T
	for l := range x.k {
		sum += a[l*x.a.col] * b[l*x.b.row]
	}
	return sum
}
