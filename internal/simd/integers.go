package simd

import (
	"math"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// Products of quantised rows with a vector that is rounded to 8 bits, by dot products of integers. The vector is
// rounded in the blocks of the rows: x = scale·q, where scale is the largest magnitude of a block divided by 127.

// Integers are four blocks of a rounded vector in the order in which the kernels read it, or one block and zeros.
type Integers struct {
	// numbers are, for a format of 4 bits, the first halves of the blocks and then the second ones; for one of 8 bits
	// the blocks.
	numbers [4 * PackedElements]int8
	// starts are the first values of dot products in each lane of 32 bits: they subtract the bias of elements.
	starts [PackedElements]int32
	// scales of the blocks, and their sums for minima: scale·Σq.
	scales, sums [4]float32
	_            [8]float32 // whole cache lines
}

// IntegersLen returns the number of [Integers] of a vector of some blocks.
func IntegersLen(blocks int) int { return blocks/4 + blocks%4 }

// HasIntegers reports whether there are kernels for integers.
func HasIntegers() bool { return integerDots.get().code != nil }

// bias returns the number to add to elements to make them unsigned.
func (p Packing) bias() int32 { return [...]int32{128, 8, 0}[p] }

// RoundToIntegers rounds x, whole blocks, for products with rows of a format. out has [IntegersLen] elements.
func RoundToIntegers(p Packing, x []float32, out []Integers) {
	var q [PackedElements]int8
	blocks := len(x) / PackedElements
	whole := blocks - blocks%4
	for b := range blocks {
		to, at := &out[b/4], b%4
		if b >= whole {
			to, at = &out[whole/4+b-whole], 0
			*to = Integers{}
		}
		to.set(p, at, &q, roundBlock((*[PackedElements]float32)(x[b*PackedElements:]), &q))
	}
}

// set stores a block.
func (g *Integers) set(p Packing, at int, q *[PackedElements]int8, scale float32) {
	const half = PackedElements / 2
	if p == Q8 {
		copy(g.numbers[at*PackedElements:], q[:])
	} else {
		copy(g.numbers[at*half:], q[:half])
		copy(g.numbers[(4+at)*half:], q[half:])
	}
	total := int32(0)
	for lane := range PackedElements / 4 {
		sum := int32(q[4*lane]) + int32(q[4*lane+1]) + int32(q[4*lane+2]) + int32(q[4*lane+3])
		total += sum
		if p == Q8 {
			g.starts[at*PackedElements/4+lane] = -p.bias() * sum
		}
	}
	if p == Q4 {
		for lane := range half / 4 {
			i := 4 * lane
			sum := int32(q[i]) + int32(q[i+1]) + int32(q[i+2]) + int32(q[i+3])
			sum += int32(q[half+i]) + int32(q[half+i+1]) + int32(q[half+i+2]) + int32(q[half+i+3])
			g.starts[at*half/4+lane] = -p.bias() * sum
		}
	}
	g.scales[at], g.sums[at] = scale, scale*float32(total)
}

// roundBlock sets q to the multiples of the scale, which it returns, nearest to x, ties to even. The scale is NaN if an
// element is NaN or infinite.
func roundBlock(x *[PackedElements]float32, q *[PackedElements]int8) float32 {
	const (
		magnitude = 1<<31 - 1
		toWhole   = 3 << 22 // as the last bits of its sum with a small number are that number as an integer
	)
	largest := uint32(0) // as bits, whose order is that of magnitudes; NaN is above infinity
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&magnitude)
	}
	scale := math.Float32frombits(largest) / 127
	switch {
	case largest >= 0xff<<23:
		scale = float32(math.NaN())
	case scale == 0:
		scale = 1
	}
	for i, v := range x {
		q[i] = int8(math.Float32bits(v/scale + toWhole))
	}
	return scale
}

// RoundBlocks sets out to x, whole blocks, with each block rounded to multiples of its largest magnitude divided by
// 127.
func RoundBlocks(x, out []float32) {
	var q [PackedElements]int8
	for at := 0; at < len(x); at += PackedElements {
		scale := roundBlock((*[PackedElements]float32)(x[at:]), &q)
		for i, v := range q {
			out[at+i] = scale * float32(v)
		}
	}
}

// integerArguments are the arguments of the code that multiplies rows, gap bytes apart, with a rounded vector.
type integerArguments struct {
	w      *byte
	gap    int
	x      *Integers
	blocks int
	out    *float32
	lanes  *int32
}

// blockLanes are the blocks whose scales the lanes of a vector are multiplied with: of blocks in quarters, and of two
// blocks in halves, the first two and the last two of four.
var blockLanes = [48]int32{
	0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
	0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
	2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3,
}

var integerDots = cache[packedKernels]{generate: newIntegerKernels, plain: func() *packedKernels { return &packedKernels{} }}

func newIntegerKernels(level Level) (k *packedKernels, err error) {
	l, k := &library{}, &packedKernels{}
	for p := range k.entries {
		l.add(&k.entries[p], integerCode(level, Packing(p)))
	}
	k.code, err = l.load()
	return k, err
}

// DotsIntegers computes c[i] = Σ w[i][l]·x[l] for m quantised rows, rowBytes apart, of the given number of blocks, one
// at least. [HasIntegers] reports whether it can be used.
func DotsIntegers(p Packing, m, blocks int, w []byte, rowBytes int, x []Integers, c []float32) {
	if m == 0 {
		return
	}
	_, _, _ = w[(m-1)*rowBytes+blocks*p.Bytes()-1], x[IntegersLen(blocks)-1], c[m-1]
	k := integerDots.get()
	var t integerArguments
	t.w, t.gap, t.x, t.blocks = &w[0], rowBytes-blocks*p.Bytes(), &x[0], blocks
	t.out, t.lanes = &c[0], &blockLanes[0]
	asm.Call(k.entries[p], unsafe.Pointer(&t), m)
}
