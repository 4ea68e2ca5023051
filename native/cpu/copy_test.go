package cpu_test

import (
	"bytes"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestCopiesOfAnySize compares copies of elements that are reversed, repeated or apart, in rows of any length, and
// their conversion to booleans, with the definitions, for elements of each size.
func TestCopiesOfAnySize(t *testing.T) {
	const planes, rows, columns = 40, 30, 36
	g := func(d ir.DType) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			x := b.Input("x", d, ir.Dims(planes, rows, columns)...)
			b.Output("reversed", ops.Reverse(b, x, 2))
			b.Output("reversed channels", ops.Reverse(b, ops.Reshape(b, x, ir.Dims(planes*rows, columns/3, 3)...), 2))
			b.Output("repeated", ops.Repeat(b, x, 2, 2))
			b.Output("repeated thrice", ops.Repeat(b, x, 2, 3))
			b.Output("repeated rows", ops.Repeat(b, x, 1, 2))
			b.Output("every third", ops.Slice(b, x, ir.Dims(0, 0, 1), ir.Dims(planes, rows, columns/3), []int{1, 1, 3}))
			b.Output("shuffled", ops.Transpose(b, ops.Reshape(b, x, ir.Dims(planes, rows, columns/4, 4)...), 0, 3, 1, 2))
			b.Output("is not zero", ops.Convert(b, x, ir.Bool))
		})
	}
	for _, d := range []ir.DType{ir.U8, ir.BF16, ir.F32, ir.I32, ir.F64, ir.I64} {
		g, x := g(d), ir.NewArray(d, planes, rows, columns)
		for i := range planes * rows * columns {
			if d.IsFloat() {
				x.F[i] = float64(i*7%256) - 16
			} else {
				x.I[i] = int64(i * 7 % 256)
			}
		}
		want, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		everyLevel(t, func(t *testing.T) {
			got := run(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), map[string]native.Tensor{"x": native.FromArray(x)})
			for i, o := range g.Outputs() {
				if !bytes.Equal(got[o.Name].Data, want[i].Bytes()) {
					t.Errorf("%v: %s is not as defined", d, o.Name)
				}
			}
		})
	}
}
