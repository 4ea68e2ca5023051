package samples

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpDequantize, dequantizeSamples)
	add(ops.OpQuantizedMatMul, quantizedMatMulSamples)
}

// blockBytes holds the size of a block of each packed format.
var blockBytes = map[string]int{
	"q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "q8_0": 34, "q2_k": 84, "q3_k": 110, "q4_k": 144, "q5_k": 176, "q6_k": 210,
	"q8_k": 292, "iq4_nl": 18, "iq4_xs": 136, "mxfp4": 17, "nvfp4": 36, "f8_e4m3": 1, "f8_e5m2": 1,
}

func dequantizeSamples() []ir.Sample {
	var out []ir.Sample
	for _, name := range slices.Sorted(maps.Keys(blockBytes)) {
		bytes := blockBytes[name]
		out = append(out, ir.Sample{Name: name, Attrs: &ops.PackedAttrs{Format: name, DType: ir.F32}, In: []*ir.Array{packedBytes(2, 3*bytes)}})
		if words := (2*bytes + 3) / 4; name == "q4_0" || name == "q6_k" || name == "mxfp4" {
			out = append(out, ir.Sample{Name: name + " in words", Attrs: &ops.PackedAttrs{Format: name, DType: ir.F32}, In: []*ir.Array{wordsOf(packedBytes(2, 4*words))}})
		}
	}
	return append(out,
		ir.Sample{Name: "to f16", Attrs: &ops.PackedAttrs{Format: "f8_e5m2", DType: ir.F16}, In: []*ir.Array{packedBytes(1, 7)}},
		ir.Sample{Name: "no rows", Attrs: &ops.PackedAttrs{Format: "q8_0", DType: ir.F32}, In: []*ir.Array{ir.NewArray(ir.U8, 0, 34)}},
		ir.Sample{Name: "no blocks", Attrs: &ops.PackedAttrs{Format: "q4_k", DType: ir.F32}, In: []*ir.Array{ir.NewArray(ir.U32, 2, 0)}})
}

// packedBytes returns bytes below 59, which no format takes for a scale above 1.
func packedBytes(rows, n int) *ir.Array {
	a := ir.NewArray(ir.U8, rows, n)
	for i := range a.I {
		a.I[i] = int64(17+i*73) % 59
	}
	return a
}

// wordsOf packs bytes into u32 words.
func wordsOf(bytes *ir.Array) *ir.Array {
	a := ir.NewArray(ir.U32, bytes.Dims[0], bytes.Dims[1]/4)
	for i, x := range bytes.I {
		a.I[i/4] |= x << (8 * (i % 4))
	}
	return a
}

func quantizedMatMulSamples() []ir.Sample {
	sample := func(name, format string, d ir.DType, w *ir.Array, x ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.PackedAttrs{Format: format, DType: ir.F32}, In: []*ir.Array{draw(1, d, -1, 1, x...), w}}
	}
	return []ir.Sample{
		sample("q8_0", "q8_0", ir.F32, packedBytes(3, 2*34), 5, 64), sample("words", "q4_0", ir.F32, wordsOf(packedBytes(3, 36)), 2, 64),
		sample("vector", "q4_1", ir.F32, packedBytes(2, 20), 32), sample("half", "f8_e4m3", ir.F16, packedBytes(2, 4), 3, 4),
		sample("no rows", "q8_0", ir.F32, packedBytes(3, 34), 0, 32),
		sample("long row", "q4_0", ir.F32, packedBytes(6, 8*18), 1, 256), sample("long row of q6_k", "q6_k", ir.F32, packedBytes(3, 2*210), 1, 512),
		sample("long row of q4_k", "q4_k", ir.F32, packedBytes(4, 144), 1, 256),
	}
}
