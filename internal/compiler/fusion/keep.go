package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Rules for what to store where products use tensor cores ([Options.TensorCores]).

// wholeProduct is the number of result rows and columns from which a product counts as
// reading its operands repeatedly.
const wholeProduct = 64

// keeps reports whether a node is stored although its users could compute it: a sum times a number, the
// sum of a residual stream and the result of a single row, and where products use tensor cores a rounded
// operand of products, which load operands as stored; the rearranged kernel of a convolution in groups; the
// epilogue of a product that is then moved, which reuses the product's buffer; the epilogue of a row reduction; and the
// sum of several stored values.
func (d *decisions) keeps(n *ir.Node, users []*ir.Node) bool {
	return isScaledSum(n) || d.addsToRow(n, users) || isSplitEpilogue(d, n, users) || withTensorCores && d.options.TensorCores &&
		(roundsOperand(d, n, users) || movesChannels(n, users) || isGroupedKernel(n, users) || isProductEpilogue(d, n, users) || isReductionEpilogue(d, n, users) || d.combines(n, users))
}

// readers returns the users of a node. Where all that uses a 16-bit value is its conversion to f32, they are the users
// of this: which of the two is stored depends on what reads it, and the conversion is computed there.
func (d *decisions) readers(n *ir.Node) []*ir.Node {
	users := d.uses[n.ID()]
	if t := n.Types()[0].DType; withTensorCores && d.options.TensorCores && len(users) == 1 && t.IsFloat() && t.Size() == 2 &&
		users[0].Op() == ops.OpConvert && users[0].Types()[0].DType == ir.F32 {
		return d.uses[users[0].ID()]
	}
	return users
}

// isReductionEpilogue reports whether a node is computed from the result of a reduction, as a mean
// or an inverse deviation is, and then broadcast over the row: inlined, every element of
// the row would compute it.
func isReductionEpilogue(d *decisions, n *ir.Node, users []*ir.Node) bool {
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
			x = wholeOperand(d, x)
		}
	}
	return false
}

// roundsOperand reports whether a node narrows an operand of products that read it
// repeatedly. Stored, it is computed once for all of them, and they read half the memory.
func roundsOperand(d *decisions, n *ir.Node, users []*ir.Node) bool {
	if n.Op() != ops.OpConvert || n.Types()[0].DType.Size() >= n.Input(0).DType().Size() {
		return false
	}
	return slices.ContainsFunc(users, func(u *ir.Node) bool {
		return readsOften(d, u, n, 2)
	})
}

// movesChannels reports whether a node transposes images for a convolution, which reads each element several times, so
// that their channels are last.
func movesChannels(n *ir.Node, users []*ir.Node) bool {
	return n.Op() == ops.OpTranspose && slices.ContainsFunc(users, func(u *ir.Node) bool {
		a, ok := u.Attrs().(*ops.ConvAttrs)
		return ok && u.Input(0) == n.Result(0) && slices.Contains(a.Lhs[:2], len(a.Lhs)-1)
	})
}

// fewColumns is the number of columns below which a product has no tiles of its own.
const fewColumns = 16

// isGroupedKernel reports whether a node rearranges the small kernel of a convolution in groups of few channels, as the
// gradient by its input does. Threads that compute adjacent channels load the stored kernel as vectors.
func isGroupedKernel(n *ir.Node, users []*ir.Node) bool {
	if !isView(n) || len(users) != 1 || len(users[0].Inputs()) < 2 || users[0].Input(1) != n.Result(0) || smallPart*sizeOf(n.Types()[0]) > sizeOf(users[0].Types()[0]) {
		return false
	}
	l, ok := users[0].Def().Lower.(*ir.ContractLowering)
	if !ok {
		return false
	}
	c := l.Spec(users[0])
	return Product(c.Batch) > 1 && len(c.K) > 1 && Product(c.N) > 1 && Product(c.N) <= fewColumns
}

// readsOften reports whether a node is a product of whole matrices that reads n, directly
// or through at most the given number of views.
func readsOften(d *decisions, u, n *ir.Node, views int) bool {
	if l, ok := u.Def().Lower.(*ir.ContractLowering); ok {
		c := l.Spec(u)
		return min(Product(c.M), Product(c.N)) >= wholeProduct
	}
	if views == 0 || !isView(u) || bytesOf(u.Types()[0]) != bytesOf(n.Types()[0]) {
		return false
	}
	return slices.ContainsFunc(d.uses[u.ID()], func(v *ir.Node) bool { return readsOften(d, v, u, views-1) })
}

// isView reports whether a node only rearranges elements.
func isView(n *ir.Node) bool {
	_, view := n.Def().Lower.(*ir.MapLowering)
	return view && n.Def().Scalar == nil && len(n.Inputs()) == 1
}

