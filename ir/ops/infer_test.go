package ops_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBadOperandsAreTypedErrors lists what the shape rules and constructors
// must refuse, and the kind of error.
func TestBadOperandsAreTypedErrors(t *testing.T) {
	n, m := ir.Sym("n"), ir.Sym("m")
	type input = func(d ir.DType, axes ...ir.Dim) ir.Value
	for name, c := range map[string]struct {
		kind  error
		build func(b *ir.Builder, in input)
	}{
		"add of different types": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Add(b, in(ir.F32, n), in(ir.F64, n))
		}},
		"add of bools": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Add(b, in(ir.Bool), in(ir.Bool))
		}},
		"add of sizes that do not match": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Add(b, in(ir.F32, ir.N(2)), in(ir.F32, ir.N(3)))
		}},
		"add of different symbols": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Add(b, in(ir.F32, n), in(ir.F32, m))
		}},
		"strict add without broadcasting": {ir.ErrShape, func(b *ir.Builder, in input) {
			b.Add(ops.OpAdd, nil, in(ir.F32, ir.N(2)), in(ir.F32))
		}},
		"sqrt of integers": {ir.ErrDType, func(b *ir.Builder, in input) { ops.Sqrt(b, in(ir.I32)) }},
		"not of floats":    {ir.ErrDType, func(b *ir.Builder, in input) { ops.Not(b, in(ir.F32)) }},
		"lt of complex numbers": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Lt(b, in(ir.C64), in(ir.C64))
		}},
		"shift of bools": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.ShiftLeft(b, in(ir.Bool), in(ir.Bool))
		}},
		"select by a number": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Select(b, in(ir.F32), in(ir.F32), in(ir.F32))
		}},
		"select between types": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Select(b, in(ir.Bool), in(ir.F32), in(ir.F16))
		}},
		"convert to complex": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Convert(b, in(ir.F32), ir.C64)
		}},
		"bitcast to another width": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Bitcast(b, in(ir.F32), ir.U16)
		}},
		"constant that does not fit": {ir.ErrDType, func(b *ir.Builder, _ input) {
			ops.Const(b, ir.U8, 256)
		}},
		"constant with a fraction": {ir.ErrDType, func(b *ir.Builder, _ input) {
			ops.Const(b, ir.I32, 0.5)
		}},
		"constant of no type": {ir.ErrDType, func(b *ir.Builder, _ input) {
			ops.Const(b, 0, 1)
		}},
		"reshape to another size": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Reshape(b, in(ir.F32, ir.N(6)), ir.N(4))
		}},
		"reshape to another polynomial": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Reshape(b, in(ir.F32, n, m), n.Mul(n))
		}},
		"reshape to a negative size": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Reshape(b, in(ir.F32, ir.N(6)), ir.N(-6))
		}},
		"transpose with too few axes": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Transpose(b, in(ir.F32, n, m), 0)
		}},
		"transpose that names an axis twice": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Transpose(b, in(ir.F32, n, m), 1, -1)
		}},
		"move of an axis that is not there": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.MoveAxis(b, in(ir.F32, n, m), 0, 2)
		}},
		"broadcast to another size": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.BroadcastTo(b, in(ir.F32, ir.N(3)), ir.Dims(2, 4))
		}},
		"broadcast to a lower rank": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.BroadcastTo(b, in(ir.F32, ir.N(3), ir.N(3)), ir.Dims(3))
		}},
		"broadcast out of order": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.BroadcastInDim(b, in(ir.F32, ir.N(3), ir.N(3)), ir.Dims(3, 3), []int{1, 0})
		}},
		"expand at an axis beyond the result": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.ExpandDims(b, in(ir.F32, n), 2)
		}},
		"squeeze of a long axis": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Squeeze(b, in(ir.F32, ir.N(1), ir.N(2)), 1)
		}},
		"slice beyond the end": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Slice(b, in(ir.F32, ir.N(5)), ir.Dims(2), ir.Dims(2), []int{3})
		}},
		"slice from a negative start": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Slice(b, in(ir.F32, ir.N(5)), ir.Dims(-1), ir.Dims(2), nil)
		}},
		"slice with stride zero": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Slice(b, in(ir.F32, ir.N(5)), ir.Dims(0), ir.Dims(2), []int{0})
		}},
		"slice with too few axes": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Slice(b, in(ir.F32, n, m), ir.Dims(0), ir.Dims(1), nil)
		}},
		"slice along an axis that is not there": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.SliceAxis(b, in(ir.F32, n), -2, ir.N(0), ir.N(1))
		}},
		"pad with another type": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Pad(b, in(ir.F32, n), in(ir.I32), []int{1}, []int{1}, nil)
		}},
		"pad with a vector": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Pad(b, in(ir.F32, n), in(ir.F32, n), []int{1}, []int{1}, nil)
		}},
		"pad by less than a whole axis": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Pad(b, in(ir.F32, ir.N(3)), in(ir.F32), []int{-2}, []int{-2}, nil)
		}},
		"pad with too few axes": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Pad(b, in(ir.F32, n, m), in(ir.F32), []int{1}, []int{1, 1}, nil)
		}},
		"concatenate nothing": {ir.ErrShape, func(b *ir.Builder, _ input) {
			ops.Concatenate(b, 0)
		}},
		"concatenate scalars": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Concatenate(b, 0, in(ir.F32), in(ir.F32))
		}},
		"concatenate what differs elsewhere": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Concatenate(b, 0, in(ir.F32, n, ir.N(2)), in(ir.F32, n, ir.N(3)))
		}},
		"concatenate ranks": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.Concatenate(b, 0, in(ir.F32, n, m), in(ir.F32, n))
		}},
		"concatenate types": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Concatenate(b, 0, in(ir.F32, n), in(ir.F16, n))
		}},
		"reverse an axis that is not there": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Reverse(b, in(ir.F32, n), 1)
		}},
		"iota along no axis": {ir.ErrAttr, func(b *ir.Builder, _ input) {
			ops.Iota(b, ir.I32, 0)
		}},
		"iota of bools": {ir.ErrDType, func(b *ir.Builder, _ input) {
			ops.Iota(b, ir.Bool, 0, n)
		}},
		"sum of bools": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.ReduceSum(b, in(ir.Bool, n))
		}},
		"sum over an axis twice": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.ReduceSum(b, in(ir.F32, n), 0, -1)
		}},
		"largest of complex numbers": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.ReduceMax(b, in(ir.C64, n))
		}},
		"mean of integers": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.Mean(b, in(ir.I32, n))
		}},
		"mean over an axis that is not there": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.Mean(b, in(ir.F32, n), 1)
		}},
		"argmax of nothing": {ir.ErrShape, func(b *ir.Builder, in input) {
			ops.ArgMax(b, in(ir.F32, ir.N(2), ir.N(0)), 1)
		}},
		"argmin of a scalar": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.ArgMin(b, in(ir.F32), 0)
		}},
		"check of floats": {ir.ErrDType, func(b *ir.Builder, in input) {
			ops.CheckIndex(b, in(ir.F32), n, "row")
		}},
		"check against a negative bound": {ir.ErrAttr, func(b *ir.Builder, in input) {
			ops.CheckIndex(b, in(ir.I32), ir.N(-1), "row")
		}},
		"no value at all": {ir.ErrGraph, func(b *ir.Builder, in input) {
			ops.Add(b, in(ir.F32), ir.Value{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := ir.Build("bad", func(b *ir.Builder) {
				i := 0
				c.build(b, func(d ir.DType, axes ...ir.Dim) ir.Value {
					i++
					return b.Input("x"+string(rune('0'+i)), d, axes...)
				})
			})
			if !errors.Is(err, c.kind) {
				t.Fatalf("error %v, want kind %v", err, c.kind)
			}
			var op *ir.OpError
			if g != nil || !errors.As(err, &op) {
				t.Errorf("error %T does not name an op", err)
			}
		})
	}
}
