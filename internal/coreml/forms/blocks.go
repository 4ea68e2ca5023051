package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// block is a format of packed weights as integers with a scale and, in some formats, an offset, as
// Core ML has them with 4 or 8 bits. The patches set fields of a block to fixed values, so that the
// op itself decomposes the block: with scales of 1 and offsets of 0 it returns the integers, and
// with integers of 1 the scales.
type block struct {
	elements, bytes int
	group           int       // elements per scale
	dtype           mil.DType // bits of an integer
	unit            []patch   // sets scales to 1 and minima to 0
	ones            []patch   // sets integers to 1
	least           []patch   // sets scales to 0, which leaves the minima; nil for formats without
	noLeast         []patch   // sets minima to 0
}

// patch overwrites n consecutive words of a block.
type patch struct {
	at   int
	word string
	n    int
}

// The numbers 1 and 0 in f16.
const oneHalf, zeroHalf = "\x00\x3c", "\x00\x00"

// sixBits sets the scales to 1 and the minima to 0 in q4_k and q5_k.
var sixBits = []patch{{0, oneHalf, 1}, {2, zeroHalf, 1}, {4, "\x01", 4}, {8, "\x00", 4}, {12, "\x01", 4}}

// blocks lists the formats, with the layout of package ops. Integers of 5 and 6 bits, and those of
// formats with a table, are stored as bytes in Core ML.
var blocks = map[string]block{
	"q4_0": {32, 18, 32, mil.Int4, []patch{{0, oneHalf, 1}}, []patch{{2, "\x99", 16}}, nil, nil},
	"q4_1": {
		32, 20, 32, mil.UInt4,
		[]patch{{0, oneHalf + zeroHalf, 1}},
		[]patch{{4, "\x11", 16}},
		[]patch{{0, zeroHalf, 1}},
		[]patch{{2, zeroHalf, 1}},
	},
	"q5_0": {32, 22, 32, mil.Int8, []patch{{0, oneHalf, 1}}, []patch{{2, "\xff", 4}, {6, "\x11", 16}}, nil, nil},
	"q5_1": {
		32, 24, 32, mil.UInt8,
		[]patch{{0, oneHalf + zeroHalf, 1}},
		[]patch{{4, "\x00", 4}, {8, "\x11", 16}},
		[]patch{{0, zeroHalf, 1}},
		[]patch{{2, zeroHalf, 1}},
	},
	"q8_0": {32, 34, 32, mil.Int8, []patch{{0, oneHalf, 1}}, []patch{{2, "\x01", 32}}, nil, nil},
	"q2_k": {
		256, 84, 16, mil.UInt4,
		[]patch{{0, "\x01", 16}, {80, oneHalf + zeroHalf, 1}},
		[]patch{{16, "\x55", 64}},
		[]patch{{80, zeroHalf, 1}},
		[]patch{{82, zeroHalf, 1}},
	},
	"q3_k": {
		256, 110, 16, mil.Int4,
		[]patch{{96, "\x11", 8}, {104, "\xaa", 4}, {108, oneHalf, 1}},
		[]patch{{0, "\xff", 32}, {32, "\x55", 64}},
		nil, nil,
	},
	"q4_k": {256, 144, 32, mil.UInt4, sixBits, []patch{{16, "\x11", 128}}, []patch{{0, zeroHalf, 1}}, []patch{{2, zeroHalf, 1}}},
	"q5_k": {
		256, 176, 32, mil.UInt8, sixBits,
		[]patch{{16, "\x00", 32}, {48, "\x11", 128}},
		[]patch{{0, zeroHalf, 1}},
		[]patch{{2, zeroHalf, 1}},
	},
	"q6_k": {
		256, 210, 16, mil.Int8,
		[]patch{{192, "\x01", 16}, {208, oneHalf, 1}},
		[]patch{{0, "\x11", 128}, {128, "\xaa", 64}},
		nil, nil,
	},
	"q8_k":   {256, 292, 256, mil.Int8, []patch{{0, "\x00\x00\x80\x3f", 1}}, []patch{{4, "\x01", 256}}, nil, nil},
	"iq4_nl": {32, 18, 32, mil.Int8, []patch{{0, oneHalf, 1}}, []patch{{2, "\x88", 16}}, nil, nil},
	"iq4_xs": {256, 136, 32, mil.Int8, []patch{{0, oneHalf, 1}, {2, "\xaa", 2}, {4, "\x11", 4}}, []patch{{8, "\x88", 128}}, nil, nil},
	"mxfp4":  {32, 17, 32, mil.Int8, []patch{{0, "\x80", 1}}, []patch{{1, "\x11", 16}}, nil, nil},
	"nvfp4":  {64, 36, 16, mil.Int8, []patch{{0, "\x40", 4}}, []patch{{4, "\x11", 32}}, nil, nil},
}