// isProductEpilogue reports whether a node is the elementwise epilogue of a product and a
// user rearranges it. Inlined, each user would compute it again. Stored by the product, it
// replaces the product's own result: nothing else reads that, and it is no smaller.
func isProductEpilogue(d *decisions, n *ir.Node, users []*ir.Node) bool {
	if d.weight[n.ID()] == 0 || len(users) == 0 || !slices.ContainsFunc(users, isView) {
		return false
	}
	for x := n; ; {
		x = wholeOperand(d, x)
		if x == nil || len(d.uses[x.ID()]) != 1 {
			return false
		}
		if _, ok := x.Def().Lower.(*ir.ContractLowering); ok {
			return bytesOf(n.Types()[0]) <= bytesOf(x.Types()[0])
		}
	}
}

// isSplitEpilogue reports whether a node is the epilogue of a product whose parts are read, as queries, keys and values
// are: products that read the parts read them where they are, instead of a copy that computes the epilogue.
func isSplitEpilogue(d *decisions, n *ir.Node, users []*ir.Node) bool {
	whole := func(u *ir.Node) bool { return !isView(u) || sizeOf(u.Types()[0]) >= sizeOf(n.Types()[0]) }
	return !slices.ContainsFunc(users, whole) && isProductEpilogue(d, n, users)
}

// combines reports whether a node with several users is computed from several stored values
// of at least its size, such as a residual stream plus a layer's output. Inlined, each user
// would read all of them, and more from layer to layer.
func (d *decisions) combines(n *ir.Node, users []*ir.Node) bool {
	return len(users) > 1 && d.wholes(n) > 1
}

// addsToRow reports whether a node with several users adds a row to the sum that is only read here: it is the epilogue of
// that, and users would read more rows from layer to layer.
func (d *decisions) addsToRow(n *ir.Node, users []*ir.Node) bool {
	if n.Op() != ops.OpAdd || !d.combines(n, users) || sizeOf(n.Types()[0]) != lastDim(n) {
		return false
	}
	return slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool {
		for isReshape(v.Node()) && len(d.uses[v.Node().ID()]) == 1 {
			v = v.Node().Input(0)
		}
		_, sum := v.Node().Def().Lower.(*ir.ReduceLowering)
		_, product := v.Node().Def().Lower.(*ir.ContractLowering)
		return (sum || product) && len(d.uses[v.Node().ID()]) == 1
	})
}

// lastDim returns the size of the last axis of a node's result.
func lastDim(n *ir.Node) int {
	dims := dimsOf(n.Result(0))
	if len(dims) == 0 {
		return 0
	}
	return dims[len(dims)-1]
}

// wholes counts the stored values in a node's expression that are at least as large as it.
func (d *decisions) wholes(n *ir.Node) (count int) {
	for _, v := range d.reads[n.ID()] {
		if sizeOf(v.Type()) >= sizeOf(n.Types()[0]) {
			count++
		}
	}
	return count
}

// wholeOperand returns the operand of an elementwise node that has its shape and is no
// broadcast, or nil if there is not exactly one.
func wholeOperand(d *decisions, n *ir.Node) (whole *ir.Node) {
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

// isCostlyPart reports whether computing the part n of a concatenation takes longer than
// a round trip through memory. The threads of a warp have elements of several parts, so each
// thread takes the time of all parts.
func (d *decisions) isCostlyPart(n, u *ir.Node) bool {
	if !withTensorCores || !d.options.TensorCores || u.Op() != ops.OpConcatenate {
		return false
	}
	others := sizeOf(u.Types()[0])/max(sizeOf(n.Types()[0]), 1) - 1
	return d.weight[n.ID()]*others > d.traffic.RepeatedOps
}

// recomputes reports whether several users each recompute a value: its expression reads one
// stored value of at least as many elements that takes no more memory, such as half the channels
// of a bf16 array, and otherwise small ones, or in addition to these one more that is smaller, all in all
// no more memory, such as the maxima of a bf16 array's windows, so that the users read those instead.
// Elements of two smaller arrays, which are then concatenated, take kernels longer to find (H200: a step of
// DenseNet-121 took 20.6 ms in place of 20.3, and 30.8 with any number of arrays).
func (d *decisions) recomputes(n *ir.Node) bool {
	if !withTensorCores || !d.options.TensorCores || d.weight[n.ID()] > d.traffic.RepeatedOps {
		return false
	}
	if d.expands(n) {
		return true
	}
	size, bytes := sizeOf(n.Types()[0]), bytesOf(n.Types()[0])
	wholes, parts, sizes, read := 0, 0, 0, 0
	for _, v := range d.reads[n.ID()] {
		sizes, read = sizes+sizeOf(v.Type()), read+bytesOf(v.Type())
		switch {
		case smallPart*sizeOf(v.Type()) <= size:
		case sizeOf(v.Type()) >= size && bytesOf(v.Type()) <= bytes:
			wholes++
		default:
			parts++
		}
	}
	return wholes == 1 && parts == 0 || parts <= 1 && sizes >= size && read <= bytes
}

// repeatedWork is the number of operations for each element of a value that a reduction may repeat.
const repeatedWork = 128

// isReducedWide reports whether u broadcasts n to a space that only reductions read, with operands that are much smaller, as
// of distances between all pairs: a cache holds them, and the reduction takes the time of its operations.
func (d *decisions) isReducedWide(n, u *ir.Node) bool {
	size := sizeOf(u.Types()[0])
	return withTensorCores && d.weight[n.ID()]*size >= repeatedWork*sizeOf(n.Types()[0]) && d.isReduced(u, size, 6)
}

// isReduced reports whether all uses of a value of the given size are reductions, directly or through at most some elementwise
// operations in a row whose other operands are read from far fewer elements.
func (d *decisions) isReduced(n *ir.Node, size, within int) bool {
	return within > 0 && len(d.uses[n.ID()]) > 0 && !slices.ContainsFunc(d.uses[n.ID()], func(u *ir.Node) bool {
		if _, reduces := u.Def().Lower.(*ir.ReduceLowering); reduces {
			return false
		}
		return !isMap(u) || sizeOf(u.Types()[0]) != size || !d.isReduced(u, size, within-1) ||
			slices.ContainsFunc(u.Inputs(), func(v ir.Value) bool { return v.Node() != n && !isExpanded(v.Node(), size, within) })
	})
}

// isExpanded reports whether a value of the given size is computed from far fewer elements, by at most some operations in a
// row.
func isExpanded(n *ir.Node, size, within int) bool {
	if smallPart*sizeOf(n.Types()[0]) <= size {
		return true
	}
	return within > 0 && isMap(n) && len(n.Inputs()) > 0 &&
		!slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool { return !isExpanded(v.Node(), size, within-1) })
}

