package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// nthOrder is [NthOrder] without the check of the port's rank. It repeats JVP: Taylor series would
// add 8 KB to the compressed module and are faster only from the fourth order on.
func nthOrder(g *ir.Graph, output, wrt string, n int) (*ir.Graph, error) {
	return repeatedJVP(g, output, wrt, n, func(b *ir.Builder, _ int, x ir.Value) ir.Value { return ops.OnesLike(b, x) })
}
