package simd

// transposeKernels returns the kernels for elements of the given size, the largest first.
func transposeKernels(size uintptr) []transposeKernel {
	switch size {
	case 4:
		return transposing[Has].words
	case 8:
		return transposing[Has].doubles
	}
	return nil
}

var transposing = [...]struct{ words, doubles []transposeKernel }{
	Go:     {},
	AVX2:   {words: []transposeKernel{{16, transposeAVX2b32x16}, {8, transposeAVX2b32x8}}, doubles: []transposeKernel{{4, transposeAVX2b64x4}}},
	AVX512: {words: []transposeKernel{{16, transposeAVX512b32x16}, {8, transposeAVX2b32x8}}, doubles: []transposeKernel{{8, transposeAVX512b64x8}, {4, transposeAVX2b64x4}}},
}

// pieceKernel returns the kernel that fills vectors from pieces and its number of lanes; nil
// where there is none.
func pieceKernel() (fill func(rows int, to *float32, toRow int, from *float32, rowAt *int32, list *piece, count int), lanes int) {
	switch Has {
	case AVX512:
		return piecesAVX512, 16
	case AVX2:
		return piecesAVX2, 8
	}
	return nil, 0
}

// packedDots returns the kernel for quantised rows and its number of lanes.
func packedDots(p Packing) (dot packedDot, lanes int) {
	switch Has {
	case AVX512:
		return [...]packedDot{dotQ8AVX512, dotQ4AVX512}[p], 16
	case AVX2:
		return [...]packedDot{dotQ8AVX2, dotQ4AVX2}[p], 8
	}
	return plainPacked(p), 1
}

// kernelsOf returns the kernels of the level in use.
func kernelsOf[T Float]() *kernels[T] {
	var t T
	if _, double := any(t).(float64); double {
		return any(kernels64[Has]).(*kernels[T])
	}
	return any(kernels32[Has]).(*kernels[T])
}

var kernels32 = [...]*kernels[float32]{
	Go: plain[float32](),
	AVX2: {
		lanes: 8, maskedTail: true,
		wide:   []kernel[float32]{{6, productAVX2f32x6x2, tabledAVX2f32x6x2, gatheredAVX2f32x6x2}, {4, productAVX2f32x4x2, tabledAVX2f32x4x2, gatheredAVX2f32x4x2}, {2, productAVX2f32x2x2, tabledAVX2f32x2x2, gatheredAVX2f32x2x2}, {1, productAVX2f32x1x2, tabledAVX2f32x1x2, gatheredAVX2f32x1x2}},
		narrow: []kernel[float32]{{6, productAVX2f32x6x1, tabledAVX2f32x6x1, gatheredAVX2f32x6x1}, {4, productAVX2f32x4x1, tabledAVX2f32x4x1, gatheredAVX2f32x4x1}, {2, productAVX2f32x2x1, tabledAVX2f32x2x1, gatheredAVX2f32x2x1}, {1, productAVX2f32x1x1, tabledAVX2f32x1x1, gatheredAVX2f32x1x1}},
		row:    productAVX2f32x1x8, rowColumns: 64,
		dots: dotsAVX2f32, dotLanes: 16,
	},
	AVX512: {
		lanes: 16, maskedTail: true,
		wide:   []kernel[float32]{{12, productAVX512f32x12x2, tabledAVX512f32x12x2, gatheredAVX512f32x12x2}, {8, productAVX512f32x8x2, tabledAVX512f32x8x2, gatheredAVX512f32x8x2}, {4, productAVX512f32x4x2, tabledAVX512f32x4x2, gatheredAVX512f32x4x2}, {2, productAVX512f32x2x2, tabledAVX512f32x2x2, gatheredAVX512f32x2x2}, {1, productAVX512f32x1x2, tabledAVX512f32x1x2, gatheredAVX512f32x1x2}},
		narrow: []kernel[float32]{{12, productAVX512f32x12x1, tabledAVX512f32x12x1, gatheredAVX512f32x12x1}, {8, productAVX512f32x8x1, tabledAVX512f32x8x1, gatheredAVX512f32x8x1}, {4, productAVX512f32x4x1, tabledAVX512f32x4x1, gatheredAVX512f32x4x1}, {2, productAVX512f32x2x1, tabledAVX512f32x2x1, gatheredAVX512f32x2x1}, {1, productAVX512f32x1x1, tabledAVX512f32x1x1, gatheredAVX512f32x1x1}},
		row:    productAVX512f32x1x8, rowColumns: 128,
		dots: dotsAVX512f32, dotLanes: 32,
	},
}

var kernels64 = [...]*kernels[float64]{
	Go: plain[float64](),
	AVX2: {
		lanes: 4, maskedTail: true,
		wide:   []kernel[float64]{{6, productAVX2f64x6x2, tabledAVX2f64x6x2, gatheredAVX2f64x6x2}, {4, productAVX2f64x4x2, tabledAVX2f64x4x2, gatheredAVX2f64x4x2}, {2, productAVX2f64x2x2, tabledAVX2f64x2x2, gatheredAVX2f64x2x2}, {1, productAVX2f64x1x2, tabledAVX2f64x1x2, gatheredAVX2f64x1x2}},
		narrow: []kernel[float64]{{6, productAVX2f64x6x1, tabledAVX2f64x6x1, gatheredAVX2f64x6x1}, {4, productAVX2f64x4x1, tabledAVX2f64x4x1, gatheredAVX2f64x4x1}, {2, productAVX2f64x2x1, tabledAVX2f64x2x1, gatheredAVX2f64x2x1}, {1, productAVX2f64x1x1, tabledAVX2f64x1x1, gatheredAVX2f64x1x1}},
		row:    productAVX2f64x1x8, rowColumns: 32,
		dots: dotsAVX2f64, dotLanes: 8,
	},
	AVX512: {
		lanes: 8, maskedTail: true,
		wide:   []kernel[float64]{{12, productAVX512f64x12x2, tabledAVX512f64x12x2, gatheredAVX512f64x12x2}, {8, productAVX512f64x8x2, tabledAVX512f64x8x2, gatheredAVX512f64x8x2}, {4, productAVX512f64x4x2, tabledAVX512f64x4x2, gatheredAVX512f64x4x2}, {2, productAVX512f64x2x2, tabledAVX512f64x2x2, gatheredAVX512f64x2x2}, {1, productAVX512f64x1x2, tabledAVX512f64x1x2, gatheredAVX512f64x1x2}},
		narrow: []kernel[float64]{{12, productAVX512f64x12x1, tabledAVX512f64x12x1, gatheredAVX512f64x12x1}, {8, productAVX512f64x8x1, tabledAVX512f64x8x1, gatheredAVX512f64x8x1}, {4, productAVX512f64x4x1, tabledAVX512f64x4x1, gatheredAVX512f64x4x1}, {2, productAVX512f64x2x1, tabledAVX512f64x2x1, gatheredAVX512f64x2x1}, {1, productAVX512f64x1x1, tabledAVX512f64x1x1, gatheredAVX512f64x1x1}},
		row:    productAVX512f64x1x8, rowColumns: 64,
		dots: dotsAVX512f64, dotLanes: 16,
	},
}
