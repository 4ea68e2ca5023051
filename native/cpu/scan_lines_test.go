package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
)

// TestScansOfLines compares running products and extremes of contiguous lines, in either direction, without a point's own
// value or with it, with the definitions. A line has a NaN.
func TestScansOfLines(t *testing.T) {
	const lines, length = 20, 33
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.I32, ir.I64} {
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", d, ir.Dims(lines, length)...)
			for i := range 4 {
				a := ops.CumSumAttrs{Axis: 1, Reverse: i%2 > 0, Exclusive: i/2 > 0}
				b.Output(fmt.Sprint("product ", i), ops.CumProd(b, x, a))
				b.Output(fmt.Sprint("maximum ", i), ops.CumMax(b, x, a))
				b.Output(fmt.Sprint("minimum ", i), ops.CumMin(b, x, a))
			}
		})
		x := ir.NewArray(d, lines, length)
		for i, v := range random(lines * length) {
			if d.IsFloat() {
				x.F[i] = 4 * float64(v)
			} else {
				x.I[i] = int64(8 * v)
			}
		}
		if d.IsFloat() {
			x.F[length+9] = math.NaN()
		}
		x.Round()
		want, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), map[string]native.Tensor{"x": native.FromArray(x)})
		for i, o := range g.Outputs() {
			if text := backendtest.Compare(got[o.Name], want[i], irtest.Tolerance{Rel: 1e-5}); text != "" {
				t.Errorf("%s of %v: %s", o.Name, d, text)
			}
		}
	}
}
