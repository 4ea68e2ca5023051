package ops

import (
	"cmp"

	"github.com/rlx-go/rlx/ir"
)

// Mixture of experts, grouped products and LoRA.
const (
	OpMoERoute      ir.Op = "moe_route"
	OpMoEDispatch   ir.Op = "moe_dispatch"
	OpMoECombine    ir.Op = "moe_combine"
	OpGroupedMatMul ir.Op = "grouped_matmul"
	OpLoRAMatMul    ir.Op = "lora_matmul"
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
		check: func(n *ir.Node) error {
			a, x := n.Attrs().(*MoERouteAttrs), n.Input(0)
			dims, ok := x.Shape().Ints()
			if !ok || len(dims) != 2 {
				return ir.Shapef("logits are %s, not [tokens, experts]", x.Type())
			}
			if a.K < 1 || a.K > dims[1] || a.Capacity < 0 {
				return ir.Attrf("k is %d, not in [1, %d], the experts, or capacity, %d, is negative", a.K, dims[1], a.Capacity)
			}
			return nil
		},
		bodies: moeRoute,
	})
	defineComposite(composite{
		op: OpMoEDispatch, operands: []string{"x", "slots"}, types: floats, newAttrs: func() ir.Attrs { return &RowsAttrs{} },
		doc:         "Scatters each row of x, [tokens, d], to its slots, i32[tokens, k], which are distinct: [rows, d]. Slots of −1 are dropped; rows without a slot are 0.",
		constraints: []string{"x and slots are matrices with the same number of rows", "slots is i32"},
		check:       func(n *ir.Node) error { return checkSlots(n.Input(0), n.Input(1)) },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			x, slots, rows := in[0], in[1], n.Attrs().(*RowsAttrs).Rows
			tokens := Iota(b, ir.I32, 0, slots.Shape()...)
			at := IndexedAxes{Axes: []int{0}, Unique: true}
			source := Scatter(b, Const(b, ir.I32, -1, rows), ExpandDims(b, slots, -1), tokens, ScatterAttrs{at})
			return Take(b, x, source, 0, OutsideFill)
		},
	})
	defineComposite(composite{
		op: OpMoECombine, operands: []string{"y", "weights", "slots"}, types: floats,
		doc:         "The weighted sum of each token's rows: Σⱼ weights[t, j]·y[slots[t, j]] for y [rows, d] and slots i32[tokens, k]: [tokens, d]. A slot of −1 contributes 0.",
		constraints: []string{"y is a matrix, weights and slots have one shape, slots is i32", "y and weights have one element type"},
		check: func(n *ir.Node) error {
			y, w, slots := n.Input(0), n.Input(1), n.Input(2)
			if y.DType() != w.DType() {
				return ir.DTypef("y is %s, weights are %s", y.Type(), w.Type())
			}
			if y.Rank() != 2 {
				return ir.Shapef("y is %s, no matrix", y.Type())
			}
			if !w.Shape().Equal(slots.Shape()) {
				return ir.Shapef("weights are %s, slots %s", w.Shape(), slots.Shape())
			}
			return checkSlots(w, slots)
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			rows := wide(b, Take(b, in[0], in[2], 0, OutsideFill))
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

func checkSlots(x, slots ir.Value) error {
	if slots.DType() != ir.I32 {
		return ir.DTypef("slots are %s, not i32", slots.Type())
	}
	if x.Rank() != 2 || slots.Rank() != 2 || x.Dim(0) != slots.Dim(0) {
		return ir.Shapef("slots %s for %s", slots.Shape(), x.Shape())
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
// weights.
func MoECombine(b *ir.Builder, y, weights, slots ir.Value) ir.Value {
	return b.Add1(OpMoECombine, nil, y, weights, slots)
}

// LoRAMatMul returns x·w + scale·(x·down)·up for x [..., m], w [m, n], down [m, r] and up
// [r, n], of one float type (Hu et al., LoRA).
func LoRAMatMul(b *ir.Builder, x, w, down, up ir.Value, scale float64) ir.Value {
	return b.Add1(OpLoRAMatMul, &ScaleAttrs{scale}, x, w, down, up)
}
