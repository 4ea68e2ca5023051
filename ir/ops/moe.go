package ops

import (
	"cmp"

	"github.com/rlx-go/rlx/ir"
)

// Mixture of experts, grouped products and LoRA.
const (
	OpMoERoute               ir.Op = "moe_route"
	OpMoEDispatch            ir.Op = "moe_dispatch"
	OpMoECombine             ir.Op = "moe_combine"
	OpGroupedMatMul          ir.Op = "grouped_matmul"
	OpQuantizedGroupedMatMul ir.Op = "quantized_grouped_matmul"
	OpLoRAMatMul             ir.Op = "lora_matmul"
)

// MoERouteAttrs hold the number of experts of each token (0: one), the capacity of an
// expert in tokens (0: all), and whether the weights of a token are normalised to sum to
// 1.
type MoERouteAttrs struct {
	K, Capacity int
	Normalize   bool
}

// Visit shows the attributes.
func (a *MoERouteAttrs) Visit(v ir.AttrVisitor) {
	v.Int("k", &a.K)
	v.Int("capacity", &a.Capacity)
	v.Bool("normalize", &a.Normalize)
}

// RowsAttrs hold the number of rows of a result.
type RowsAttrs struct{ Rows ir.Dim }

// Visit shows the attributes.
func (a *RowsAttrs) Visit(v ir.AttrVisitor) { visitDim(v, "rows", &a.Rows) }

func init() {
	defineComposite(composite{
		op: OpMoERoute, operands: []string{"logits"}, types: floats, newAttrs: func() ir.Attrs { return &MoERouteAttrs{K: 1} },
		doc: "Top-k routing: the k experts with the largest logits, [tokens, experts], of each token. Results are their softmax weights, [tokens, k]; the " +
			"experts, i32[tokens, k]; the slot of each, i32[tokens, k], which is expert·capacity plus its position in the expert's queue, all first " +
			"choices before all second ones, or −1 past the capacity; and the load-balancing loss experts·Σₑ fₑ·pₑ, fₑ being the fraction of choices and pₑ the mean probability of expert e " +
			"(Fedus, Zoph and Shazeer, Switch Transformers); fₑ counts all k choices.",
		constraints: []string{"logits are a matrix, its sizes constant", "k is from 1 to the number of experts, capacity is not negative"},
		check:       checkRoute,
		bodies:      moeRoute,
	})
	defineComposite(composite{
		op: OpMoEDispatch, operands: []string{"x", "slots"}, types: floats, newAttrs: func() ir.Attrs { return &RowsAttrs{} },
		doc:         "Scatters each row of x, [tokens, d], to its slots, i32[tokens, k], which are distinct: [rows, d]. Slots of −1 are dropped; rows without a slot are 0.",
		constraints: []string{"x and slots are matrices with the same number of rows", "slots is i32"},
		check:       func(n *ir.Node) error { return checkSlots(n.Input(0), n.Input(1)) },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			x, slots, rows := in[0], in[1], n.Attrs().(*RowsAttrs).Rows
			// A row of x for each choice: each is taken once, so that the derivative needs no sort.
			choices := slots.Shape().Size()
			number := Reshape(b, Iota(b, ir.I32, 0, choices), slots.Shape()...)
			each := BroadcastTo(b, ExpandDims(b, x, 1), ir.Shape{x.Dim(0), slots.Dim(1), x.Dim(1)})
			at := IndexedAxes{Axes: []int{0}, Unique: true}
			source := Scatter(b, Const(b, ir.I32, -1, rows), ExpandDims(b, slots, -1), number, ScatterAttrs{at})
			return Gather(b, Reshape(b, each, choices, x.Dim(1)), ExpandDims(b, source, -1), GatherAttrs{IndexedAxes: at})
		},
	})
	defineComposite(composite{
		op: OpMoECombine, operands: []string{"y", "weights", "slots"}, types: floats,
		doc:         "The weighted sum of each token's rows: Σⱼ weights[t, j]·y[slots[t, j]] for y [rows, d] and slots i32[tokens, k], which are distinct: [tokens, d]. A slot of −1 contributes 0.",
		constraints: []string{"y is a matrix, weights and slots have one shape, slots is i32", "y and weights have one element type", "no two slots but those of −1 are equal"},
		check:       checkCombine,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			at := IndexedAxes{Axes: []int{0}, Unique: true}
			rows := wide(b, Gather(b, in[0], ExpandDims(b, in[2], -1), GatherAttrs{IndexedAxes: at}))
			return Convert(b, ReduceSum(b, Mul(b, rows, ExpandDims(b, wide(b, in[1]), -1)), 1), in[0].DType())
		},
	})
	defineGroupedMatMul()
	defineComposite(composite{
		op: OpLoRAMatMul, operands: []string{"x", "w", "a", "b"}, types: floats, newAttrs: func() ir.Attrs { return &ScaleAttrs{1} },
		doc:         "x·w + scale·(x·a)·b for x [..., m], w [m, n], a [m, r] and b [r, n] (Hu et al., LoRA).",
		constraints: []string{"all operands have one element type and the shapes stated"},
		check:       oneDType,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			low := MatMul(b, MatMul(b, in[0], in[2]), in[3])
			return Add(b, MatMul(b, in[0], in[1]), Mul(b, low, ConstLike(b, low, n.Attrs().(*ScaleAttrs).Scale)))
		},
	})
}

