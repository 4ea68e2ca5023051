package backendtest

import (
	"context"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// Derivatives compares the first four derivatives of scalar functions, by nested reverse
// mode, with closed forms: in f32, and in f64 if supported.
func Derivatives(t *testing.T, b native.Backend) {
	for _, d := range []ir.DType{ir.F32, ir.F64} {
		if !supports(b, d) {
			continue
		}
		for _, f := range irtest.ClosedForms() {
			t.Run(f.Name+" "+d.String(), func(t *testing.T) { checkDerivatives(t, b, f, d) })
		}
	}
}

func supports(b native.Backend, d ir.DType) bool {
	var n *ir.Node
	_, err := ir.Build("support", func(b *ir.Builder) {
		y := ops.Tanh(b, b.Input("x", d))
		n = y.Node()
		b.Output("y", y)
	})
	return err == nil && b.Support(n).Level != native.Unsupported
}

func checkDerivatives(t *testing.T, b native.Backend, f irtest.Derivatives, d ir.DType) {
	points := irtest.DerivativePoints
	x := ir.Floats(d, points, len(points))
	x.Round()
	g := build(t, f.Name, func(b *ir.Builder) {
		in := b.Input("x", d, ir.N(len(points)))
		for order, next := 1, f.F; order <= 4; order++ {
			next = slopeOf(next)
			b.Output(strconv.Itoa(order), next(b, in))
		}
	})
	p := compile(t, b, g)
	defer closeProgram(t, p)
	r, err := p.Run(context.Background(), f.Name, map[string]native.Tensor{"x": native.FromArray(x)})
	got := wait(t, r, err)
	for order := 1; order <= 4; order++ {
		want := ir.NewArray(d, len(points))
		for i, at := range x.F {
			want.F[i] = f.Of(at)[order]
		}
		if fault := Compare(got[strconv.Itoa(order)], want, irtest.DerivativeTolerance(d, order)); fault != "" {
			t.Errorf("derivative %d %s", order, fault)
		}
	}
}

// slopeOf returns the elementwise derivative of a function: the gradient of the sum. Adding
// x·0 keeps a path to x if the function is constant.
func slopeOf(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		sum := func(b *ir.Builder, in []ir.Value) []ir.Value {
			y := ops.Add(b, f(b, in[0]), ops.Mul(b, in[0], ops.ZerosLike(b, in[0])))
			return []ir.Value{ops.ReduceSum(b, y)}
		}
		return autodiff.GradOf(b, sum, []ir.Value{x})[0]
	}
}
