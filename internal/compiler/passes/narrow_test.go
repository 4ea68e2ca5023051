//go:build !js

package passes_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestNarrow selects widened values: in the narrow type where every branch has values of it, unless the
// result is rounded to it in any case. Results keep every bit.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      func(b *ir.Builder, p, x, y ir.Value) ir.Value
		narrow bool
	}{
		{"zero", func(b *ir.Builder, p, x, _ ir.Value) ir.Value { return ops.Select(b, p, ops.ZerosLike(b, x), x) }, true},
		{"both", func(b *ir.Builder, p, x, y ir.Value) ir.Value { return ops.Select(b, p, x, y) }, true},
		{"one", func(b *ir.Builder, p, x, _ ir.Value) ir.Value {
			return ops.Select(b, p, x, ops.Const(b, ir.F32, 1, ir.N(4)))
		}, false},
		{"sum", func(b *ir.Builder, p, x, y ir.Value) ir.Value {
			return ops.Select(b, p, ops.Add(b, x, y), ops.ZerosLike(b, x))
		}, false},
		{"rounded", func(b *ir.Builder, p, x, y ir.Value) ir.Value {
			return ops.Convert(b, ops.Convert(b, ops.Select(b, p, x, y), ir.BF16), ir.F32)
		}, false},
	} {
		g, err := ir.Build("g", func(b *ir.Builder) {
			wide := func(name string) ir.Value { return ops.Convert(b, b.Input(name, ir.BF16, ir.N(4)), ir.F32) }
			b.Output("z", ops.Mul(b, c.f(b, b.Input("p", ir.Bool, ir.N(4)), wide("x"), wide("y")), ops.Const(b, ir.F32, 3, ir.N(4))))
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := passes.Narrow(g)
		if err != nil {
			t.Fatal(err)
		}
		narrow := slices.ContainsFunc(h.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpSelect && n.Types()[0].DType == ir.BF16 })
		if narrow != c.narrow {
			t.Errorf("%s: selects in bf16: %t, not %t\n%s", c.name, narrow, c.narrow, h)
		}
		in := map[string]*ir.Array{"p": ir.NewArray(ir.Bool, 4), "x": ir.NewArray(ir.BF16, 4), "y": ir.NewArray(ir.BF16, 4)}
		copy(in["x"].F, []float64{1.5, math.Copysign(0, -1), math.Inf(1), math.NaN()})
		copy(in["y"].F, []float64{-2, 3, 0.125, 1})
		in["p"].I[1], in["p"].I[2] = 1, 1
		want, err := ir.Eval(g, in, ir.EvalOptions{})
		got, err2 := ir.Eval(h, in, ir.EvalOptions{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for i, x := range want[0].F {
			if math.Float64bits(got[0].F[i]) != math.Float64bits(x) {
				t.Errorf("%s: element %d is %v, and was %v", c.name, i, got[0].F[i], x)
			}
		}
	}
}
