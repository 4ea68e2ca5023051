package ops_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// By mpmath 1.4.1 (psi).
func TestPolygammaAgreesWithMpmath(t *testing.T) {
	x := ir.Floats(ir.F64, []float64{0.3, 1, 5.5, 40})
	for order, want := range map[int][]float64{
		1: {12.245364546107732, 1.6449340668482264, 0.19934238698962767, 0.02531510384129103},
		2: {-75.27253658872604, -2.4041138063191885, -0.03960894752130204, -0.0006408202718352986},
		3: {743.1417646550498, 6.493939402266829, 0.015690592675882818, 3.24414001515635e-05},
	} {
		g := must(ir.Build("g", func(b *ir.Builder) {
			b.Output("y", ops.Polygamma(b, b.Port(ir.InputPort, "x", x.Type()), order))
		}))(t)
		for i, y := range runHeld(t, g, []*ir.Array{x})[0].F {
			if !(math.Abs(y-want[i]) <= 1e-13*math.Abs(want[i])) {
				t.Errorf("order %d at %v: %v, want %v", order, x.F[i], y, want[i])
			}
		}
	}
}
