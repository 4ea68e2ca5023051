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
	"github.com/rlx-go/rlx/native/cpu"
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

// TestScansOfComplexNumbers compares recurrences and products of complex numbers, along each axis and in either direction, with
// the definitions. Kernels compute all of their numbers.
func TestScansOfComplexNumbers(t *testing.T) {
	dims := []int{3, 130, 37}
	for _, d := range []ir.DType{ir.C64, ir.C128} {
		g := build(t, func(b *ir.Builder) {
			x, y := b.Input("x", d, ir.Dims(dims...)...), b.Input("y", d, ir.N(dims[2]))
			factor := ops.BroadcastTo(b, y, x.Shape())
			for i := range 4 {
				for axis := 1; axis < 3; axis++ {
					a := ops.CumSumAttrs{Axis: axis, Reverse: i%2 > 0, Exclusive: i/2 > 0}
					b.Output(fmt.Sprint("recurrence ", axis, i), ops.LinearRecurrence(b, factor, x, a))
					b.Output(fmt.Sprint("product ", axis, i), ops.Real(b, ops.CumProd(b, ops.Add(b, factor, ops.Mul(b, x, x)), a)))
				}
			}
		})
		x, y := ir.NewArray(d, dims...), ir.NewArray(d, dims[2])
		for _, a := range []*ir.Array{x, y} {
			parts := random(2 * len(a.C))
			for i := range a.C {
				a.C[i] = complex(float64(parts[2*i]), float64(parts[2*i+1]))
			}
			a.Round()
		}
		in := map[string]*ir.Array{"x": x, "y": y}
		want, err := ir.Eval(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
		if outside := cpu.OutsideKernels(p); len(outside) > 0 {
			t.Errorf("%s: %q", d, outside)
		}
		got := run(t, p, map[string]native.Tensor{"x": native.FromArray(x), "y": native.FromArray(y)})
		for i, o := range g.Outputs() {
			if text := backendtest.Compare(got[o.Name], want[i], irtest.Tolerance{Abs: 1e-6, Rel: 1e-5}); text != "" {
				t.Errorf("%s of %v: %s", o.Name, d, text)
			}
		}
	}
}
