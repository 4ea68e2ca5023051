package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Biases, masks and sinks of attention.
const (
	OpALiBi         ir.Op = "alibi"
	OpWindowMask    ir.Op = "window_mask"
	OpSinkAttention ir.Op = "sink_attention"
)

// ALiBiAttrs hold the shape of a bias: heads, queries and keys.
type ALiBiAttrs struct{ Shape []ir.Dim }

// Visit shows the attributes.
func (a *ALiBiAttrs) Visit(v ir.AttrVisitor) { v.Dims("shape", &a.Shape) }

// WindowMaskAttrs hold the numbers of queries and keys, and how many keys to the left and
// to the right of its own position a query attends to; a negative number is no limit.
type WindowMaskAttrs struct {
	Shape       []ir.Dim
	Left, Right int
}

// Visit shows the attributes.
func (a *WindowMaskAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("shape", &a.Shape)
	v.Int("left", &a.Left)
	v.Int("right", &a.Right)
}

const lastIsLast = " The last query has the position of the last key."

func init() {
	defineMask(OpALiBi, "The linear bias −slope·|i − j| of attention scores, f32[heads, queries, keys], for a query at i and a key at j, with the slope "+
		"2^(−8·h/n) for head h of n, from 1, where n is a power of two (Press, Smith and Lewis, Train Short, Test Long)."+lastIsLast,
		func() ir.Attrs { return &ALiBiAttrs{} }, "shape has three sizes, the first of them constant",
		func(n *ir.Node) (ir.DType, []ir.Dim, bool) {
			shape := n.Attrs().(*ALiBiAttrs).Shape
			heads := len(shape) == 3
			if heads {
				_, heads = shape[0].Const()
			}
			return ir.F32, shape, heads
		},
		func(b *ir.Builder, n *ir.Node, _ []ir.Value) []ir.Value {
			shape := n.Attrs().(*ALiBiAttrs).Shape
			heads, _ := shape[0].Const()
			slopes := table(b, ir.F32, heads, 1, 1)
			if slopes == nil {
				return []ir.Value{{}}
			}
			copy(slopes.F, alibiSlopes(heads))
			slopes.Round()
			gap := Convert(b, Abs(b, distances(b, shape[1:])), ir.F32)
			return []ir.Value{Mul(b, Neg(b, gap), Literal(b, slopes))}
		})
	defineMask(OpWindowMask, "The mask of local attention, bool[queries, keys]: true where a query at i attends to a key j, i − left ≤ j ≤ i + right. A negative bound is none."+lastIsLast,
		func() ir.Attrs { return &WindowMaskAttrs{Left: -1} }, "shape has two sizes",
		func(n *ir.Node) (ir.DType, []ir.Dim, bool) {
			shape := n.Attrs().(*WindowMaskAttrs).Shape
			return ir.Bool, shape, len(shape) == 2
		},
		func(b *ir.Builder, n *ir.Node, _ []ir.Value) []ir.Value {
			a := n.Attrs().(*WindowMaskAttrs)
			gap := distances(b, a.Shape)
			seen := Const(b, ir.Bool, 1, a.Shape...)
			if a.Left >= 0 {
				seen = And(b, seen, Ge(b, gap, ConstLike(b, gap, float64(-a.Left))))
			}
			if a.Right >= 0 {
				seen = And(b, seen, Le(b, gap, ConstLike(b, gap, float64(a.Right))))
			}
			return []ir.Value{seen}
		})
	defineComposite(composite{
		op: OpSinkAttention, operands: []string{"q", "k", "v", "sink", "mask"}, optional: 1, types: floats,
		newAttrs: func() ir.Attrs { return &AttentionAttrs{Scale: 1} },
		doc: "attention with one more score for each head, its sink, in the denominator of the softmax, so that a head need not attend to " +
			"any key (Xiao et al., Efficient Streaming Language Models).",
		constraints: []string{"q, k, v and mask are those of attention, with heads on the axis before the last two", "sink has the type of q and shape [heads of q]"},
		check: func(n *ir.Node) error {
			q, sink := n.Input(0), n.Input(3)
			if q.Rank() < 3 || !sink.Type().Equal(ir.TypeOf(q.DType(), q.Dim(-3))) {
				return ir.Shapef("a sink %s for the heads of %s", sink.Type(), q.Type())
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			out, lse := AttentionForward(b, in[0], in[1], in[2], optional(in[4:]), *n.Attrs().(*AttentionAttrs))
			// exp(lse) / (exp(lse) + exp(sink)), the share of the keys
			share := Sigmoid(b, Sub(b, lse, ExpandDims(b, wide(b, in[3]), -1)))
			return Convert(b, Mul(b, wide(b, out), ExpandDims(b, share, -1)), in[0].DType())
		},
	})
}

// defineMask defines an op without operands.
func defineMask(op ir.Op, doc string, newAttrs func() ir.Attrs, constraint string, typ func(n *ir.Node) (ir.DType, []ir.Dim, bool), body func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value) {
	define(&ir.Def{
		Op: op, Doc: doc, NewAttrs: newAttrs, Constraints: numbered(constraint),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			d, shape, ok := typ(n)
			for _, s := range shape {
				ok = ok && s.Valid()
			}
			if !ok {
				return nil, ir.Attrf("shape is %s: it must have the sizes that the constraints list, none negative", ir.Shape(shape))
			}
			return []ir.Type{{DType: d, Shape: shape}}, nil
		},
		NoGrad: "no operands", NoTranspose: "no operands",
		Body: body,
	})
}