func checkRoute(n *ir.Node) error {
	a, x := n.Attrs().(*MoERouteAttrs), n.Input(0)
	dims, ok := x.Shape().Ints()
	if !ok || len(dims) != 2 {
		return ir.Shapef("logits are %s, not [tokens, experts]", x.Type())
	}
	if a.K < 1 || a.K > dims[1] || a.Capacity < 0 {
		return ir.Attrf("k is %d, not in [1, %d], the experts, or capacity, %d, is negative", a.K, dims[1], a.Capacity)
	}
	return nil
}

func checkCombine(n *ir.Node) error {
	y, w, slots := n.Input(0), n.Input(1), n.Input(2)
	if y.DType() != w.DType() {
		return ir.DTypef("weights are %s, not of the element type of y, %s", w.Type(), y.Type())
	}
	if y.Rank() != 2 {
		return ir.Shapef("y is %s, not of rank 2", y.Type())
	}
	if !w.Shape().Equal(slots.Shape()) {
		return ir.Shapef("weights are %s, not %s as slots are", w.Shape(), slots.Shape())
	}
	return checkSlots(w, slots)
}

func checkSlots(x, slots ir.Value) error {
	if slots.DType() != ir.I32 {
		return ir.DTypef("slots are %s, not i32", slots.Type())
	}
	if x.Rank() != 2 || slots.Rank() != 2 || x.Dim(0) != slots.Dim(0) {
		return ir.Shapef("slots are %s, not [%s, k], for rows of %s", slots.Shape(), x.Dim(0), x.Shape())
	}
	return nil
}

func moeRoute(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a, d := n.Attrs().(*MoERouteAttrs), in[0].DType()
	tokens, experts := in[0].Dim(0), in[0].Dim(1)
	p := Softmax(b, wide(b, in[0]), 1)
	weights, chosen := TopK(b, p, TopKAttrs{K: a.K, Axis: 1})
	// choices in queue order: all first choices, then all second ones
	order := Reshape(b, Transpose(b, chosen, 1, 0), chosen.Shape().Size())
	hits := Convert(b, OneHot(b, order, experts, ir.Bool), ir.I32)
	before := ReduceSum(b, Mul(b, hits, CumSum(b, hits, CumSumAttrs{Axis: 0, Exclusive: true})), 1)
	capacity := DimSize(b, ir.I32, tokens)
	if a.Capacity > 0 {
		capacity = Const(b, ir.I32, float64(a.Capacity))
	}
	slot := Add(b, Mul(b, order, capacity), before)
	slot = Select(b, Lt(b, before, capacity), slot, ConstLike(b, slot, -1))
	slots := Transpose(b, Reshape(b, slot, ir.N(a.K), tokens), 1, 0)

	count := DimSize(b, p.DType(), tokens)
	share := Div(b, Convert(b, ReduceSum(b, hits, 0), p.DType()), count)
	loss := Mul(b, ReduceSum(b, Mul(b, share, Mean(b, p, 0))), DimSize(b, p.DType(), experts))
	if a.Normalize {
		weights = Div(b, weights, KeepDims(b, ReduceSum, weights, 1))
	}
	return []ir.Value{Convert(b, weights, d), chosen, slots, Convert(b, loss, d)}
}

