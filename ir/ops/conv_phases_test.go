package ops_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPhasesOfConvolutions compares the contractions of convolutions with a dilated operand with the reference:
// with phases in the batch, by phases, and undivided.
func TestPhasesOfConvolutions(t *testing.T) {
	divided := 0
	check := func(x, w []int, a ops.ConvAttrs) {
		var n *ir.Node
		g, err := ir.Build("conv", func(b *ir.Builder) {
			y := ops.ConvGeneral(b, b.Input("x", ir.F64, ir.Dims(x...)...), b.Input("w", ir.F64, ir.Dims(w...)...), a)
			b.Output("y", y)
		})
		if err != nil {
			return // the result is negative
		}
		for _, m := range g.Nodes() {
			if m.Op() == ops.OpConvGeneral {
				n = m
			}
		}
		in := map[string]*ir.Array{"x": counted(x, 7), "w": counted(w, 5)}
		want, err := ir.Eval(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		operands := []*ir.Array{in["x"], in["w"]}
		inBatch, err := irtest.EvalLowering(n, operands, nil)
		if err != nil {
			t.Fatalf("%v by %v, %+v: %v", x, w, a, err)
		}
		undivided, byPhases, phases, err := irtest.EvalForms(n, operands)
		if err != nil {
			t.Fatalf("%v by %v, %+v: %v", x, w, a, err)
		}
		if phases > 1 {
			divided++
		}
		for form, got := range map[string]*ir.Array{"in the batch": inBatch[0], "undivided": undivided, "by phases": byPhases} {
			if !slices.Equal(got.F, want[0].F) {
				t.Errorf("%v by %v, %+v, %s: %v, want %v", x, w, a, form, got.F, want[0].F)
			}
		}
	}
	for size := 1; size <= 5; size += 2 {
		for window := 1; window <= 7; window++ {
			for lo := -2; lo <= 3; lo++ {
				for stride := 2; stride <= 4; stride++ {
					a := ops.ConvAttrs{PadLo: []int{lo}, PadHi: []int{lo%2 + 1}, LhsDilation: []int{stride}}
					check([]int{1, 2, size}, []int{2, 2, window}, a)
					a.FeatureGroups, a.RhsDilation = ir.N(2), []int{1 + lo&1}
					check([]int{1, 2, size}, []int{2, 1, window}, a)
				}
			}
		}
	}
	planes := ops.ConvAttrs{PadLo: []int{1, 2}, PadHi: []int{1, 0}, LhsDilation: []int{2, 3}}
	check([]int{2, 2, 3, 4}, []int{3, 2, 3, 3}, planes)
	planes.Strides = []int{1, 2}
	check([]int{2, 2, 4, 3}, []int{3, 2, 2, 5}, planes)
	check([]int{1, 2, 2, 3, 2}, []int{2, 2, 3, 2, 1}, ops.ConvAttrs{PadLo: []int{1, 0, 1}, PadHi: []int{0, 2, 1}, LhsDilation: []int{2, 2, 4}})
	check([]int{4, 2, 3, 3}, []int{2, 2, 3, 4}, ops.ConvAttrs{PadLo: []int{1, 2}, PadHi: []int{1, 1}, LhsDilation: []int{2, 2}, BatchGroups: ir.N(2)})
	if divided < 100 {
		t.Errorf("%d convolutions have phases", divided)
	}
}

// counted returns an array of small whole numbers.
func counted(dims []int, by int64) *ir.Array {
	a := ir.NewArray(ir.F64, dims...)
	for i := range a.F {
		a.F[i] = float64((int64(i)*by+3)%11 - 5)
	}
	return a
}
