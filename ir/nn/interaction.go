package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// DotInteraction returns the products of all pairs of features of x, [..., n, width], as the layer between the embeddings and
// the MLP of a recommender has them: [..., n·(n−1)/2], those of feature 1 with 0, of 2 with 0 and 1, and so on (Naumov et
// al., Deep Learning Recommendation Model). Features are embeddings of one width, such as
//
//	x := ops.Stack(b, 1, dense, nn.EmbeddingBag(b, genres, 20, 16), nn.Embedding(b, user, 1000, 16))
//
// Errors are recorded in b: of kind [ir.ErrShape] for x of rank below 2 or with fewer than 2 features, and
// [ir.ErrSymbol] if n is symbolic.
func DotInteraction(b *ir.Builder, x ir.Value) ir.Value {
	if !b.Require("nn.dot_interaction", "input", x.Valid()) {
		return ir.Value{}
	}
	l := &layer{b, "dot_interaction", x}
	if !l.rank(2, "[..., features, width]") {
		return ir.Value{}
	}
	n := l.size(-2)
	if b.Err() == nil && n < 2 {
		l.fail(ir.Shapef("x is %s: it must have two features or more", x.Type()))
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	var below []int64 // the places of the pairs in the matrix of all products
	for i := range int64(n) {
		for j := range i {
			below = append(below, i*int64(n)+j)
		}
	}
	all := ops.MatMul(b, x, ops.SwapAxes(b, x, -2, -1))
	lead := all.Shape()[:all.Rank()-2].Clone()
	flat := ops.Reshape(b, all, append(lead, ir.N(n*n))...)
	return ops.Take(b, flat, ops.Literal(b, ir.Ints(ir.I32, below, len(below))), -1, ops.OutsideClip)
}
