package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// GroupedAttrs hold the number of rows of a block.
type GroupedAttrs struct{ Block int }

// Visit shows the attributes.
func (a *GroupedAttrs) Visit(v ir.AttrVisitor) { v.Int("block", &a.Block) }

func defineGroupedMatMul() {
	defineComposite(composite{
		op: OpGroupedMatMul, operands: []string{"x", "w", "groups"}, types: floats, newAttrs: func() ir.Attrs { return &GroupedAttrs{32} },
		doc: "The grouped matrix product: row i of x, [m, k], times w[groups[i]] of [g, k, n]: [m, n]. Rows are sorted by group into blocks of " +
			"one group each, with at most one partial block for each group. A group out of range gives 0.",
		constraints: []string{"x and w have one element type and the shapes stated, constant", "groups is i32[m]", "block is positive"},
		check: func(n *ir.Node) error {
			x, w, groups := n.Input(0), n.Input(1), n.Input(2)
			_, known := x.Shape().Ints()
			_, also := w.Shape().Ints()
			switch {
			case x.DType() != w.DType():
				return ir.DTypef("x is %s, w is %s", x.Type(), w.Type())
			case !known || !also || x.Rank() != 2 || w.Rank() != 3 || x.Dim(1) != w.Dim(1):
				return ir.Shapef("x is %s and w %s, not [m, k] and [g, k, n]", x.Shape(), w.Shape())
			case !groups.Type().Equal(ir.TypeOf(ir.I32, x.Dim(0))):
				return ir.Shapef("groups are %s, not %s", groups.Type(), ir.TypeOf(ir.I32, x.Dim(0)))
			case n.Attrs().(*GroupedAttrs).Block < 1:
				return ir.Attrf("block is %d, less than 1", n.Attrs().(*GroupedAttrs).Block)
			}
			return nil
		},
		body: groupedMatMul,
	})
}

// groupedMatMul assigns every row a slot in a sequence of blocks; each group starts a new
// block.
func groupedMatMul(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	x, w, groups := in[0], in[1], in[2]
	m, _ := x.Dim(0).Const()
	g, _ := w.Dim(0).Const()
	block := n.Attrs().(*GroupedAttrs).Block
	if m == 0 || g == 0 {
		return Zeros(b, x.DType(), x.Dim(0), w.Dim(2))
	}
	size, blocks := Const(b, ir.I32, float64(block)), m/block+g
	hits := Convert(b, OneHot(b, groups, ir.N(g), ir.Bool), ir.I32)
	filled := Div(b, Add(b, ReduceSum(b, hits, 0), Sub(b, size, OnesLike(b, size))), size) // blocks of each group
	ends := CumSum(b, filled, CumSumAttrs{})
	first := Mul(b, Sub(b, ends, filled), size)
	among := CumSum(b, hits, CumSumAttrs{Axis: 0, Exclusive: true})
	place := ReduceSum(b, Mul(b, hits, Add(b, among, first)), 1)
	outside := Eq(b, ReduceSum(b, hits, 1), Const(b, ir.I32, 0))
	place = Select(b, outside, ConstLike(b, place, -1), place)

	at := IndexedAxes{Axes: []int{0}, Unique: true}
	source := Scatter(b, Const(b, ir.I32, -1, ir.N(blocks*block)), ExpandDims(b, place, -1), Iota(b, ir.I32, 0, x.Dim(0)), ScatterAttrs{at})
	rows := Gather(b, x, ExpandDims(b, source, -1), GatherAttrs{IndexedAxes: at})
	number := Iota(b, ir.I32, 0, ir.N(blocks), ir.N(1))
	owner := ReduceSum(b, Convert(b, Le(b, ends, number), ir.I32), 1) // groups that end before the block
	product := DotGeneral(b, Reshape(b, rows, ir.N(blocks), ir.N(block), x.Dim(1)), Take(b, w, owner, 0, OutsideFill),
		DotAttrs{LhsContract: []int{2}, RhsContract: []int{1}, LhsBatch: []int{0}, RhsBatch: []int{0}})
	return Gather(b, Reshape(b, product, ir.N(blocks*block), w.Dim(2)), ExpandDims(b, place, -1), GatherAttrs{IndexedAxes: at})
}

// GroupedMatMul returns row i of x, [m, k], times w[groups[i]] of [g, k, n]: [m, n].
// groups is i32[m]; a group out of range gives 0.
func GroupedMatMul(b *ir.Builder, x, w, groups ir.Value) ir.Value {
	return b.Add1(OpGroupedMatMul, &GroupedAttrs{32}, x, w, groups)
}
