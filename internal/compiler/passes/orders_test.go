package passes_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestShareOrdersSortsOnce scatters by two inputs of indices, some of them out of range: all
// scatters share one sort, and results keep every bit.
func TestShareOrdersSortsOnce(t *testing.T) {
	const count = 600
	g, err := ir.Build("g", func(b *ir.Builder) {
		first, second := b.Input("first", ir.I32, ir.N(count)), b.Input("second", ir.I32, ir.Dims(20, 30)...)
		u := b.Input("u", ir.F32, ir.Dims(count, 3)...)
		rows := func(outside string) ops.ScatterAttrs {
			return ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Outside: outside}}
		}
		column := ops.Reshape(b, first, ir.Dims(count, 1)...)
		zeros := ops.Zeros(b, ir.F32, ir.Dims(7, 3)...)
		b.Output("dropped", ops.ScatterAdd(b, zeros, column, u, rows(ops.OutsideDrop)))
		b.Output("clipped", ops.ScatterMax(b, zeros, column, u, rows(ops.OutsideClip)))
		wide := ops.Reshape(b, u, ir.Dims(20, 30, 3)...)
		b.Output("more rows", ops.ScatterAdd(b, ops.Zeros(b, ir.F32, ir.Dims(9, 3)...), ops.ExpandDims(b, second, -1), wide, rows(ops.OutsideDrop)))
	})
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*ir.Array{"first": ir.NewArray(ir.I32, count), "second": ir.NewArray(ir.I32, 20, 30), "u": ir.NewArray(ir.F32, count, 3)}
	for i := range count {
		inputs["first"].I[i], inputs["second"].I[i] = int64(i*7%11-2), int64(i*5%13-2)
	}
	for i := range inputs["u"].F {
		inputs["u"].F[i] = float64(i*37%23-11) / 8
	}
	shared, err := passes.ShareOrders(g)
	if err != nil {
		t.Fatal(err)
	}
	sorts, scatters := 0, 0
	for _, n := range shared.Nodes() {
		if n.Op() == ops.OpArgSort {
			sorts++
		}
		if a, is := n.Attrs().(*ops.ScatterAttrs); is && a.Sorted {
			scatters++
		}
	}
	if sorts != 1 || scatters != 3 {
		t.Errorf("%d sorts and %d scatters of sorted indices, not 1 and 3:\n%s", sorts, scatters, shared)
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ir.Eval(shared, inputs, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k, w := range want {
		for i, x := range w.F {
			if got[k].F[i] != x {
				t.Fatalf("%s: element %d is %v, not %v", g.Outputs()[k].Name, i, got[k].F[i], x)
			}
		}
	}
}

// TestShareOrdersLeavesSingleScatters has a scatter whose indices no other one shares.
func TestShareOrdersLeavesSingleScatters(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		at, u := b.Input("at", ir.I32, ir.Dims(600, 1)...), b.Input("u", ir.F32, ir.Dims(600, 3)...)
		b.Output("y", ops.ScatterAdd(b, ops.Zeros(b, ir.F32, ir.Dims(7, 3)...), at, u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if shared, err := passes.ShareOrders(g); err != nil || shared != g {
		t.Errorf("the graph became %v, %v", shared, err)
	}
}
