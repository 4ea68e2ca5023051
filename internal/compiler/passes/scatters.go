package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxSources is the most updates of one row for which a scatter at constant indices becomes gathers.
const maxSources = 16

// maxUntouched is the most rows for each update of such a scatter: gathers visit all rows.
const maxUntouched = 4

// ConstantScatters returns a graph in which a sum of updates at constant indices, such as the derivative of a resized
// image, is a sum of gathers; g itself where there are none.
func ConstantScatters(g *ir.Graph) (*ir.Graph, error) {
	return Replace(g, func(n *ir.Node) bool { return constantSources(n) != nil }, func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
		return gatherSources(b, n, in, constantSources(n))
	})
}

// Replace replaces the nodes that match, in bodies too, by values computed from their operands. It returns g itself where
// none does.
func Replace(g *ir.Graph, matches func(n *ir.Node) bool, replacement func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value) (*ir.Graph, error) {
	if !anyNode(g, matches) {
		return g, nil
	}
	var failed error
	out, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		to := ir.NewMapping(g)
		b.CopyPorts(g, to)
		for _, n := range g.Nodes() {
			if n.Op() == ir.OpPort {
				continue
			}
			b.Label(n.Label())
			b.At(n.Pos())
			if in := to.Inputs(n); matches(n) {
				to.Set(n.Result(0), replacement(b, n, in))
			} else {
				bodies := slices.Clone(n.Subgraphs())
				for i, body := range bodies {
					if inner, err := Replace(body, matches, replacement); err != nil {
						failed = err
					} else {
						bodies[i] = inner
					}
				}
				to.SetAll(n, b.CopyWith(n, n.Attrs(), bodies, in))
			}
		}
		b.CopyOutputs(g, to)
	})
	if failed != nil {
		return nil, failed
	}
	return out, err
}

// anyNode reports whether a node of a graph or of a body matches.
func anyNode(g *ir.Graph, matches func(n *ir.Node) bool) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return matches(n) || slices.ContainsFunc(n.Subgraphs(), func(body *ir.Graph) bool { return anyNode(body, matches) })
	})
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
		at, has, some, all := make([]int64, len(sources)), make([]int64, len(sources)), false, true
		for row, list := range sources {
			if k < len(list) {
				at[row], has[row], some = list[k], 1, true
			} else {
				all = false
			}
		}
		if !some {
			return sum
		}
		update := ops.MoveAxis(b, ops.Take(b, in[2], ops.Literal(b, ir.Ints(ir.I32, at)), 0, ops.OutsideClip), 0, axis)
		if !all {
			// Words, unlike booleans, are loaded by kernels of rows.
			present := ops.BroadcastInDim(b, ops.Literal(b, ir.Ints(ir.I32, has)), update.Shape(), []int{axis})
			update = ops.Select(b, ops.Ne(b, present, ops.ZerosLike(b, present)), update, ops.ZerosLike(b, update))
		}
		sum = ops.Add(b, sum, update)
	}
}
