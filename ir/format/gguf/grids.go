package gguf

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
	"sync"
)

// grids.bin has the points of the grid types, constants of the format, as suite/grids.py writes them from
// the gguf package of Python: those of IQ1_S, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S.
//
//go:embed grids.bin
var packedGrids []byte

// grid is a list of points of 8 or 4 coordinates.
type grid struct {
	values []float32
	size   int
}

func (g grid) point(i int) []float32 { return g.values[i*g.size:][:g.size] }

// gridTables unpacks the grids at first use.
var gridTables = sync.OnceValue(func() (t struct{ one, two, twoX, twoS, three, threeS grid }) {
	rest := packedGrids
	take := func(points, size, bits int, levels ...float32) grid {
		g := grid{size: size}
		each := 8 / bits
		for _, x := range rest[:points*size/each] {
			for k := range each {
				g.values = append(g.values, levels[x>>(8/each*k)&(1<<bits-1)])
			}
		}
		rest = rest[points*size/each:]
		return g
	}
	t.one = take(2048, 8, 2, -1, 0, 1, 0)
	t.two = take(256, 8, 2, 8, 25, 43, 0)
	t.twoX = take(512, 8, 2, 8, 25, 43, 0)
	t.twoS = take(1024, 8, 2, 8, 25, 43, 0)
	t.three = take(256, 4, 3, 4, 12, 20, 28, 36, 44, 52, 62)
	t.threeS = take(512, 4, 3, 1, 3, 5, 7, 9, 11, 13, 15)
	return t
})

// evenSigns returns eight signs of seven bits: the eighth makes their number even.
func evenSigns(x uint32) byte { return byte(x) | byte(bits.OnesCount32(x)&1)<<7 }

// signed writes the coordinates of a point times d, with a sign for each.
func signed(out, point []float32, d float32, signs byte) {
	for i, x := range point {
		s := float32(1)
		if signs>>i&1 != 0 {
			s = -1
		}
		out[i] = float32(d*x) * s
	}
}

func unpackIQ2XXS(b []byte, out []float32) {
	t := gridTables()
	d := half(b)
	for n := range 8 { // 32 elements of 8 bytes: four indices; four signs and a scale
		q := b[2+8*n:]
		word := binary.LittleEndian.Uint32(q[4:])
		scale := float32(d*(0.5+float32(word>>28))) * 0.25
		for k := range 4 {
			signed(out[32*n+8*k:], t.two.point(int(q[k])), scale, evenSigns(word>>(7*k)&127))
		}
	}
}

func unpackIQ2XS(b []byte, out []float32) {
	t := gridTables()
	d := half(b)
	for n := range 32 { // 8 elements of 2 bytes
		word := binary.LittleEndian.Uint16(b[2+2*n:])
		scale := b[66+n/4] >> (4 * (n / 2 % 2)) & 15
		signed(out[8*n:], t.twoX.point(int(word&511)), float32(d*(0.5+float32(scale)))*0.25, evenSigns(uint32(word>>9)))
	}
}

func unpackIQ2S(b []byte, out []float32) {
	t := gridTables()
	d := half(b)
	for n := range 32 {
		index := int(b[2+n]) | int(b[66+n/4]>>(2*(n%4))&3)<<8
		scale := b[74+n/4] >> (4 * (n / 2 % 2)) & 15
		signed(out[8*n:], t.twoS.point(index), float32(d*(0.5+float32(scale)))*0.25, b[34+n])
	}
}

func unpackIQ3XXS(b []byte, out []float32) {
	t := gridTables()
	d := half(b)
	for n := range 8 { // 32 elements: eight indices; four signs and a scale
		word := binary.LittleEndian.Uint32(b[66+4*n:])
		scale := float32(d*(0.5+float32(word>>28))) * 0.5
		for k := range 8 {
			signs := evenSigns(word >> (7 * (k / 2)) & 127)
			signed(out[32*n+4*k:], t.three.point(int(b[2+8*n+k])), scale, signs>>(4*(k%2)))
		}
	}
}

func unpackIQ3S(b []byte, out []float32) {
	t := gridTables()
	d := half(b)
	for n := range 64 { // 4 elements each
		index := int(b[2+n]) | int(b[66+n/8]>>(n%8)&1)<<8
		scale := b[106+n/16] >> (4 * (n / 8 % 2)) & 15
		signed(out[4*n:], t.threeS.point(index), d*float32(1+2*int(scale)), b[74+n/2]>>(4*(n%2)))
	}
}

// shifted writes the coordinates of a point, moved by an eighth, times d.
func shifted(out, point []float32, d float32, down bool) {
	delta := float32(0.125)
	if down {
		delta = -delta
	}
	for i, x := range point {
		out[i] = d * (x + delta)
	}
}

func unpackIQ1S(b []byte, out []float32) {
	t := gridTables()
	d := half(b)
	for n := range 8 { // 32 elements: four indices; their high bits, a scale and a sign
		word := binary.LittleEndian.Uint16(b[34+2*n:])
		scale := d * float32(2*int(word>>12&7)+1)
		for k := range 4 {
			index := int(b[2+4*n+k]) | int(word>>(3*k)&7)<<8
			shifted(out[32*n+8*k:], t.one.point(index), scale, word&0x8000 != 0)
		}
	}
}

// unpackIQ1M has the f16 scale in the highest four bits of four words of scales.
func unpackIQ1M(b []byte, out []float32) {
	t := gridTables()
	var words [4]uint16
	bits16 := uint16(0)
	for i := range words {
		words[i] = binary.LittleEndian.Uint16(b[48+2*i:])
		bits16 |= words[i] >> 12 << (4 * i)
	}
	var raw [2]byte
	binary.LittleEndian.PutUint16(raw[:], bits16)
	d := half(raw[:])
	for n := range 32 { // 8 elements each
		high := b[32+n/2] >> (4 * (n % 2))
		scale := d * float32(2*int(words[n/8]>>(3*(n/2%4))&7)+1)
		shifted(out[8*n:], t.one.point(int(b[n])|int(high&7)<<8), scale, high&8 != 0)
	}
}