// distances returns query position minus key position, i32[queries, keys].
func distances(b *ir.Builder, shape []ir.Dim) ir.Value {
	query, key := Iota(b, ir.I32, 0, shape...), Iota(b, ir.I32, 1, shape...)
	return Sub(b, key, Add(b, query, Sub(b, DimSize(b, ir.I32, shape[1]), DimSize(b, ir.I32, shape[0]))))
}

// alibiSlopes returns the slopes of the paper's code: for n heads, n no power of two,
// those of the next lower power of two, then every other one of the next higher power.
func alibiSlopes(heads int) []float64 {
	power := 1
	for 2*power <= heads {
		power *= 2
	}
	var out []float64
	for i := range min(heads, power) {
		out = append(out, math.Pow(2, -8*float64(i+1)/float64(power)))
	}
	for i := range heads - len(out) {
		out = append(out, math.Pow(2, -4*float64(2*i+1)/float64(power)))
	}
	return out
}

// ALiBi returns the linear bias of attention scores, f32[heads, queries, keys]: −slope·|i
// − j| for a query at i and a key at j (Press, Smith and Lewis, Train Short, Test Long).
// heads is constant; positions are aligned at the end.
func ALiBi(b *ir.Builder, heads, queries, keys ir.Dim) ir.Value {
	return b.Add1(OpALiBi, &ALiBiAttrs{[]ir.Dim{heads, queries, keys}})
}

// WindowMask returns the mask of local attention, bool[queries, keys]: true where i − left
// ≤ j ≤ i + right for a query at i and a key at j. A negative bound is none. Positions are
// aligned at the end.
func WindowMask(b *ir.Builder, queries, keys ir.Dim, left, right int) ir.Value {
	return b.Add1(OpWindowMask, &WindowMaskAttrs{[]ir.Dim{queries, keys}, left, right})
}

// SinkAttention is [Attention] with one more score for each head, sink [heads], in the
// denominator of the softmax (Xiao et al., Efficient Streaming Language Models).
func SinkAttention(b *ir.Builder, q, k, v, sink, mask ir.Value, a AttentionAttrs) ir.Value {
	a.resolve(b, OpSinkAttention, q)
	return b.Add1(OpSinkAttention, &a, given(q, k, v, sink, mask)...)
}
