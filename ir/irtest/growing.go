package irtest

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Growing is a family of graphs of any size, whose compile time should grow linearly.
type Growing struct {
	Name  string
	build func(b *ir.Builder, nodes int)
}

// Graph returns the graph with about the given number of nodes.
func (g Growing) Graph(nodes int) (*ir.Graph, error) {
	return ir.Build(g.Name, func(b *ir.Builder) { g.build(b, nodes) })
}

// Families are graphs that grow in depth, in parameters, in inputs and in branches.
var Families = []Growing{
	{"chain", func(b *ir.Builder, nodes int) {
		x := b.Input("x", ir.F32, ir.N(64))
		for i := range nodes / 2 {
			x = ops.Add(b, ops.Sin(b, x), ops.ConstLike(b, x, float64(i)))
		}
		b.Output("y", x)
	}},
	{"residual", func(b *ir.Builder, nodes int) {
		x := b.Input("x", ir.F32, ir.Dims(16, 64)...)
		for i := range nodes / 5 {
			w := b.Param("w"+strconv.Itoa(i), ir.F32, ir.Dims(64, 64)...)
			x = ops.Add(b, x, ops.Relu(b, ops.MatMul(b, x, w)))
		}
		b.Output("y", x)
	}},
	{"parameters", func(b *ir.Builder, nodes int) {
		var sum ir.Value
		for i := range nodes / 3 {
			w := b.State("w"+strconv.Itoa(i), ir.F32, ir.N(7+i%5))
			b.SetState("w"+strconv.Itoa(i), ops.Sin(b, w))
			if s := ops.ReduceSum(b, w); i == 0 {
				sum = s
			} else {
				sum = ops.Add(b, sum, s)
			}
		}
		b.Output("y", sum)
	}},
	{"inputs", func(b *ir.Builder, nodes int) {
		sum := b.Input("x0", ir.F32, ir.N(4))
		for i := range nodes / 2 {
			sum = ops.Add(b, sum, b.Input("x"+strconv.Itoa(i+1), ir.F32, ir.N(4)))
		}
		b.Output("y", sum)
	}},
	{"branches", func(b *ir.Builder, nodes int) {
		x := b.Input("x", ir.F32, ir.Dims(8, 32)...)
		var sum ir.Value
		for i := range 64 {
			y := x
			for j := range nodes / 64 {
				y = ops.Mul(b, ops.Sin(b, y), ops.ConstLike(b, y, float64(j)))
				if j%5 == 4 {
					y = ops.Sub(b, y, ops.BroadcastInDim(b, ops.ReduceMax(b, y, 1), y.Shape(), []int{0}))
				}
			}
			if i == 0 {
				sum = y
			} else {
				sum = ops.Add(b, sum, y)
			}
		}
		b.Output("y", sum)
	}},
}
