package ops

import "github.com/rlx-go/rlx/ir"

// Reductions of a loss over its elements or examples.
const (
	LossMean = "mean"
	LossSum  = "sum"
	LossNone = "none"
)

// LossAttrs hold the reduction: [LossMean], [LossSum] or [LossNone].
type LossAttrs struct{ Reduction string }

// Visit shows the attributes.
func (a *LossAttrs) Visit(v ir.AttrVisitor) { v.Text("reduction", &a.Reduction) }

func (a *LossAttrs) reduction() string { return a.Reduction }

// reducing is implemented by the attributes of all losses.
type reducing interface {
	ir.Attrs
	reduction() string
}

func checkReduction(n *ir.Node) error {
	switch r := n.Attrs().(reducing).reduction(); r {
	case LossMean, LossSum, LossNone:
		return nil
	default:
		return ir.Attrf("reduction is %q, not one of %q, %q and %q", r, LossMean, LossSum, LossNone)
	}
}

// reduceLoss reduces the elementwise loss as the attributes say.
func reduceLoss(b *ir.Builder, n *ir.Node, loss ir.Value) ir.Value {
	switch n.Attrs().(reducing).reduction() {
	case LossMean:
		return Mean(b, loss)
	case LossSum:
		return ReduceSum(b, loss)
	}
	return loss
}