// expandFactor is the ratio of a value's size to the size of its operands from which users read the
// operands instead.
const expandFactor = 2.5

// expands reports whether a large value is computed from much smaller ones, for example values on
// the edges of a graph from those of its nodes: a cache holds the small ones. Indices are then
// checked once, in kernels of their own.
func (d *decisions) expands(n *ir.Node) bool {
	size, read := bytesOf(n.Types()[0]), 0
	if size < d.traffic.LaunchBytes {
		return false
	}
	for _, v := range d.reads[n.ID()] {
		read += bytesOf(v.Type())
	}
	if expandFactor*float64(read) > float64(size) {
		return false
	}
	storeChecks(d, n)
	return true
}

// showsStored reports whether windows of a computed value are inlined after the value itself is stored, and stores it:
// the windows overlap, so that they take more memory.
func (d *decisions) showsStored(n *ir.Node) bool {
	if !withTensorCores || !d.options.TensorCores || n.Op() != ops.OpWindows {
		return false
	}
	views, x := []*ir.Node{n}, n.Input(0).Node()
	for ; d.virtual[x.ID()] && (isView(x) || x.Op() == ops.OpPad); x = x.Input(0).Node() {
		views = append(views, x)
	}
	if !d.virtual[x.ID()] || sizeOf(x.Types()[0]) >= sizeOf(n.Types()[0]) {
		return false
	}
	d.virtual[x.ID()] = false
	for _, v := range slices.Backward(views) {
		d.measure(v)
	}
	return d.inlines(n, d.uses[n.ID()])
}

// storeChecks stores the checked indices in a node's expression.
func storeChecks(d *decisions, n *ir.Node) {
	for _, v := range n.Inputs() {
		switch x := v.Node(); {
		case !d.virtual[x.ID()]:
		case x.Op() == ops.OpCheckIndex:
			d.virtual[x.ID()] = false
		default:
			storeChecks(d, x)
		}
	}
	d.measure(n)
}

// smallPart is the factor by which a value must be smaller than another for its memory
// traffic to be negligible.
const smallPart = 32

// sizeOf returns the number of elements of a value of type t.
func sizeOf(t ir.Type) int {
	n, _ := t.Shape.Size().Const()
	return n
}

// longTimes is the factor by which the limits of a group grow where its members pass whole arrays.
// A cut of a long elementwise chain stores each value that the other side reads, often a dozen. In
// the time of that traffic a kernel does some 2,400 operations.
const longTimes = 4

// lengthens returns the factor for the limits of m, the merge of a and b: [longTimes] where
// products use tensor cores, m is a map, and moving a value between a and b takes longer than a
// launch.
func (m *Group) lengthens(a, b *Group) int {
	p := m.partition
	if !withTensorCores || !p.options.TensorCores || m.Kind != MapKind {
		return 1
	}
	for _, k := range a.footprint.keeps {
		if bytesOf(k.v.Type()) > p.decided.traffic.LaunchBytes && b.footprint.isRead(k.v) {
			return longTimes
		}
	}
	return 1
}
