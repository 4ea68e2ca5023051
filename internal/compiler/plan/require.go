package plan

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// WebGPU's names for what kernels need besides: to compute in f16, to have the threads of
// a subgroup meet, to have a subgroup be of one size and full, and to multiply in
// fragments, which is an experiment of Chromium's.
const (
	featureF16          = "shader-f16"
	featureSubgroups    = "subgroups"
	featureSubgroupSize = "subgroup-size-control"
	featureMatrices     = "chromium-experimental-subgroup-matrix"
)

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
	if d == ir.F16 && dialect == dtype.WGSL {
		c.requireFeatures(featureF16)
	}
	return nil
}

// requireSubgroups notes what a kernel needs of a WebGPU device for its subgroups.
func (c *compiler) requireSubgroups(k *loop.Kernel) {
	if c.target.Dialect == dtype.WGSL && k.Subgroup != [2]int{} {
		c.requireFeatures(featureSubgroups, featureSubgroupSize)
		c.plan.Requires.Subgroup = k.Subgroup
		if k.HasFragments() {
			c.requireFeatures(featureMatrices)
		}
	}
}

func (c *compiler) requireFeatures(names ...string) {
	for _, name := range names {
		if features := &c.plan.Requires.Features; !slices.Contains(*features, name) {
			*features = append(*features, name)
		}
	}
}
