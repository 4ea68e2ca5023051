package simd

import "unsafe"

// plain returns the kernels in Go.
func plain[T Float]() *kernels[T] {
	return &kernels[T]{
		lanes:  2,
		wide:   []kernel[T]{{rows: 4, plain: tile4x4[T]}, {rows: 1, plain: anyTile[T](1, 4)}},
		narrow: []kernel[T]{{rows: 4, plain: anyTile[T](4, 2)}, {rows: 1, plain: anyTile[T](1, 2)}},
		row:    kernel[T]{rows: 1, plain: anyTile[T](1, 8)}, rowColumns: 8,
		dotLanes: 4,
	}
}

func at[T Float](p *T, i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}

func storeOrAdd[T Float](c *T, x T, add bool) {
	if add {
		x += *c
	}
	*c = x
}

// anyTile returns the kernel of a small tile.
func anyTile[T Float](rows, columns int) func(k int, a Matrix[T], b []T, bRow int, c *T, cRow int, add bool) {
	return func(k int, a Matrix[T], b []T, bRow int, c *T, cRow int, add bool) {
		x, y := &a.Data[0], &b[0]
		for i := range rows {
			for j := range columns {
				var sum T
				for l := range k {
					sum += *at(x, i*a.Row+l*a.Col) * *at(y, l*bRow+j)
				}
				storeOrAdd(at(c, i*cRow+j), sum, add)
			}
		}
	}
}

// tile4x4 keeps its sums in registers on processors with enough of them.
func tile4x4[T Float](k int, a Matrix[T], b []T, bRow int, c *T, cRow int, add bool) {
	left, right, aRow, aCol := &a.Data[0], &b[0], a.Row, a.Col
	var s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33 T
	for l := range k {
		row := (*[4]T)(unsafe.Pointer(at(right, l*bRow)))
		b0, b1, b2, b3 := row[0], row[1], row[2], row[3]
		x := *at(left, l*aCol)
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		x = *at(left, l*aCol+aRow)
		s10, s11, s12, s13 = s10+x*b0, s11+x*b1, s12+x*b2, s13+x*b3
		x = *at(left, l*aCol+2*aRow)
		s20, s21, s22, s23 = s20+x*b0, s21+x*b1, s22+x*b2, s23+x*b3
		x = *at(left, l*aCol+3*aRow)
		s30, s31, s32, s33 = s30+x*b0, s31+x*b1, s32+x*b2, s33+x*b3
	}
	for i, s := range [4][4]T{{s00, s01, s02, s03}, {s10, s11, s12, s13}, {s20, s21, s22, s23}, {s30, s31, s32, s33}} {
		for j, x := range s {
			storeOrAdd(at(c, i*cRow+j), x, add)
		}
	}
}

func plainDots[T Float](k int, a *T, aRow int, x, sums *T) {
	for i := range 4 {
		var s [4]T
		for l := 0; l < k; l += 4 {
			for j := range 4 {
				s[j] += *at(a, i*aRow+l+j) * *at(x, l+j)
			}
		}
		*(*[4]T)(unsafe.Pointer(at(sums, 4*i))) = s
	}
}
