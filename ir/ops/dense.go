package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Linear layers and embeddings.
const (
	OpLinear    ir.Op = "linear"
	OpEmbedding ir.Op = "embedding"
)

// EmbeddingAttrs are those of embedding.
type EmbeddingAttrs struct {
	// Unordered lets the gradient of the table accumulate in any order: see
	// [IndexedAxes.Unordered].
	Unordered bool
}

// Visit shows the attributes.
func (a *EmbeddingAttrs) Visit(v ir.AttrVisitor) { v.Bool("unordered", &a.Unordered) }

func init() {
	define(&ir.Def{
		Op:  OpLinear,
		Doc: "x·weight + bias over the last axis of x.",
		Constraints: numbered(
			"all operands have one float type; x has rank 1 or more",
			"weight has the shape [in, out], where in is the size of the last axis of x",
			"bias, which may be left out, has the shape [out]",
		),
		Operands: []string{"x", "weight", "bias"}, Optional: 1,
		Infer: inferLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{addBias(b, MatMul(b, in[0], in[1]), in[2:])}
		},
	})
	define(&ir.Def{
		Op: OpEmbedding,
		Doc: "The rows of a table at the given indices. An index outside the table is an error when the graph runs. " +
			"With unordered the gradient of the table may accumulate f32 in any order: faster, but not deterministic.",
		Constraints: numbered(
			"table has rank 2, ids are integers",
			"the result has the axes of ids and then the second axis of the table",
		),
		Operands: []string{"table", "ids"},
		NewAttrs: func() ir.Attrs { return &EmbeddingAttrs{} },
		Infer:    inferEmbedding,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			ids := CheckIndex(b, in[1], in[0].Dim(0), "embedding index")
			a := IndexedAxes{Outside: OutsideClip, Unordered: n.Attrs().(*EmbeddingAttrs).Unordered}
			return []ir.Value{take(b, in[0], ids, 0, a)}
		},
	})
}

// Linear returns x·weight + bias for x [..., in], weight [in, out] and bias [out], of one
// float type: [..., out]. The bias may be left out (the zero Value). PyTorch's weights are
// the transpose, [out, in].
func Linear(b *ir.Builder, x, weight, bias ir.Value) ir.Value {
	return b.Add1(OpLinear, nil, given(x, weight, bias)...)
}

// Embedding returns the rows of table, [rows, width], at integer ids [...]: [..., width].
// An id outside [0, rows) is an error of kind [ir.ErrIndex] when the graph runs.
func Embedding(b *ir.Builder, table, ids ir.Value) ir.Value {
	return b.Add1(OpEmbedding, &EmbeddingAttrs{}, table, ids)
}

// EmbeddingUnordered is [Embedding] with a gradient that may accumulate in any order: see
// [IndexedAxes.Unordered].
func EmbeddingUnordered(b *ir.Builder, table, ids ir.Value) ir.Value {
	return b.Add1(OpEmbedding, &EmbeddingAttrs{Unordered: true}, table, ids)
}

// given drops the last operand if it is the zero Value.
func given(in ...ir.Value) []ir.Value {
	if last := len(in) - 1; !in[last].Valid() {
		return in[:last]
	}
	return in
}

// addBias adds the bias, [last axis of x], if there is one.
func addBias(b *ir.Builder, x ir.Value, bias []ir.Value) ir.Value {
	if len(bias) == 0 {
		return x
	}
	return Add(b, x, bias[0])
}

// checkBias reports an error unless the operands have one type and the optional bias is a
// vector of the given size.
func checkBias(n *ir.Node, size ir.Dim) error {
	if len(n.Inputs()) < 3 {
		return nil
	}
	if want := ir.TypeOf(n.Input(0).DType(), size); !n.Input(2).Type().Equal(want) {
		return ir.Shapef("the bias is %s, not %s", n.Input(2).Type(), want)
	}
	return nil
}

func inferLinear(n *ir.Node) ([]ir.Type, error) {
	x, w := n.Input(0).Type(), n.Input(1).Type()
	if err := floats.check(x.DType); err != nil {
		return nil, err
	}
	if w.DType != x.DType {
		return nil, ir.DTypef("weight is %s, not of the element type of x, %s", w, x)
	}
	rank := len(x.Shape)
	if rank == 0 || len(w.Shape) != 2 {
		return nil, ir.Shapef("x of rank %d and a weight of rank %d, which must be 2", rank, len(w.Shape))
	}
	if x.Shape[rank-1] != w.Shape[0] {
		return nil, ir.Shapef("x has %s features, the weight takes %s", x.Shape[rank-1], w.Shape[0])
	}
	if err := checkBias(n, w.Shape[1]); err != nil {
		return nil, err
	}
	return []ir.Type{{DType: x.DType, Shape: slices.Concat(x.Shape[:rank-1], w.Shape[1:])}}, nil
}

func inferEmbedding(n *ir.Node) ([]ir.Type, error) {
	table, ids := n.Input(0).Type(), n.Input(1).Type()
	if err := integers.checkOperand(n, 1); err != nil {
		return nil, err
	}
	if len(table.Shape) != 2 {
		return nil, ir.Shapef("the table is %s, not of rank 2", table)
	}
	return []ir.Type{{DType: table.DType, Shape: slices.Concat(ids.Shape, table.Shape[1:])}}, nil
}
