package fusion_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPooledWindowsAreComputedAgain differentiates a max pool of values computed from a bf16 array. Which elements of the
// windows are their maxima is not stored, but found again from the array and the maxima.
func TestPooledWindowsAreComputedAgain(t *testing.T) {
	dims := []int{8, 112, 112, 64}
	g := build(t, func(b *ir.Builder) {
		row := func(name string) ir.Value {
			return ops.BroadcastInDim(b, b.Input(name, ir.F32, ir.N(64)), ir.Dims(dims...), []int{3})
		}
		x := ops.Convert(b, b.Input("x", ir.BF16, ir.Dims(dims...)...), ir.F32)
		x = ops.Tanh(b, ops.Add(b, ops.Mul(b, x, row("scale")), row("bias")))
		b.Output("loss", ops.ReduceSum(b, ops.Sin(b, ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{2, 2}}))))
	})
	g, err := autodiff.Grad(g, "loss", "bias")
	if err == nil {
		g, err = passes.Run(g, passes.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	o := fusion.DefaultOptions
	o.TensorCores, o.Policy = true, hardware.H200()
	p, err := fusion.Build(g, o)
	if err != nil {
		t.Fatal(err)
	}
	maxima := false
	for _, item := range p.Items {
		g := item.(*fusion.Group)
		if len(g.Inner) != 2 {
			continue
		}
		maxima = true
		for _, x := range g.Writes() {
			if n := fusion.Product(x.Dims); n != fusion.Product(dims)/4 {
				t.Errorf("the kernel that finds maxima stores %s of %d elements\n%s", x.DType, n, p)
			}
		}
	}
	if !maxima {
		t.Errorf("no group reduces windows\n%s", p)
	}
}
