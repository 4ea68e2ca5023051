package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestReductionsOfNothingConvert: what computes with a reduction over an empty axis gets its identity, in every type
// and for any number of lanes.
func TestReductionsOfNothingConvert(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.I32, ir.U32, ir.I64, ir.U64} {
		for _, lanes := range []int{1, 3, 40} {
			y := rerun(t, build(t, func(b *ir.Builder) {
				b.Output("y", ops.Convert(b, ops.ReduceProd(b, b.Input("x", d, ir.Dims(0, lanes)...), 0), ir.F32))
			}), native.Zeros(d, 0, lanes))["y"]
			values, err := y.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				if v != 1 {
					t.Fatalf("%s, %d lanes: products of nothing are %v, not 1", d, lanes, values)
				}
			}
		}
	}
}

// TestScansOfNothingLoadNothing: a scan along an empty axis reads no element of its operands, which have none.
func TestScansOfNothingLoadNothing(t *testing.T) {
	y := rerun(t, build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(3, 0, 3)...)
		b.Output("y", ops.AssociativeScan(b, ops.AssociativeAttrs{Axis: 1}, []ir.Value{x, x}, func(b *ir.Builder, p, q []ir.Value) []ir.Value {
			return []ir.Value{ops.Mul(b, p[0], q[0]), ops.Add(b, ops.Mul(b, p[1], q[0]), q[1])}
		})[1])
	}), native.Zeros(ir.F32, 3, 0, 3))["y"]
	if y.Len() != 0 {
		t.Errorf("y is %v, not empty", y)
	}
}