// MoERoute routes tokens by logits [tokens, experts]: it returns the softmax weights and
// the indices of the a.K experts of each token, [tokens, a.K], their slots, i32[tokens,
// a.K], and the load-balancing loss, of rank 0 (Fedus, Zoph and Shazeer, Switch
// Transformers).
func MoERoute(b *ir.Builder, logits ir.Value, a MoERouteAttrs) (weights, experts, slots, loss ir.Value) {
	a.K = cmp.Or(a.K, 1)
	out := several(4, b.Add(OpMoERoute, &a, logits))
	return out[0], out[1], out[2], out[3]
}

// MoEDispatch scatters the rows of x to their slots in a matrix of the given number of
// rows, experts·capacity for the slots of [MoERoute].
func MoEDispatch(b *ir.Builder, x, slots ir.Value, rows ir.Dim) ir.Value {
	return b.Add1(OpMoEDispatch, &RowsAttrs{rows}, x, slots)
}

// MoECombine returns for each token the sum of the rows of y at its slots times their
// weights. Slots are distinct but for those of −1, which contribute 0; otherwise derivatives
// are wrong.
func MoECombine(b *ir.Builder, y, weights, slots ir.Value) ir.Value {
	return b.Add1(OpMoECombine, nil, y, weights, slots)
}

// LoRAMatMul returns x·w + scale·(x·down)·up for x [..., m], w [m, n], down [m, r] and up
// [r, n], of one float type (Hu et al., LoRA).
func LoRAMatMul(b *ir.Builder, x, w, down, up ir.Value, scale float64) ir.Value {
	return b.Add1(OpLoRAMatMul, &ScaleAttrs{scale}, x, w, down, up)
}

// GroupedAttrs hold the number of rows of a block.
type GroupedAttrs struct{ Block int }

// Visit shows the attributes.
func (a *GroupedAttrs) Visit(v ir.AttrVisitor) { v.Int("block", &a.Block) }

// groupedBlock is the default number of rows of a block.
const groupedBlock = 32

// Products with packed matrices of up to fewRows rows, and of blocks from a mean of twice blockRows rows a group on, are computed one after
// the other, by quantized_matmul: its kernel of one row loads whole words, and in half precision it unpacks a matrix for a block. Blocks have
// about the mean: half as many take 8 % longer in a prompt of eight experts (H200).
const (
	fewRows   = 16
	blockRows = 64
)

func defineGroupedMatMul() {
	const sortedDoc = "Rows are sorted by group into blocks of one group each, with at most one partial block for each group; where there are few rows, each reads the " +
		"matrix of its group. A group out of range gives 0."
	defineComposite(composite{
		op: OpGroupedMatMul, operands: []string{"x", "w", "groups"}, types: floats, newAttrs: func() ir.Attrs { return &GroupedAttrs{groupedBlock} },
		doc:         "The grouped matrix product: row i of x, [m, k], times w[groups[i]] of [g, k, n]: [m, n]. " + sortedDoc,
		constraints: []string{"x and w have one element type and the shapes stated, constant", "groups is i32[m]", "block is positive"},
		check: func(n *ir.Node) error {
			x, w := n.Input(0), n.Input(1)
			switch {
			case x.DType() != w.DType():
				return ir.DTypef("x is %s, w is %s", x.Type(), w.Type())
			case x.Rank() != 2 || w.Rank() != 3 || x.Dim(1) != w.Dim(1):
				return ir.Shapef("x is %s and w %s, not [m, k] and [g, k, n]", x.Shape(), w.Shape())
			case n.Attrs().(*GroupedAttrs).Block < 1:
				return ir.Attrf("block is %d, less than 1", n.Attrs().(*GroupedAttrs).Block)
			}
			return checkGroups(n)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return grouped{x: in[0], w: in[1], groups: in[2], contract: 1, numbers: func(b *ir.Builder, w ir.Value) ir.Value { return w }}.product(b, n.Attrs().(*GroupedAttrs).Block)
		},
	})
	defineComposite(composite{
		op: OpQuantizedGroupedMatMul, operands: []string{"x", "w", "groups"}, types: floats, routine: true, newAttrs: func() ir.Attrs { return &PackedProductAttrs{PackedAttrs: PackedAttrs{DType: ir.F32}} },
		doc: "The grouped matrix product with packed weights: row i of x, [m, k], times the transpose of w[groups[i]], of w [g, n, bytes], the rows of which are packed in " +
			"blocks as those of quantized_matmul, which rounds x as activation_bits say: [m, n]. " + sortedDoc + " It is differentiable by x.",
		constraints: []string{"w " + packedRowsDoc, packedFormatDoc + ", that in which products are summed up if it is wider than f16", "x is a matrix, sizes are constant", "groups is i32[m]", activationBitsDoc},
		check: func(n *ir.Node) error {
			x, w := n.Input(0), n.Input(1)
			size, err := n.Attrs().(*PackedProductAttrs).rowSize(w.Type())
			switch {
			case err != nil:
				return err
			case x.Rank() != 2 || w.Rank() != 3 || x.Dim(1) != size:
				return ir.Shapef("x is %s and w %s with rows of %s elements, not [m, k] and [g, n, bytes of k]", x.Shape(), w.Shape(), size)
			}
			return checkGroups(n)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*PackedProductAttrs)
			if a.ActivationBits != 0 {
				return a.ofRounded(b, n.Op(), in)
			}
			unpacked := func(b *ir.Builder, w ir.Value) ir.Value { return Convert(b, unpack(b, a.Format, w), a.DType) }
			p := grouped{x: Convert(b, in[0], a.DType), w: in[1], groups: in[2], contract: 2, numbers: unpacked}
			p.one = func(b *ir.Builder, x, w ir.Value) ir.Value { return b.Add1(OpQuantizedMatMul, a, x, w) }
			y := p.product(b, groupedBlock)
			return Convert(b, y, in[0].DType())
		},
	})
}

