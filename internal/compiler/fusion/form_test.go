package fusion_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

const opCounted ir.Op = "test.counted"

var written int // how often the lowering of opCounted was called

func init() {
	if err := ir.Register(&ir.Def{
		Op: opCounted, Operands: []string{"x"}, NoGrad: "a test",
		Infer: func(n *ir.Node) ([]ir.Type, error) { return n.InTypes(), nil },
		Lower: &ir.MapLowering{Element: func(_ *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
			written++
			return scalar.Exp(load(0, at))
		}},
	}); err != nil {
		panic(err)
	}
}

// The number of lowerings expanded does not grow with the number of equal layers: facts are
// computed once per form and per expression.
func TestEqualLayersAreExpandedOnce(t *testing.T) {
	count := func(layers int) int {
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(8, 32)...)
			for range layers {
				y := b.Add1(opCounted, nil, x)
				x = ops.Mul(b, y, ops.BroadcastInDim(b, ops.ReduceSum(b, y, 1), y.Shape(), []int{0}))
			}
			b.Output("y", x)
		})
		written = 0
		groupsWith(t, g, fusion.DefaultOptions)
		return written
	}
	if few, many := count(3), count(30); few == 0 || many != few {
		t.Errorf("written out %d times for 3 layers, %d times for 30", few, many)
	}
}
