package passes

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxSources is the most updates of one row for which a scatter at constant indices becomes gathers.
const maxSources = 16

// maxUntouched is the most rows for each update of such a scatter: gathers visit all rows.
const maxUntouched = 4

// scatterAtConstants replaces a sum of updates at constant indices, such as the derivative of a resized image, by a sum of
// gathers.
func scatterAtConstants(s site) []ir.Value {
	if sources := constantSources(s.n); sources != nil {
		return []ir.Value{gatherSources(s.b, s.n, s.in, sources)}
	}
	return nil
}

// constantSources returns, for a sum of updates along one axis at constant indices, the updates of each row in their
// order; nil for any other node, and where a row has too many.
func constantSources(n *ir.Node) [][]int64 {
	a, ok := n.Attrs().(*ops.ScatterAttrs)
	if !ok || n.Op() != ops.OpScatterAdd || len(a.Axes) != 1 || len(a.OperandBatch) > 0 || n.Input(1).Rank() != 2 {
		return nil
	}
	c, ok := n.Input(1).Node().Attrs().(*ir.ConstantAttrs)
	rows, fixed := n.Input(0).Dim(a.Axes[0]).Const()
	if t := n.Input(0).DType(); !ok || !fixed || rows == 0 || t != ir.F32 && t != ir.F64 || a.Outside == ops.OutsideWrap {
		return nil
	}
	indices, err := ir.ArrayOf(n.Input(1).Type(), c.Data)
	if err != nil || len(indices.I) < rows/maxUntouched {
		return nil
	}
	out := make([][]int64, rows)
	for i, row := range indices.I {
		switch {
		case a.Outside == ops.OutsideClip:
			row = max(0, min(row, int64(rows-1)))
		case row < 0 || row >= int64(rows):
			continue
		}
		if out[row] = append(out[row], int64(i)); len(out[row]) > maxSources {
			return nil
		}
	}
	return out
}

// gatherSources adds the updates of each row to the operand of a scatter: the first ones, the second ones, and so on.
func gatherSources(b *ir.Builder, n *ir.Node, in []ir.Value, sources [][]int64) ir.Value {
	axis, sum := n.Attrs().(*ops.ScatterAttrs).Axes[0], in[0]
	for k := 0; ; k++ {
		at, has, present := make([]int64, len(sources)), make([]int64, len(sources)), 0
		for row, list := range sources {
			if k < len(list) {
				at[row], has[row] = list[k], 1
				present++
			}
		}
		if present == 0 {
			return sum
		}
		update := ops.MoveAxis(b, ops.Take(b, in[2], ops.Literal(b, ir.Ints(ir.I32, at)), 0, ops.OutsideClip), 0, axis)
		if present < len(sources) {
			// Words, unlike booleans, are loaded by kernels of rows.
			has := ops.BroadcastInDim(b, ops.Literal(b, ir.Ints(ir.I32, has)), update.Shape(), []int{axis})
			update = ops.Select(b, ops.Ne(b, has, ops.ZerosLike(b, has)), update, ops.ZerosLike(b, update))
		}
		sum = ops.Add(b, sum, update)
	}
}
