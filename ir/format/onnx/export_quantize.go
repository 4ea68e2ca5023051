package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// isQuantization reports whether a conversion between f32 and integers by a scale is one of ONNX as it is: to or
// from 8 or 16 bits, with a zero point that is known.
func isQuantization(n *ir.Node) bool {
	from, to := n.Input(0).DType(), n.Types()[0].DType
	if n.Op() == ops.OpDequantizeLinear {
		from, to = to, from
	}
	zero := len(n.Inputs()) < 3 || n.Input(2).Node().Op() == ir.OpConstant
	return from == ir.F32 && to.IsInteger() && to.Size() <= 2 && zero
}

// zeroPoint returns the zero point of integers of type d, in that type.
func (e *exporter) zeroPoint(n *ir.Node, d ir.DType) tensorRef {
	if len(n.Inputs()) > 2 {
		dims, _ := n.Input(2).Shape().Ints()
		return e.literal(d, dims, n.Input(2).Node().Attrs().(*ir.ConstantAttrs).Data)
	}
	dims, _ := n.Input(1).Shape().Ints()
	return e.literal(d, dims, ir.NewArray(d, dims...).Bytes())
}

func exportQuantize(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, d := n.Attrs().(*ops.LinearQuantAttrs), n.Types()[0].DType
	operands := []tensorRef{e.whole(in[0]), e.whole(in[1]), e.zeroPoint(n, d)}
	return e.cast(e.op("QuantizeLinear", d, in[0].shape, operands, attrInt("axis", a.Axis)), held(d))
}

// exportDequantize reads integers as they are stored, so that runtimes find what they compute products of integers of.
func exportDequantize(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, d, x := n.Attrs().(*ops.AxisAttrs), n.Input(0).DType(), e.whole(in[0])
	if s, ok := e.small[x.name]; ok && s.dtype == d {
		x = s
	} else {
		x = e.cast(x, d)
	}
	return e.op("DequantizeLinear", ir.F32, in[0].shape, []tensorRef{x, e.whole(in[1]), e.zeroPoint(n, d)}, attrInt("axis", a.Axis))
}
