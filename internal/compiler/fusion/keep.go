package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// What is stored, and what is computed again, where products are left to tensor
// cores ([Options.TensorCores]).

// repeatedWeight is how many simple operations several users may repeat on a value
// that takes as much memory as theirs. To store theirs and read it takes 8 bytes an
// element, in the time of which an H200 does a hundred operations of f32 (67 TFLOP/s
// and 4.8 TB/s by its data sheet); half of that is left to what else the users do.
const repeatedWeight = 48

// wholeProduct is how many rows and columns of results a product has to have for its
// operands to be read several times.
const wholeProduct = 64

// keeps reports whether a node is stored although its users could compute it: a
// rounded operand of products, which take what lies in memory; what is computed of a
// product and then moved, which is stored in the product's place; what is computed
// of the sum of a row; and what several stored values meet in.
func (d *decisions) keeps(n *ir.Node, users []*ir.Node) bool {
	return withTensorCores && d.tensorCores &&
		(d.roundsOperand(n, users) || d.finishesProduct(n, users) || d.finishesRow(n, users) || d.meets(n, users))
}

// finishesRow reports whether a node is made of the result of a reduction, as a mean
// and the inverse of a deviation are, and is spread over the row again: every element
// of it would compute it anew.
func (d *decisions) finishesRow(n *ir.Node, users []*ir.Node) bool {
	size := sizeOf(n.Types()[0])
	var spread func(u *ir.Node) bool
	spread = func(u *ir.Node) bool {
		reshaped := isView(u) && sizeOf(u.Types()[0]) == size && slices.ContainsFunc(d.uses[u.ID()], spread)
		return reshaped || isView(u) && sizeOf(u.Types()[0]) >= smallPart*size
	}
	if d.weight[n.ID()] == 0 || isView(n) || !slices.ContainsFunc(users, spread) {
		return false
	}
	for x := n; x != nil; {
		if _, ok := x.Def().Lower.(*ir.ReduceLowering); ok {
			return true
		}
		if isView(x) && sizeOf(x.Input(0).Type()) == size {
			x = x.Input(0).Node()
		} else {
			x = d.wholeOperand(x)
		}
	}
	return false
}

// roundsOperand reports whether a node makes its operand narrower for a product that
// reads it several times. Stored, it is made once for all products of it, and where
// they read it, it takes half the memory.
func (d *decisions) roundsOperand(n *ir.Node, users []*ir.Node) bool {
	if n.Op() != ops.OpConvert || n.Types()[0].DType.Size() >= n.Input(0).DType().Size() {
		return false
	}
	return slices.ContainsFunc(users, func(u *ir.Node) bool {
		return d.readsOften(u, n, 2)
	})
}

// readsOften reports whether a node is a product of whole matrices that reads n, as
// it is or by way of views, so many deep at most.
func (d *decisions) readsOften(u, n *ir.Node, views int) bool {
	if l, ok := u.Def().Lower.(*ir.ContractLowering); ok {
		c := l.Spec(u)
		return min(Product(c.M), Product(c.N)) >= wholeProduct
	}
	if views == 0 || !isView(u) || bytesOf(u.Types()[0]) != bytesOf(n.Types()[0]) {
		return false
	}
	return slices.ContainsFunc(d.uses[u.ID()], func(v *ir.Node) bool { return d.readsOften(v, u, views-1) })
}

// isView reports whether a node only moves elements.
func isView(n *ir.Node) bool {
	_, view := n.Def().Lower.(*ir.MapLowering)
	return view && n.Def().Scalar == nil && len(n.Inputs()) == 1
}

// finishesProduct reports whether a node is what is made of each element of a
// product by itself, and some user moves it: each user would make it anew, where the
// product can leave it in the place of its own result, which nothing else reads and
// which is no smaller.
func (d *decisions) finishesProduct(n *ir.Node, users []*ir.Node) bool {
	if d.weight[n.ID()] == 0 || len(users) == 0 || !slices.ContainsFunc(users, isView) {
		return false
	}
	for x := n; ; {
		x = d.wholeOperand(x)
		if x == nil || len(d.uses[x.ID()]) != 1 {
			return false
		}
		if _, ok := x.Def().Lower.(*ir.ContractLowering); ok {
			return bytesOf(n.Types()[0]) <= bytesOf(x.Types()[0])
		}
	}
}

