package ops_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPackedNumbersAreThoseOfTheirReferencesBitByBit holds every format against
// testdata/packed.json, as bytes and as words.
func TestPackedNumbersAreThoseOfTheirReferencesBitByBit(t *testing.T) {
	data, err := os.ReadFile("testdata/packed.json")
	if err != nil {
		t.Fatal(err)
	}
	var formats map[string]struct {
		Bytes, Digest string
		First         []uint32
	}
	if err := json.Unmarshal(data, &formats); err != nil {
		t.Fatal(err)
	}
	if len(formats) != 17 {
		t.Errorf("%d formats", len(formats))
	}
	for name, want := range formats {
		packed, err := hex.DecodeString(want.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		asBytes := ir.NewArray(ir.U8, len(packed))
		asWords := ir.NewArray(ir.U32, (len(packed)+3)/4)
		for i, x := range packed {
			asBytes.I[i] = int64(x)
			asWords.I[i/4] |= int64(x) << (8 * (i % 4))
		}
		for _, x := range []*ir.Array{asBytes, asWords} {
			g := must(ir.Build("g", func(b *ir.Builder) {
				b.Output("y", ops.Dequantize(b, b.Port(ir.InputPort, "x", x.Type()), name, ir.F32))
			}))(t)
			got := runHeld(t, g, []*ir.Array{x})[0]
			n := got.Len()
			if name[:2] == "f8" {
				n = len(packed) // of a word's bytes some are left over
			}
			digest := uint64(0)
			for i, v := range got.F[:n] {
				bits := math.Float32bits(float32(v))
				digest += uint64(bits) * uint64(2*i+1)
				if i < 4 && bits != want.First[i] {
					t.Errorf("%s: element %d is %v, want %v", name, i, v, math.Float32frombits(want.First[i]))
				}
			}
			if strconv.FormatUint(digest, 10) != want.Digest {
				t.Errorf("%s from %s: other bits than the reference's", name, x.DType)
			}
		}
	}
	special := ir.Ints(ir.U8, []int64{0x7f, 0xff, 0x7c, 0xfc, 0x7d})
	for format, nan := range map[string][]bool{"f8_e4m3": {true, true, false, false, false}, "f8_e5m2": {true, true, false, false, true}} {
		g := must(ir.Build("g", func(b *ir.Builder) {
			b.Output("y", ops.Dequantize(b, b.Port(ir.InputPort, "x", special.Type()), format, ir.F32))
		}))(t)
		got := runHeld(t, g, []*ir.Array{special})[0].F
		for i, v := range got {
			if math.IsNaN(v) != nan[i] {
				t.Errorf("%s: element %d is %v", format, i, v)
			}
		}
		if format == "f8_e5m2" && (got[2] != math.Inf(1) || got[3] != math.Inf(-1)) {
			t.Errorf("%s: infinities are %v", format, got[2:4])
		}
	}
}

// TestPackedGroupedProductsAreThoseOfEachRow compares few rows, more rows than two a group, and enough that blocks are multiplied one
// after the other, with the packed product of each row alone.
func TestPackedGroupedProductsAreThoseOfEachRow(t *testing.T) {
	const g, n, k, format = 3, 5, 64, "q4_1"
	w := ir.NewArray(ir.U8, g, n, k/32*20)
	for i := range w.I {
		w.I[i] = int64(17+i*73) % 59
	}
	for _, m := range []int{4, 13, 400} {
		groups := make([]int64, m)
		for i := range groups {
			groups[i] = int64(i*5) % (g + 1) // g is out of range
		}
		differences := must(ir.Build("g", func(b *ir.Builder) {
			x := ops.Reshape(b, ops.Sin(b, ops.Iota(b, ir.F32, 0, ir.N(m*k))), ir.Dims(m, k)...)
			packed, at := ops.Literal(b, w), indices(b, groups, m)
			var rows, ofRounded []ir.Value
			for i, group := range groups {
				if group == g {
					rows, ofRounded = append(rows, ops.Zeros(b, ir.F32, ir.Dims(1, n)...)), append(ofRounded, ops.Zeros(b, ir.F32, ir.Dims(1, n)...))
					continue
				}
				row, matrix := ops.SliceAxis(b, x, 0, ir.N(i), ir.N(1)), ops.Reshape(b, ops.SliceAxis(b, packed, 0, ir.N(int(group)), ir.N(1)), ir.Dims(n, k/32*20)...)
				rows, ofRounded = append(rows, ops.QuantizedMatMul(b, row, matrix, format)), append(ofRounded, ops.QuantizedMatMul8(b, row, matrix, format))
			}
			worst := func(y ir.Value, rows []ir.Value) ir.Value {
				return ops.ReduceMax(b, ops.Abs(b, ops.Sub(b, y, ops.Concatenate(b, 0, rows...))))
			}
			y := ops.QuantizedGroupedMatMul(b, x, packed, at, format)
			b.Output("y", worst(y, rows))
			b.Output("rounded", worst(ops.QuantizedGroupedMatMul8(b, x, packed, at, format), ofRounded))
			b.Output("size", ops.ReduceMax(b, ops.Abs(b, y)))
		}))(t)
		out := runHeld(t, differences, nil)
		if size := out[2].F[0]; out[0].F[0] > 1e-4*size || out[1].F[0] > 1e-4*size || size == 0 {
			t.Errorf("%d rows: they differ by %g, rounded ones by %g, of %g", m, out[0].F[0], out[1].F[0], size)
		}
	}
}
