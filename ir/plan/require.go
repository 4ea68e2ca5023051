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
// the target cannot compute with.
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
	switch arithmetic := d.On(dialect) == dtype.Arithmetic; {
	case !arithmetic:
		return ir.Errorf(ir.ErrUnsupported, "kernels in %s cannot compute with %s: convert first", dialect, d)
	case !c.target.Computes(d):
		return ir.Errorf(ir.ErrUnsupported, "f16 is a feature of its own, %q, that this target is not said to have", featureF16)
	case d == ir.F16 && dialect == dtype.WGSL && !slices.Contains(c.plan.Requires.Features, featureF16):
		c.plan.Requires.Features = append(c.plan.Requires.Features, featureF16)
	}
	return nil
}
