package passes

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// minOrdered is the least number of updates of a scatter whose indices [ShareOrders] sorts: fewer
// are combined by a search.
const minOrdered = 512

// ShareOrders sorts indices before scatters that combine updates in the order of their rows: once
// for all scatters of equal indices, and the indices of several inputs as the rows of one sort.
// Scatters that share nothing are left to sort theirs. Sums are those of the same updates in the same
// order of positions for each row.
func ShareOrders(g *ir.Graph) (*ir.Graph, error) {
	o := findOrders(g)
	if o == nil {
		return g, nil
	}
	r := newRun(Options{})
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		if k, ordered := o.of[s.n]; ordered {
			return []ir.Value{o.scatter(s, k)}, true
		}
		return r.copyNode(s, func(g *ir.Graph) (*ir.Graph, error) { return g, nil })
	})
}

// orders are the sorts of a graph.
type orders struct {
	uses  [][]*ir.Node     // of the graph, by node
	of    map[*ir.Node]int // by scatter, its place in list
	list  []indexOrder
	known map[int][2]ir.Value // by place: in the new graph, the order of positions and the sorted rows
}

// indexOrder is the order of the indices of some scatters.
type indexOrder struct {
	indices    ir.Value // in the old graph, before reshapes
	rows, from int      // the rows of the operand, and the number of indices
	// together is the index of the first order that is sorted in one sort with this one.
	together int
}

// findOrders returns the sorts that scatters share, or nil.
func findOrders(g *ir.Graph) *orders {
	scatters := 0
	for _, n := range g.Nodes() {
		if _, is := n.Attrs().(*ops.ScatterAttrs); is {
			scatters++
		}
	}
	if scatters < 2 {
		return nil
	}
	o := &orders{uses: g.Uses(), of: map[*ir.Node]int{}, known: map[int][2]ir.Value{}}
	uses := map[int][]*ir.Node{}
	for _, n := range g.Nodes() {
		x, combines := o.orderOf(n)
		if !combines {
			continue
		}
		k := slices.IndexFunc(o.list, func(y indexOrder) bool { return y.indices == x.indices && y.rows == x.rows })
		if k < 0 {
			k = len(o.list)
			x.together = o.joined(k, x)
			o.list = append(o.list, x)
		}
		uses[o.list[k].together] = append(uses[o.list[k].together], n)
		o.of[n] = k
	}
	for _, nodes := range uses {
		if len(nodes) == 1 {
			delete(o.of, nodes[0])
		}
	}
	if len(o.of) == 0 {
		return nil
	}
	return o
}

// joined returns the index of the first order with equally many indices, if those of both are
// inputs, which exist before all scatters; otherwise k.
func (o *orders) joined(k int, x indexOrder) int {
	isInput := func(x indexOrder) bool { return x.indices.Node().Op() == ir.OpPort }
	i := slices.IndexFunc(o.list, func(y indexOrder) bool {
		return isInput(x) && isInput(y) && x.from == y.from && x.indices.DType() == y.indices.DType()
	})
	if i < 0 {
		return k
	}
	return i
}

// unchecked returns indices before reshapes and, if ops other than scatters use the checked
// indices, before the check.
func (o *orders) unchecked(x ir.Value) ir.Value {
	isScatter := func(n *ir.Node) bool {
		_, is := n.Attrs().(*ops.ScatterAttrs)
		return is
	}
	checked := false
	for ; ; x = x.Node().Input(0) {
		checked = checked || slices.ContainsFunc(o.uses[x.Node().ID()], func(n *ir.Node) bool { return !isScatter(n) && n.Op() != ops.OpReshape })
		if op := x.Node().Op(); op != ops.OpReshape && !(op == ops.OpCheckIndex && checked) {
			return x
		}
	}
}

// orderOf returns the order of the indices of a scatter that combines updates in an order, of rows
// along one axis.
func (o *orders) orderOf(n *ir.Node) (indexOrder, bool) {
	a, is := n.Attrs().(*ops.ScatterAttrs)
	if !is || n.Op() == ops.OpScatter || !n.Types()[0].DType.IsFloat() || a.Unique || a.Unordered || a.Sorted || len(a.Axes) != 1 || len(a.OperandBatch) > 0 {
		return indexOrder{}, false
	}
	x := o.unchecked(n.Input(1))
	rows, sized := n.Input(0).Dim(a.Axes[0]).Const()
	from, counted := x.Shape().Size().Const()
	if !sized || !counted || rows < 1 || rows > math.MaxInt32-2 || from < minOrdered || x.DType() != ir.I32 && x.DType() != ir.U32 {
		return indexOrder{}, false
	}
	return indexOrder{indices: x, rows: rows, from: from}, true
}

// scatter adds a scatter with its updates in order k.
func (o *orders) scatter(s site, k int) ir.Value {
	b, x := s.b, o.list[k]
	if _, known := o.known[k]; !known {
		o.sort(s, x.together)
	}
	order, rows := o.known[k][0], o.known[k][1]
	a := *s.n.Attrs().(*ops.ScatterAttrs)
	a.Sorted = true
	updates := s.in[2]
	window := updates.Shape()[s.in[1].Rank()-1:]
	updates = ops.Reshape(b, updates, slices.Concat(ir.Dims(x.from), window)...)
	updates = ops.Take(b, updates, order, 0, ops.OutsideClip)
	return b.Add1(s.n.Op(), &a, s.in[0], ops.ExpandDims(b, rows, -1), updates)
}

// sort adds the sort of the orders combined with k. Its keys are the index plus one, 0 for negative
// indices and a common bound for those after the last row of every operand.
func (o *orders) sort(s site, k int) {
	b, count, bound := s.b, o.list[k].from, 0
	var indices []ir.Value
	var at []int
	for i, x := range o.list {
		if x.together == k {
			indices, at = append(indices, ops.Reshape(b, s.to.Get(x.indices), ir.N(1), ir.N(count))), append(at, i)
			bound = max(bound, x.rows)
		}
	}
	index := ops.Concatenate(b, 0, indices...)
	key := ops.Min(b, index, ops.ConstLike(b, index, float64(bound)))
	if index.DType() == ir.I32 {
		key = ops.Max(b, key, ops.ConstLike(b, index, -1))
	}
	key = ops.Convert(b, ops.Add(b, key, ops.OnesLike(b, key)), ir.U32)
	order := ops.ArgSort(b, key, ops.SortAttrs{Axis: 1})
	sorted := ops.TakeAlongAxis(b, index, order, 1, ops.OutsideClip)
	for row, i := range at {
		of := func(x ir.Value) ir.Value {
			return ops.Reshape(b, ops.SliceAxis(b, x, 0, ir.N(row), ir.N(1)), ir.N(count))
		}
		o.known[i] = [2]ir.Value{of(order), of(sorted)}
	}
}
