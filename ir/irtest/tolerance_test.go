package irtest_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestTolerance(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, test := range []struct {
		t         irtest.Tolerance
		got, want float64
		allowed   bool
	}{
		{irtest.Tolerance{}, 3, 3, true},
		{irtest.Tolerance{}, 3, 3.0000001, false},
		{irtest.Tolerance{Abs: 1}, 1, 0, true},
		{irtest.Tolerance{Rel: 0.01}, 101, 100, true},
		{irtest.Tolerance{Rel: 0.01}, 102, 100, false},
		{irtest.Tolerance{Rel: 1}, nan, nan, true},
		{irtest.Tolerance{Rel: 1}, nan, 0, false},
		{irtest.Tolerance{Rel: 1}, 0, nan, false},
		{irtest.Tolerance{Rel: 1}, inf, inf, true},
		{irtest.Tolerance{Rel: 1}, -inf, inf, false},
		{irtest.Tolerance{Rel: 1}, 1e30, inf, false},
		{irtest.Tolerance{Rel: 1}, inf, 1e30, false},
	} {
		if test.t.Allows(test.got, test.want) != test.allowed {
			t.Errorf("%+v allows %v for %v: %v", test.t, test.got, test.want, !test.allowed)
		}
	}
}

func TestToleranceOfSamples(t *testing.T) {
	x := ir.Floats(ir.F32, []float64{1, 2})
	ints := ir.Ints(ir.I32, []int64{1, 2})
	for _, test := range []struct {
		op     ir.Op
		s      ir.Sample
		atMost float64
	}{
		{ops.OpExp, ir.Sample{In: []*ir.Array{x}}, 1e-6},
		{ops.OpPow, ir.Sample{In: []*ir.Array{x, x}}, 1e-6},
		{ops.OpExp, ir.Sample{In: []*ir.Array{x}, Tol: 0.5}, 0.5},
		{ops.OpSoftmax, ir.Sample{In: []*ir.Array{x}, Attrs: &ops.AxisAttrs{}}, 2e-5},
		{ops.OpNeg, ir.Sample{In: []*ir.Array{ints}}, 0},
	} {
		g, n, err := irtest.SampleGraph(test.op, test.s)
		if err != nil {
			t.Fatal(err)
		}
		tol := irtest.SampleTolerance(n, test.s, g.Outputs()[0].Value.DType())
		if tol.Rel > test.atMost || tol.Rel < test.atMost/3 {
			t.Errorf("%s: %+v, want about %v", test.op, tol, test.atMost)
		}
	}
}
