package simd

import (
	"encoding/binary"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Packing is a block-quantised format of GGUF files: an f16 scale, in one format also a minimum, and 32
// integers a block.
type Packing uint8

// The formats that there are kernels for.
const (
	Q8    Packing = iota // q8_0: 32 signed bytes
	Q4                   // q4_0: 16 bytes, integers 0 to 15 in the lower halves; biased by 8
	Q4Min                // q4_1: an f16 minimum, then 16 bytes as of q4_0, which are added to it
)

// packings is the number of formats.
const packings = Q4Min + 1

// PackedElements is the number of elements of a block.
const PackedElements = 32

// Bytes returns the size of a block.
func (p Packing) Bytes() int { return [...]int{34, 18, 20}[p] }

// start returns the offset of the integers of a block.
func (p Packing) start() int { return p.Bytes() - [...]int{32, 16, 16}[p] }

// packedArguments are the arguments of the code that multiplies a row of blocks with x, or unpacks it to x; n is the
// number of blocks. sums, which has room for [maxLanes], receives the partial sum of each lane.
type packedArguments struct {
	w       *byte
	x, sums *float32
	numbers *float32 // the values of elements of 4 bits before scaling
	blocks  *float32 // the sums of the blocks of x, for minima
}

// packedKernels are the kernels for quantised rows; without code they are in Go, of one lane.
type packedKernels struct {
	code    *asm.Code
	entries [packings]unsafe.Pointer
	unpacks [packings]unsafe.Pointer
	lanes   int
}

var packedDots = cache[packedKernels]{generate: newPackedKernels, plain: func() *packedKernels { return &packedKernels{lanes: 1} }}

func newPackedKernels(level Level) (k *packedKernels, err error) {
	l, k := &library{}, &packedKernels{lanes: level.vectorBytes() / 4}
	for p := range k.entries {
		l.add(&k.entries[p], packedCode(level, Packing(p)))
		l.add(&k.unpacks[p], unpackCode(level, Packing(p)))
	}
	k.code, err = l.load()
	return k, err
}

// numbersOf4Bits are the values of elements of 4 bits, biased by 8, and from the ninth on without a
// bias.
var numbersOf4Bits = [24]float32{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// minimaAtOnce is how many blocks have their minima multiplied by one instruction.
const minimaAtOnce = 4

// SumsLen returns the length of the sums of a row of blocks: see [BlockSums].
func SumsLen(blocks int) int { return blocks + blocks%minimaAtOnce*(minimaAtOnce-1) }

// BlockSums sets sums, [SumsLen] numbers, to the sums of the blocks of x, which [DotsPacked] multiplies
// with the minima of blocks: groups of four, then each of the rest followed by three zeros.
func BlockSums(x, sums []float32) {
	clear(sums)
	blocks := len(x) / PackedElements
	for b := range blocks {
		total := float32(0)
		for _, v := range x[b*PackedElements:][:PackedElements] {
			total += v
		}
		sums[sumAt(b, blocks)] = total
	}
}

// sumAt returns where the sum of a block is.
func sumAt(b, blocks int) int {
	if whole := blocks - blocks%minimaAtOnce; b > whole {
		return whole + (b-whole)*minimaAtOnce
	}
	return b
}

// DotsPacked computes c[i] = Σ w[i][l]·x[l] for len(c) quantised rows, rowBytes apart, of the
// given number of blocks. blockSums are those of x ([BlockSums]) for a format with minima. A sum
// depends on its row alone.
func DotsPacked(p Packing, blocks int, w []byte, rowBytes int, x, blockSums, c []float32) {
	k := packedDots.get()
	bytes, x := blocks*p.Bytes(), x[:blocks*PackedElements]
	if k.code == nil || blocks == 0 {
		for i := range c {
			c[i] = p.dot(w[i*rowBytes:][:bytes], x) + p.minima(w[i*rowBytes:][:bytes], blockSums)
		}
		return
	}
	var sums [maxLanes]float32
	t := packedArguments{x: &x[0], sums: &sums[0], numbers: p.table()}
	if p == Q4Min {
		t.blocks = &blockSums[0]
	}
	for i := range c {
		row := w[i*rowBytes:][:bytes]
		t.w = &row[0]
		asm.Call(k.entries[p], unsafe.Pointer(&t), blocks)
		if !minimaInCode {
			sums[0] += p.minima(row, blockSums)
		}
		if k.lanes == 16 {
			c[i] = sumOf16((*[16]float32)(sums[:]))
		} else {
			c[i] = pairwise(sums[:k.lanes])
		}
	}
}

// table returns the values of the format's elements of 4 bits.
func (p Packing) table() *float32 {
	if p == Q4Min {
		return &numbersOf4Bits[8]
	}
	return &numbersOf4Bits[0]
}

// Unpack sets to, [PackedElements] numbers for each block, to the elements of quantised blocks: scale times integer, plus
// the minimum, each rounded to f32.
func (p Packing) Unpack(to []float32, blocks []byte) {
	k, n := packedDots.get(), len(to)/PackedElements
	if n == 0 {
		return
	}
	blocks = blocks[:n*p.Bytes()]
	if k.code != nil {
		t := packedArguments{w: &blocks[0], x: &to[0], numbers: p.table()}
		asm.Call(k.unpacks[p], unsafe.Pointer(&t), n)
		return
	}
	half := func(x []byte) float32 { return float32(dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(x)))) }
	for ; len(blocks) > 0; blocks, to = blocks[p.Bytes():], to[PackedElements:] {
		scale := half(blocks)
		for i := range PackedElements {
			to[i] = float32(scale * float32(p.number(blocks[p.start():], i))) // rounded before the sum
			if p == Q4Min {
				to[i] += half(blocks[2:])
			}
		}
	}
}

// sumOf16 is [pairwise] of 16 lanes.
func sumOf16(l *[16]float32) float32 {
	a, b, c, d := (l[0]+l[8])+(l[4]+l[12]), (l[1]+l[9])+(l[5]+l[13]), (l[2]+l[10])+(l[6]+l[14]), (l[3]+l[11])+(l[7]+l[15])
	return (a + c) + (b + d)
}

// minima returns the products of the minima of a row with the sums of the blocks of x.
func (p Packing) minima(w []byte, blockSums []float32) (total float32) {
	if p != Q4Min {
		return 0
	}
	blocks := len(w) / p.Bytes()
	for b := range blocks {
		total += blockSums[sumAt(b, blocks)] * float32(dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(w[b*p.Bytes()+2:]))))
	}
	return total
}

// dot is the kernel in Go, without minima.
func (p Packing) dot(w []byte, x []float32) float32 {
	total := float32(0)
	for len(w) > 0 {
		sum, block := float32(0), w[:p.Bytes()]
		for l, v := range x[:PackedElements] {
			sum += float32(p.number(block[p.start():], l)) * v
		}
		total += sum * float32(dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(block))))
		w, x = w[p.Bytes():], x[PackedElements:]
	}
	return total
}

// number returns an element of a block before scaling.
func (p Packing) number(block []byte, i int) int {
	const half = PackedElements / 2
	bias := 8
	switch {
	case p == Q8:
		return int(int8(block[i]))
	case p == Q4Min:
		bias = 0
	}
	if i < half {
		return int(block[i]&15) - bias
	}
	return int(block[i-half]>>4) - bias
}