// checkGroups checks what grouped products have in common.
func checkGroups(n *ir.Node) error {
	x, w, groups := n.Input(0), n.Input(1), n.Input(2)
	_, known := x.Shape().Ints()
	if _, also := w.Shape().Ints(); !known || !also {
		return ir.Shapef("x is %s and w %s: their sizes must be constant", x.Shape(), w.Shape())
	}
	if want := ir.TypeOf(ir.I32, x.Dim(0)); !groups.Type().Equal(want) {
		return ir.Shapef("groups are %s, not %s", groups.Type(), want)
	}
	return nil
}

// grouped is a product of rows, x [m, k], each with the matrix of its group. numbers returns matrices that were taken of w as
// numbers, which are summed up along an axis of them, contract.
type grouped struct {
	x, w, groups ir.Value
	contract     int
	numbers      func(b *ir.Builder, w ir.Value) ir.Value
	one          func(b *ir.Builder, x, w ir.Value) ir.Value // if not nil, the product of rows with one matrix of w
}

// columns is the axis of w with the columns of the result.
func (p grouped) columns() int { return 3 - p.contract }

// product returns the product, [m, n]. Blocks read and write the matrix of each group, also of those that have no row, before they are
// multiplied with; up to two rows a group, each reads its own instead.
func (p grouped) product(b *ir.Builder, block int) ir.Value {
	m, _ := p.x.Dim(0).Const()
	g, _ := p.w.Dim(0).Const()
	switch {
	case m == 0 || g == 0:
		return Zeros(b, p.x.DType(), p.x.Dim(0), p.w.Dim(p.columns()))
	case m <= 2*g && p.one != nil && m <= fewRows:
		return p.oneByOne(b)
	case m <= 2*g:
		return p.byRow(b)
	case p.one != nil && m >= 2*blockRows*g:
		block = m / g &^ (blockRows - 1)
	default:
		p.one = nil
	}
	return p.byBlock(b, m/block+g, block)
}

// oneByOne multiplies one row after the other.
func (p grouped) oneByOne(b *ir.Builder) ir.Value {
	y := Reshape(b, p.inLoop(b, ExpandDims(b, p.x, 1), p.groups), p.x.Dim(0), p.w.Dim(p.columns()))
	inside := Lt(b, Bitcast(b, p.groups, ir.U32), DimSize(b, ir.U32, p.w.Dim(0))) // negative numbers are large ones
	return Select(b, BroadcastTo(b, ExpandDims(b, inside, 1), y.Shape()), y, ZerosLike(b, y))
}

// inLoop multiplies one block of rows after the other with the matrix of its owner, the nearest if that is out of range.
func (p grouped) inLoop(b *ir.Builder, blocks, owner ir.Value) ir.Value {
	_, ys := Scan(b, Loop{Consts: []ir.Value{p.w}, Xs: []ir.Value{blocks, owner}, Body: func(b *ir.Builder, consts, _, xs []ir.Value) (next, ys []ir.Value) {
		return nil, []ir.Value{p.one(b, xs[0], Take(b, consts[0], xs[1], 0, OutsideClip))}
	}})
	return several(1, ys)[0]
}