// rows returns the blocks of an array of bytes, or of words whose rows may end in up to three
// unused bytes, and the number of blocks per row.
func (f *block) rows(a *ir.Array) (data []byte, count int) {
	row := a.Dims[len(a.Dims)-1] * a.DType.Size()
	count = row / f.bytes
	for all := a.Bytes(); len(all) >= row && row > 0; all = all[row:] {
		data = append(data, all[:count*f.bytes]...)
	}
	return data, count
}

// chunk is the number of blocks decomposed at a time: each of their elements takes several
// intermediate values of eight bytes.
const chunk = 1 << 12

// decode returns the elements of patched blocks.
func (f *block) decode(format string, data []byte, patches ...patch) ([]float64, error) {
	out := make([]float64, 0, len(data)/f.bytes*f.elements)
	for part := range slices.Chunk(data, chunk*f.bytes) {
		a := ir.NewArray(ir.U8, len(part))
		for i, x := range part {
			a.I[i] = int64(x)
		}
		for at := 0; at < len(part); at += f.bytes {
			for _, p := range patches {
				for i := range p.n * len(p.word) {
					a.I[at+p.at+i] = int64(p.word[i%len(p.word)])
				}
			}
		}
		g, err := ir.Build("unpack", func(b *ir.Builder) {
			b.Output("w", ops.Dequantize(b, b.Port(ir.InputPort, "x", a.Type()), format, ir.F32))
		})
		if err != nil {
			return nil, err
		}
		numbers, err := ir.Eval(g, map[string]*ir.Array{"x": a}, ir.EvalOptions{})
		if err != nil {
			return nil, err
		}
		out = append(out, numbers[0].F...)
	}
	return out, nil
}

// ofGroups returns the first element of each group.
func (f *block) ofGroups(x []float64, err error) ([]float64, error) {
	var out []float64
	for i := 0; i < len(x); i += f.group {
		out = append(out, x[i])
	}
	return out, err
}

// scales returns the scale of each group.
func (f *block) scales(format string, data []byte) ([]float64, error) {
	return f.ofGroups(f.decode(format, data, slices.Concat(f.noLeast, f.ones)...))
}

// numbers returns the integers.
func (f *block) numbers(format string, data []byte) ([]int, error) {
	x, err := f.decode(format, data, f.unit...)
	out := make([]int, len(x))
	for i := range x {
		out[i] = int(x[i])
	}
	return out, err
}

// offsets returns the integers that are subtracted from each group before scaling. It replaces a
// group of scale 0 by zeros with scale 1.
func (f *block) offsets(format string, data []byte, scales []float64, numbers []int) ([]float64, error) {
	least, err := f.ofGroups(f.decode(format, data, f.least...))
	for i, x := range least {
		if scales[i] == 0 {
			scales[i] = 1
			clear(numbers[i*f.group : (i+1)*f.group])
		}
		least[i] = -x / scales[i]
	}
	return least, err
}
