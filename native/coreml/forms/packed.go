package forms

import (
	"encoding/binary"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/coreml/mil"
)

// Weights that are packed into blocks are read where they are stored, as Core ML
// has no arithmetic on bytes: those of a format that it has stay packed in the
// file, others are unpacked into it.
func init() {
	add(ops.OpDequantize, single(func(e *Emitter, n *ir.Node, _ []Value) Value {
		return e.unpacked(e.packedOperand(n, 0), n.Attrs().(*ops.PackedAttrs))
	}))
	add(ops.OpQuantizedMatMul, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		w := e.Whole(e.unpacked(e.packedOperand(n, 1), n.Attrs().(*ops.PackedAttrs)))
		dims := whole(n.Input(0).Type())
		k := dims[len(dims)-1]
		x := e.cast(e.reshape(e.Whole(in[0]), []int{product(dims) / k, k}), w.Type.DType)
		y := e.Op("matmul", mil.Args{"x": x, "y": w, "transpose_x": false, "transpose_y": true})
		d, _ := e.dtype(n.Types()[0].DType)
		return e.value(e.cast(y, d), whole(n.Types()[0]))
	}))
	onlyWhere[ops.OpDequantize] = func(e *Emitter, n *ir.Node) bool { return e.packedOperand(n, 0) != nil }
	onlyWhere[ops.OpQuantizedMatMul] = func(e *Emitter, n *ir.Node) bool { return e.packedOperand(n, 1) != nil }
}

// packedOperand returns the bytes of an operand that are stored with the model, nil
// for others.
func (e *Emitter) packedOperand(n *ir.Node, i int) *ir.Array {
	if port, ok := n.Input(i).Node().Attrs().(*ir.PortAttrs); ok {
		return e.Packed[port.Name]
	}
	return nil
}

// block is a format of ggml that Core ML has too: 32 numbers of some bits after a
// scale in f16.
type block struct {
	bytes   int
	dtype   mil.DType
	numbers func(b []byte) []byte // as Core ML has them
}

const blockSize = 32

var blocks = map[string]block{
	"q8_0": {34, mil.Int8, func(b []byte) []byte { return b }},
	"q4_0": {18, mil.Int4, signedNibbles},
}

// signedNibbles takes the numbers in halves of bytes, the first 16 in the lower
// ones, from 0 to 15 for −8 to 7, to two's complement, two neighbours in a byte.
func signedNibbles(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range blockSize {
		q := b[i%16] >> (4 * (i / 16)) & 15
		out[i/2] |= (q ^ 8) << (4 * (i % 2))
	}
	return out
}

// unpacked returns the numbers that blocks of bytes stand for.
func (e *Emitter) unpacked(a *ir.Array, attrs *ops.PackedAttrs) Value {
	f, known := blocks[attrs.Format]
	d, err := e.dtype(attrs.DType)
	if err != nil {
		e.Fail(err)
		return Value{}
	}
	if !known || a.DType != ir.U8 || e.Opset() < mil.CoreML8 || len(a.Dims) > maxRank {
		return e.dense(a, attrs)
	}
	data, last := a.Bytes(), len(a.Dims)-1
	var numbers []byte
	var scales []float64
	for ; len(data) >= f.bytes; data = data[f.bytes:] {
		scales = append(scales, ir.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(data))))
		numbers = append(numbers, f.numbers(data[2:f.bytes])...)
	}
	rows, count := a.Dims[:last:last], a.Dims[last]/f.bytes
	r := e.Op("constexpr_blockwise_shift_scale", mil.Args{
		"data":  &mil.Value{Type: mil.TypeOf(f.dtype, append(rows, count*blockSize)...), Data: numbers},
		"scale": mil.Floats(d, scales, append(rows, count)...),
	})
	return Value{r, r.Type.Dims}
}

// dense unpacks weights by the meaning of the op.
func (e *Emitter) dense(a *ir.Array, attrs *ops.PackedAttrs) Value {
	g, err := ir.Build("unpack", func(b *ir.Builder) {
		b.Output("w", ops.Dequantize(b, b.Port(ir.InputPort, "x", a.Type()), attrs.Format, attrs.DType))
	})
	if err == nil {
		var out []*ir.Array
		if out, err = ir.Eval(g, map[string]*ir.Array{"x": a}, ir.EvalOptions{}); err == nil {
			return e.Literal(out[0])
		}
	}
	e.Fail(err)
	return Value{}
}