// byRow reduces the products of each row with the elements of its matrix, which are read in place.
func (p grouped) byRow(b *ir.Builder) ir.Value {
	w := p.numbers(b, Take(b, p.w, p.groups, 0, OutsideFill))
	products := Mul(b, wide(b, ExpandDims(b, p.x, p.columns())), wide(b, w))
	return Convert(b, ReduceSum(b, products, p.contract), p.x.DType())
}

// byBlock assigns every row a slot in a sequence of blocks; each group starts a new block.
func (p grouped) byBlock(b *ir.Builder, blocks, block int) ir.Value {
	g := p.w.Dim(0)
	size := Const(b, ir.I32, float64(block))
	hits := Convert(b, OneHot(b, p.groups, g, ir.Bool), ir.I32)
	filled := Div(b, Add(b, ReduceSum(b, hits, 0), Sub(b, size, OnesLike(b, size))), size) // blocks of each group
	ends := CumSum(b, filled, CumSumAttrs{})
	first := Mul(b, Sub(b, ends, filled), size)
	among := CumSum(b, hits, CumSumAttrs{Axis: 0, Exclusive: true})
	place := ReduceSum(b, Mul(b, hits, Add(b, among, first)), 1)
	outside := Eq(b, ReduceSum(b, hits, 1), Const(b, ir.I32, 0))
	place = Select(b, outside, ConstLike(b, place, -1), place)

	at := IndexedAxes{Axes: []int{0}, Unique: true}
	source := Scatter(b, Const(b, ir.I32, -1, ir.N(blocks*block)), ExpandDims(b, place, -1), Iota(b, ir.I32, 0, p.x.Dim(0)), ScatterAttrs{at})
	rows := Gather(b, p.x, ExpandDims(b, source, -1), GatherAttrs{IndexedAxes: at})
	number := Iota(b, ir.I32, 0, ir.N(blocks), ir.N(1))
	owner := ReduceSum(b, Convert(b, Le(b, ends, number), ir.I32), 1) // groups that end before the block
	rows = Reshape(b, rows, ir.N(blocks), ir.N(block), p.x.Dim(1))
	if p.one != nil {
		rows = p.inLoop(b, rows, owner)
	} else {
		rows = DotGeneral(b, rows, p.numbers(b, Take(b, p.w, owner, 0, OutsideFill)),
			DotAttrs{LhsContract: []int{2}, RhsContract: []int{p.contract}, LhsBatch: []int{0}, RhsBatch: []int{0}})
	}
	return Gather(b, Reshape(b, rows, ir.N(blocks*block), p.w.Dim(p.columns())), ExpandDims(b, place, -1), GatherAttrs{IndexedAxes: at})
}

// GroupedMatMul returns row i of x, [m, k], times w[groups[i]] of [g, k, n]: [m, n].
// groups is i32[m]; a group out of range gives 0.
func GroupedMatMul(b *ir.Builder, x, w, groups ir.Value) ir.Value {
	return b.Add1(OpGroupedMatMul, &GroupedAttrs{groupedBlock}, x, w, groups)
}

// QuantizedGroupedMatMul is [GroupedMatMul] with the matrices of groups packed in a format, w [g, n, bytes], as [QuantizedMatMul] has
// one: row i of x, [m, k], times w[groups[i]]ᵀ. Products accumulate in f32.
func QuantizedGroupedMatMul(b *ir.Builder, x, w, groups ir.Value, format string) ir.Value {
	return b.Add1(OpQuantizedGroupedMatMul, &PackedProductAttrs{PackedAttrs: PackedAttrs{format, ir.F32}}, x, w, groups)
}

// QuantizedGroupedMatMul8 is [QuantizedGroupedMatMul] with x rounded to 8 bits, as [QuantizedMatMul8] has it.
func QuantizedGroupedMatMul8(b *ir.Builder, x, w, groups ir.Value, format string) ir.Value {
	return b.Add1(OpQuantizedGroupedMatMul, &PackedProductAttrs{PackedAttrs{format, ir.F32}, activationBits}, x, w, groups)
}
