package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// TestReflectionsAreHalved checks that q·r is x, and qᵀ·q the identity matrix, where reflections are halved once or
// twice.
func TestReflectionsAreHalved(t *testing.T) {
	defer func(n int) { maxReflectors = n }(maxReflectors)
	maxReflectors = 70
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		rows, cols int
		full       bool
	}{{75, 75, false}, {150, 130, false}, {90, 75, true}, {75, 160, false}, {210, 200, false}} {
		x := ir.NewArray(ir.F64, c.rows, c.cols)
		for i := range x.F {
			x.F[i] = rng.Float64() - 0.5
		}
		g, err := ir.Build("qr", func(b *ir.Builder) {
			q, r := QR(b, b.Input("x", ir.F64, ir.Dims(c.rows, c.cols)...), c.full)
			b.Output("x", MatMul(b, q, r))
			square := MatMul(b, adjoint(b, q), q)
			b.Output("unit", Sub(b, square, identityLike(b, square)))
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, v := range x.F {
			worst = math.Max(worst, math.Abs(v-out[0].F[i]))
		}
		for _, v := range out[1].F {
			worst = math.Max(worst, math.Abs(v))
		}
		if !(worst < 1e-13) {
			t.Errorf("%+v: an element is off by %g", c, worst)
		}
	}
}
