package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxSources is the most updates of one row for which a scatter at constant indices becomes gathers.
const maxSources = 16

// maxUntouched is the most rows for each update of such a scatter: gathers visit all rows.
const maxUntouched = 4

// minScatteredBins is the least number of bins for which counts are a scatter: of fewer, each is compared
// with each element.
const minScatteredBins = 24

// countsByScatter reports whether a node counts numbers in many bins.
func countsByScatter(n *ir.Node) bool {
	a, ok := n.Attrs().(*ops.BinsAttrs)
	return ok && n.Op() == ops.OpBincount && a.Bins >= minScatteredBins
}

// rewriteScatters returns a graph in which a sum of updates at constant indices, such as the derivative of a resized
// image, is a sum of gathers, and counts in many bins are a scatter; g itself where there are none.
func rewriteScatters(g *ir.Graph) (*ir.Graph, error) {
	if !rewritesScatters(g) {
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
			in := to.Inputs(n)
			switch sources := constantSources(n); {
			case sources != nil:
				to.Set(n.Result(0), gatherSources(b, n, in, sources))
			case countsByScatter(n):
				to.Set(n.Result(0), scatterOnes(b, n.Attrs().(*ops.BinsAttrs).Bins, in[0]))
			default:
				inner, err := rewriteEach(n.Subgraphs())
				if err != nil {
					failed = err
				}
				to.SetAll(n, b.CopyWith(n, n.Attrs(), inner, in))
			}
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, to.Get(o.Value))
		}
	})
	if failed != nil {
		return nil, failed
	}
	return out, err
}

// rewritesScatters reports whether [rewriteScatters] changes a graph, or the body of a node.
func rewritesScatters(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return countsByScatter(n) || constantSources(n) != nil || slices.ContainsFunc(n.Subgraphs(), rewritesScatters)
	})
}

// rewriteEach rewrites the bodies of a node.
func rewriteEach(list []*ir.Graph) ([]*ir.Graph, error) {
	out := slices.Clone(list)
	for i, g := range list {
		var err error
		if out[i], err = rewriteScatters(g); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scatterOnes counts the integers in [0, bins).
func scatterOnes(b *ir.Builder, bins int, x ir.Value) ir.Value {
	x = ops.Reshape(b, x, x.Shape().Size(), ir.N(1))
	return ops.ScatterAdd(b, ops.Zeros(b, ir.I32, ir.N(bins)), x, ops.Ones(b, ir.I32, x.Dim(0)),
		ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Outside: ops.OutsideDrop}})
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
