package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// minScatteredBins is the least number of bins for which counts are a scatter: of fewer, each is compared
// with each element.
const minScatteredBins = 24

// countsByScatter reports whether a node counts numbers in many bins.
func countsByScatter(n *ir.Node) bool {
	a, ok := n.Attrs().(*ops.BinsAttrs)
	return ok && n.Op() == ops.OpBincount && a.Bins >= minScatteredBins
}

// scatterOnes counts integers in the bins of a node that counts by a scatter.
func scatterOnes(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	if !countsByScatter(n) {
		return ir.Value{}
	}
	x, bins := ops.Reshape(b, in[0], in[0].Shape().Size(), ir.N(1)), n.Attrs().(*ops.BinsAttrs).Bins
	return ops.ScatterAdd(b, ops.Zeros(b, ir.I32, ir.N(bins)), x, ops.Ones(b, ir.I32, x.Dim(0)),
		ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Outside: ops.OutsideDrop}})
}
