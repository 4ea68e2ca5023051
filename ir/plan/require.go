package plan

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// featureF16 is WebGPU's name for kernels that compute in f16.
const featureF16 = "shader-f16"

// require notes what a device must have to run a graph. The error is of kind
// [ir.ErrUnsupported] and names the first node with elements that kernels of
// the target can neither compute with nor store.
func (c *compiler) require(g *ir.Graph) error {
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if err := c.requireType(t.DType); err != nil {
				return n.Fail(err)
			}
		}
		for _, sub := range n.Subgraphs() {
			if err := c.require(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) requireType(d ir.DType) error {
	dialect := c.target.Dialect
	switch c.target.Support(d) {
	case dtype.Unsupported:
		return ir.Errorf(ir.ErrUnsupported, "kernels in %s cannot hold %s: convert first", dialect, d)
	case dtype.Storage:
		return nil
	}
	if features := &c.plan.Requires.Features; d == ir.F16 && dialect == dtype.WGSL && !slices.Contains(*features, featureF16) {
		*features = append(*features, featureF16)
	}
	return nil
}
