package simd

// kernelsOf returns the kernels of the level in use.
func kernelsOf[T Float]() *kernels[T] {
	var t T
	_, double := any(t).(float64)
	switch {
	case Has == Go && double:
		return any(plain64).(*kernels[T])
	case Has == Go:
		return any(plain32).(*kernels[T])
	case double:
		return any(neon64).(*kernels[T])
	}
	return any(neon32).(*kernels[T])
}

// packedDots returns the kernel for quantised rows and its number of lanes.
func packedDots(p Packing) (dot packedDot, lanes int) {
	if Has == Go {
		return plainPacked(p), 1
	}
	return [...]packedDot{dotQ8NEON, dotQ4NEON}[p], 4
}

var plain32, plain64 = plain[float32](), plain[float64]()

var neon32 = &kernels[float32]{
	lanes:  4,
	wide:   []kernel[float32]{{rows: 12, tile: productNEONf32x12x2}, {rows: 8, tile: productNEONf32x8x2}, {rows: 4, tile: productNEONf32x4x2}, {rows: 2, tile: productNEONf32x2x2}, {rows: 1, tile: productNEONf32x1x2}},
	narrow: []kernel[float32]{{rows: 12, tile: productNEONf32x12x1}, {rows: 8, tile: productNEONf32x8x1}, {rows: 4, tile: productNEONf32x4x1}, {rows: 2, tile: productNEONf32x2x1}, {rows: 1, tile: productNEONf32x1x1}},
	row:    productNEONf32x1x8, rowColumns: 32,
	dots: dotsNEONf32, dotLanes: 8,
}

var neon64 = &kernels[float64]{
	lanes:  2,
	wide:   []kernel[float64]{{rows: 12, tile: productNEONf64x12x2}, {rows: 8, tile: productNEONf64x8x2}, {rows: 4, tile: productNEONf64x4x2}, {rows: 2, tile: productNEONf64x2x2}, {rows: 1, tile: productNEONf64x1x2}},
	narrow: []kernel[float64]{{rows: 12, tile: productNEONf64x12x1}, {rows: 8, tile: productNEONf64x8x1}, {rows: 4, tile: productNEONf64x4x1}, {rows: 2, tile: productNEONf64x2x1}, {rows: 1, tile: productNEONf64x1x1}},
	row:    productNEONf64x1x8, rowColumns: 16,
	dots: dotsNEONf64, dotLanes: 4,
}
