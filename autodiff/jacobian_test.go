package autodiff_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestJacobiansAreThoseOfTheClosedForm(t *testing.T) {
	// y = tanh(A·x), so dy/dx = diag(1 − y²)·A and dyᵢ/dAⱼₖ = (1 − yᵢ²)·xₖ for i = j.
	g := build(t, func(b *ir.Builder) {
		a, x := b.Param("a", ir.F64, ir.N(2), ir.N(3)), b.Input("x", ir.F64, ir.N(3))
		b.Output("y", ops.Tanh(b, ops.MatMul(b, a, x)))
		b.Output("unrelated", ops.Neg(b, a))
	})
	a, x := wave(1, 2, 3), wave(2, 3)
	var wantX, wantA []float64
	for i := range 2 {
		y := math.Tanh(a.F[3*i]*x.F[0] + a.F[3*i+1]*x.F[1] + a.F[3*i+2]*x.F[2])
		for k := range 3 {
			wantX = append(wantX, (1-y*y)*a.F[3*i+k])
		}
		for j := range 2 {
			for k := range 3 {
				v := 0.0
				if i == j {
					v = (1 - y*y) * x.F[k]
				}
				wantA = append(wantA, v)
			}
		}
	}
	for name, f := range map[string]func(*ir.Graph, string, ...string) (*ir.Graph, error){
		"forward": autodiff.JacobianForward, "reverse": autodiff.JacobianReverse,
	} {
		t.Run(name, func(t *testing.T) {
			j, err := f(g, "y", "x", "a")
			got := eval(t, must(t, j, err), values{"a": a, "x": x})
			checkFloats(t, "dy/dx", got["jacobian/y/x"], wantX, 1e-14)
			checkFloats(t, "dy/da", got["jacobian/y/a"], wantA, 1e-14)
			if dims := got["jacobian/y/a"].Dims; !slices.Equal(dims, []int{2, 2, 3}) {
				t.Errorf("shape %v, want [2 2 3]", dims)
			}
			j, err = f(g, "unrelated", "x")
			got = eval(t, must(t, j, err), values{"a": a, "x": x})
			checkFloats(t, "no dependence", got["jacobian/unrelated/x"], make([]float64, 18), 0)
			if _, err := f(g, "z", "x"); !errors.Is(err, ir.ErrName) {
				t.Errorf("error %v for an unknown output", err)
			}
		})
	}
}

func TestHessianIsThatOfTheClosedForm(t *testing.T) {
	// y = xᵀ·A·x + s·Σ x²: the blocks are A + Aᵀ + 2s·I, 2x and 0.
	g := build(t, func(b *ir.Builder) {
		a, x, s := b.Param("a", ir.F64, ir.N(2), ir.N(2)), b.Input("x", ir.F64, ir.N(2)), b.Input("s", ir.F64)
		y := ops.ReduceSum(b, ops.Mul(b, x, ops.MatMul(b, a, x)))
		b.Output("y", ops.Add(b, y, ops.Mul(b, s, ops.ReduceSum(b, ops.Mul(b, x, x)))))
	})
	h, err := autodiff.Hessian(g, "y", "x", "s")
	got := eval(t, must(t, h, err), values{"a": ir.Floats(ir.F64, []float64{1, 2, 5, 7}, 2, 2), "x": vec(3, -4), "s": num(10)})
	for name, want := range map[string][]float64{
		"hessian/x/x": {22, 7, 7, 34}, "hessian/x/s": {6, -8}, "hessian/s/x": {6, -8}, "hessian/s/s": {0},
	} {
		checkFloats(t, name, got[name], want, 1e-14)
	}
}
