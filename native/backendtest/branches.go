package backendtest

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// halved halves values until their maximum is at most 1, and counts the iterations.
func halved(b *ir.Builder, x, count ir.Value) (y, n ir.Value) {
	out := ops.WhileLoop(b, ops.While{
		Carries: []ir.Value{x, count},
		Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
			return ops.Gt(b, ops.ReduceMax(b, c[0]), ops.Const(b, ir.F32, 1))
		},
		Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
			return []ir.Value{ops.Mul(b, c[0], ops.Const(b, ir.F32, 0.5)), ops.Add(b, c[1], ops.Const(b, ir.I32, 1))}
		},
	})
	return out[0], out[1]
}

// Branching returns a program with data-dependent control flow: unbounded loops alone, in a
// branch, around a scan and inside one.
func Branching(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("branching", func(b *ir.Builder) {
		x, zero := b.Input("x", ir.F32, ir.N(3)), ops.Const(b, ir.I32, 0)
		y, n := halved(b, x, zero)
		b.Output("alone", y)
		b.Output("rounds", n)
		big := ops.Gt(b, ops.ReduceMax(b, x), ops.Const(b, ir.F32, 100))
		b.Output("branch", ops.Cond(b, big, []ir.Value{x, n}, func(b *ir.Builder, in []ir.Value) []ir.Value {
			_, more := halved(b, ops.Mul(b, in[0], in[0]), in[1])
			return []ir.Value{more}
		}, func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Neg(b, in[1])} })[0])
		c, ys := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{zero}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
				y, n := halved(b, xs[0], c[0])
				return []ir.Value{n}, []ir.Value{y}
			},
		})
		b.Output("all", c[0])
		b.Output("each", ys[0])
		b.Output("around", ops.WhileLoop(b, ops.While{
			Consts: []ir.Value{x}, Carries: []ir.Value{ops.Const(b, ir.F32, 0)},
			Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, 50)) },
			Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
				sum, _ := ops.Scan(b, ops.Loop{
					Carries: c, Xs: consts,
					Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
						return []ir.Value{ops.Add(b, c[0], xs[0])}, nil
					},
				})
				return sum
			},
		})[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Branches runs [Branching] on inputs that take different paths. It is not part of [Run],
// since backends with fixed recorded plans refuse it.
func Branches(t *testing.T, b native.Backend) {
	t.Helper()
	g := Branching(t)
	p := compile(t, b, g)
	defer closeProgram(t, p)
	for _, x := range [][]float32{{1, 0.5, 0.25}, {3, 9, 700}, {0.125, 16, 2}} {
		in := ir.NewArray(ir.F32, 3)
		for i := range x {
			in.F[i] = float64(x[i])
		}
		want, err := ir.Eval(g, map[string]*ir.Array{"x": in}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Run(context.Background(), g.Name(), map[string]native.Tensor{"x": native.Float32s(x)})
		if err != nil {
			t.Fatal(err)
		}
		out, err := r.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			got, err := ir.ArrayOf(want[i].Type(), out[o.Name].Data)
			if err != nil {
				t.Fatal(err)
			}
			for k := range want[i].Len() {
				if !(math.Abs(got.Float(k)-want[i].Float(k)) <= 1e-6) {
					t.Errorf("%v: %s is %v, not %v", x, o.Name, got, want[i])
					break
				}
			}
		}
	}
}
