package sched_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cuda"
)

// TestKernelTextIgnoresTensorOrder lowers a contraction with vector loads whose operands are
// tensors in either order.
func TestKernelTextIgnoresTensorOrder(t *testing.T) {
	product := func(names ...string) string {
		g := schedtest.Build(t, func(b *ir.Builder) {
			in := map[string]ir.Value{}
			for _, name := range names {
				in[name] = b.Input(name, ir.F32, ir.Dims(512, 512)...)
			}
			b.Output("z", ops.MatMul(b, ops.Transpose(b, in["x"], 1, 0), in["y"]))
		})
		return schedtest.Kernels(t, g, plan.WebGPU())[0].String()
	}
	if a, b := product("x", "y"), product("y", "x"); a != b {
		t.Errorf("one product is two kernels (- x before y, + y before x):\n%s", lineDiff(a, b))
	}
}

// TestKernelsOfExtremesRoundProducts lowers a max pool and its derivative for CUDA. What finds the maxima and what compares
// with them compute the same values: neither contracts their products with sums.
func TestKernelsOfExtremesRoundProducts(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		row := func(name string) ir.Value {
			return ops.BroadcastInDim(b, b.Input(name, ir.F32, ir.N(8)), ir.Dims(4, 16, 16, 8), []int{3})
		}
		x := ops.Add(b, ops.Mul(b, b.Input("x", ir.F32, ir.Dims(4, 16, 16, 8)...), row("scale")), row("bias"))
		b.Output("loss", ops.ReduceSum(b, ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{2, 2}})))
	})
	g, err := autodiff.Grad(g, "loss", "scale")
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, k := range schedtest.Kernels(t, g, cuda.Target()) {
		source, err := cudacpp.Print(k)
		if err != nil {
			t.Fatal(err)
		}
		if k.Uncontracted != strings.Contains(source, "__fmul_rn(") {
			t.Errorf("products of a kernel are rounded, though it is no such one, or not\n%s", source)
		}
		if k.Uncontracted {
			marked++
		}
	}
	if marked != 2 {
		t.Errorf("%d kernels find or compare maxima, want 2", marked)
	}
}