// meets reports whether a node with several users is made of several stored values no
// smaller than it, as the sum of a residual stream and what is added to it is: each user
// would read them all, and where such sums go on from layer to layer, ever more.
func (d *decisions) meets(n *ir.Node, users []*ir.Node) bool {
	return len(users) > 1 && d.wholes(n) > 1
}

// wholes is how many of the stored values in the expression of a node are as large as it.
func (d *decisions) wholes(n *ir.Node) (count int) {
	for _, v := range d.reads[n.ID()] {
		if sizeOf(v.Type()) >= sizeOf(n.Types()[0]) {
			count++
		}
	}
	return count
}

// joinsRows reports whether a map is left to a reduction of its rows rather than to the
// product that it reads among other values as large. Either way one of the two results goes
// through memory. But rows are read and written by all threads of a device, and what
// finishes a product by few, while no products are computed: with such a sum behind it a
// product of 16384 × 768 × 768 took 113 µs on an H200, and 45 without. A product in f32
// keeps it, for libraries add a matrix to that.
func (p *Partition) joinsRows(product, g *Group) bool {
	if !withTensorCores || !p.options.TensorCores || g.Kind != MapKind || len(g.Members) != 1 ||
		product.Members[0].Node.Types()[0].DType == ir.F32 {
		return false
	}
	n := g.Members[0].Node
	return p.decided.wholes(n) > 1 && slices.ContainsFunc(p.decided.uses[n.ID()], func(u *ir.Node) bool { return p.sumsRows(g, u) })
}

// sumsRows reports whether a node, or one that is computed where it is used, reduces the
// rows of what a map makes.
func (p *Partition) sumsRows(g *Group, n *ir.Node) bool {
	if p.decided.virtual[n.ID()] {
		return slices.ContainsFunc(p.decided.uses[n.ID()], func(u *ir.Node) bool { return p.sumsRows(g, u) })
	}
	r := p.groupOf[n]
	return r.Kind == ReduceKind && !r.RowsAreContiguous() && p.mergeBeforeReduce(g, r) != nil
}

// wholeOperand returns the operand of a node of arithmetic that has its shape and is
// no broadcast, nil where there is none or more than one.
func (d *decisions) wholeOperand(n *ir.Node) (whole *ir.Node) {
	if n.Def().Scalar == nil {
		return nil
	}
	for _, v := range n.Inputs() {
		if x := v.Node(); x.Op() != ops.OpBroadcastInDim && slices.Equal(dimsOf(v), dimsOf(n.Result(0))) {
			if whole != nil {
				return nil
			}
			whole = x
		}
	}
	return whole
}

func dimsOf(v ir.Value) []int {
	dims, _ := v.Shape().Ints()
	return dims
}

// repeats reports whether a value that several users read is computed by each: it is
// made of one stored value of as many elements that take no more memory, and of
// small ones, so that the users read those in its place.
func (d *decisions) repeats(n *ir.Node) bool {
	if !withTensorCores || !d.tensorCores || d.weight[n.ID()] > repeatedWeight {
		return false
	}
	size, wholes := sizeOf(n.Types()[0]), 0
	for _, v := range d.reads[n.ID()] {
		switch {
		case smallPart*sizeOf(v.Type()) <= size:
		case sizeOf(v.Type()) == size && loop.DeviceSize(v.DType()) <= loop.DeviceSize(n.Types()[0].DType):
			wholes++
		default:
			return false
		}
	}
	return wholes == 1
}

// smallPart is how many times a value has the elements of one whose memory is not
// counted beside its own.
const smallPart = 32

// sizeOf is how many elements a value of a type has.
func sizeOf(t ir.Type) int {
	n, _ := t.Shape.Size().Const()
	return n
}
