package forms

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Packed weights are unpacked when the model is written, as Core ML has no arithmetic on bytes.
// Formats that Core ML has stay packed in the file.
func init() {
	add(ops.OpDequantize, single(func(e *Emitter, n *ir.Node, _ []Value) Value {
		return e.unpacked(e.packedOperand(n, 0), n.Attrs().(*ops.PackedAttrs))
	}))
	add(ops.OpQuantizedMatMul, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		w := e.Whole(e.unpacked(e.packedOperand(n, 1), &n.Attrs().(*ops.PackedProductAttrs).PackedAttrs))
		dims := whole(n.Input(0).Type())
		k := dims[len(dims)-1]
		x := e.cast(e.reshape(e.Whole(in[0]), []int{product(dims) / k, k}), w.Type.DType)
		y := e.Op("matmul", mil.Args{"x": x, "y": w, "transpose_x": false, "transpose_y": true})
		d, _ := e.dtype(n.Types()[0].DType)
		return e.value(e.cast(y, d), whole(n.Types()[0]))
	}))
	onlyWhere[ops.OpDequantize] = func(e *Emitter, n *ir.Node) bool { return e.packedOperand(n, 0) != nil }
	onlyWhere[ops.OpQuantizedMatMul] = func(e *Emitter, n *ir.Node) bool {
		return e.packedOperand(n, 1) != nil && n.Attrs().(*ops.PackedProductAttrs).ActivationBits == 0
	}
}

// packedOperand returns the bytes of an operand that is stored with the model, nil for others.
func (e *Emitter) packedOperand(n *ir.Node, i int) *ir.Array {
	if port, ok := n.Input(i).Node().Attrs().(*ir.PortAttrs); ok {
		return e.Packed[port.Name]
	}
	return nil
}

// unpacked returns the elements of packed blocks: as a packed constant where Core ML has the
// format, otherwise as floats.
func (e *Emitter) unpacked(a *ir.Array, attrs *ops.PackedAttrs) Value {
	d, err := e.dtype(attrs.DType)
	if err != nil {
		e.Fail(err)
		return Value{}
	}
	if f, known := blocks[attrs.Format]; known && e.Opset() >= mil.CoreML8 && len(a.Dims) <= maxRank {
		if r := e.blockwise(&f, a, attrs.Format, d); r.Valid() || e.Err() != nil {
			return Value{r, r.Type.Dims}
		}
	}
	return e.dense(a, attrs)
}

// blockwise returns a packed constant of blocks with a scale and, for some formats, an offset. It
// is invalid if f16 does not represent the scales.
func (e *Emitter) blockwise(f *block, a *ir.Array, format string, d mil.DType) mil.Ref {
	last := len(a.Dims) - 1
	data, count := f.rows(a)
	scales, err := f.scales(format, data)
	if err != nil || d == mil.Float16 && slices.ContainsFunc(scales, outsideHalf) {
		e.Fail(err)
		return mil.Ref{}
	}
	numbers, err := f.numbers(format, data)
	if err != nil {
		e.Fail(err)
		return mil.Ref{}
	}
	dims, groups := slices.Clone(a.Dims), slices.Clone(a.Dims)
	dims[last], groups[last] = count*f.elements, count*f.elements/f.group
	args := mil.Args{}
	if f.least != nil {
		offsets, err := f.offsets(format, data, scales, numbers)
		if err != nil || d == mil.Float16 && slices.ContainsFunc(offsets, func(x float64) bool { return math.Abs(x) > 65504 }) {
			e.Fail(err)
			return mil.Ref{}
		}
		args["offset"] = mil.Floats(d, offsets, groups...)
	}
	args["data"] = mil.Integers(f.dtype, numbers, dims...)
	args["scale"] = mil.Floats(d, scales, groups...)
	return e.Op("constexpr_blockwise_shift_scale", args)
}

// outsideHalf reports whether f16 overflows or loses digits for a number.
func outsideHalf(x float64) bool { return x != 0 && (math.Abs(x) < 1.0/(1<<14) || math.Abs(x) > 65504) }

// dense unpacks weights by the op's reference implementation.
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
