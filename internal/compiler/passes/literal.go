package passes

import (
	"bytes"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// literalOf returns the bytes of the element of a splat: a literal of equal elements,
// or a broadcast of one.
func literalOf(v ir.Value) ([]byte, bool) {
	n := v.Node()
	for n.Op() == ops.OpBroadcastInDim {
		n = n.Input(0).Node()
	}
	c, ok := n.Attrs().(*ir.ConstantAttrs)
	size := v.DType().Size()
	if !ok || size == 0 || len(c.Data) == 0 || !bytes.Equal(c.Data[size:], c.Data[:len(c.Data)-size]) {
		return nil, false
	}
	return c.Data[:size], true
}

// splat returns the element of a splat as an array of rank 0.
func splat(v ir.Value) (*ir.Array, bool) {
	element, ok := literalOf(v)
	if !ok {
		return nil, false
	}
	a, err := ir.ArrayOf(ir.Type{DType: v.DType()}, element)
	return a, err == nil
}

// is reports whether all elements of v are known to be x; for floats 0 and −0
// differ. It is false for complex numbers, for which the identities do not hold.
func is(v ir.Value, x float64) bool {
	a, ok := splat(v)
	switch {
	case !ok || a.C != nil:
		return false
	case a.F != nil:
		return math.Float64bits(a.F[0]) == math.Float64bits(x)
	}
	return a.Float(0) == x
}

// isExact reports whether v is of integers or bools, which obey the laws of algebra
// modulo wrapping.
func isExact(v ir.Value) bool { return v.DType().IsInteger() || v.DType().IsBool() }

// maxSearchDepth bounds the depth of the search from a value to its operands.
const maxSearchDepth = 8

// hasNoNegativeZero reports whether v is known to have no element −0, so
// that adding 0 does not change it.
func hasNoNegativeZero(v ir.Value) bool { return lacksNegativeZero(v, maxSearchDepth) }

func lacksNegativeZero(v ir.Value, look int) bool {
	if !v.DType().IsFloat() {
		return isExact(v)
	}
	n := v.Node()
	if look == 0 || n.Op() == ir.OpPort {
		return false
	}
	switch n.Op() {
	case ir.OpConstant:
		return !constantHasNegativeZero(n)
	case ops.OpAbs, ops.OpExp, ops.OpSigmoid, ops.OpIota, ops.OpDimSize:
		return true
	case ops.OpReduceSum: // starts from 0
		return true
	case ops.OpMul: // a square
		return n.Input(0) == n.Input(1)
	case ops.OpAdd: // −0 only from two of them
		return lacksNegativeZero(n.Input(0), look-1) || lacksNegativeZero(n.Input(1), look-1)
	case ops.OpConvert:
		return !n.Input(0).DType().IsFloat()
	case ops.OpBroadcastInDim, ops.OpReshape, ops.OpTranspose, ops.OpSlice, ops.OpPad, ops.OpConcatenate, ops.OpReverse, ops.OpSelect:
		for _, in := range n.Inputs() {
			if in.DType() == v.DType() && !lacksNegativeZero(in, look-1) {
				return false
			}
		}
		return true
	}
	return false
}

func constantHasNegativeZero(n *ir.Node) bool {
	c := n.Attrs().(*ir.ConstantAttrs)
	size := c.Type.DType.Size()
	for data := c.Data; len(data) > 0; data = data[size:] {
		if data[size-1] == 0x80 && allZero(data[:size-1]) {
			return true
		}
	}
	return false
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// operandOf returns the first operand of the node that defines v, if that has the given op.
func operandOf(v ir.Value, op ir.Op) (ir.Value, bool) {
	if n := v.Node(); n.Op() == op {
		return n.Input(0), true
	}
	return ir.Value{}, false
}
