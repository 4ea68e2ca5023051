package cpu_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cpu"
)

// normOfPlanes normalises planes as images with the channels last, and multiplies by the largest of each channel and
// by a constant array.
func normOfPlanes(b *ir.Builder, x ir.Value) ir.Value {
	x = ops.Transpose(b, x, 0, 2, 3, 1)
	n, _ := x.Shape().Size().Const()
	var weights []byte
	for i := range n {
		weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(float32(i%7)-2))
	}
	y := ops.Sub(b, x, ops.Mean(b, x, 0, 1, 2))
	y = ops.Mul(b, ops.Mul(b, y, ops.ReduceMax(b, x, 0, 1, 2)), b.Constant(x.Type(), weights))
	return ops.Relu(b, ops.Transpose(b, ops.Add(b, y, ops.Const(b, ir.F32, 0.5)), 0, 3, 1, 2))
}

// TestTransposesAroundNorms looks for transposes that are left of a norm of planes, and for one that windows need.
func TestTransposesAroundNorms(t *testing.T) {
	pooled := func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MaxPool(b, ops.Transpose(b, normOfPlanes(b, x), 0, 2, 3, 1), ops.PoolAttrs{Sizes: []int{2, 2}, Strides: []int{2, 2}})
	}
	for _, c := range []struct {
		name string
		f    func(b *ir.Builder, x ir.Value) ir.Value
		want int // of the operand, of the result, and of the constant array where planes are computed
	}{{"norm", normOfPlanes, 1}, {"norm and pool", pooled, 1}} {
		g, err := cpu.LowerComposites(of("", c.f, 3, 20, 11, 9).graph(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := liveTransposes(g); got != c.want {
			t.Errorf("%s: %d transposes, not %d:\n%s", c.name, got, c.want, g)
		}
	}
}

// liveTransposes counts the transposes that the outputs of a graph depend on.
func liveTransposes(g *ir.Graph) (count int) {
	seen := map[*ir.Node]bool{}
	var visit func(n *ir.Node)
	visit = func(n *ir.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.Op() == ops.OpTranspose {
			count++
		}
		for _, v := range n.Inputs() {
			visit(v.Node())
		}
	}
	for _, o := range g.Outputs() {
		visit(o.Value.Node())
	}
	return count
}
