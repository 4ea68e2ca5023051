package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// byWarps reports false: no target in a page has such kernels, which stay out of the module.
func (c *cachedAttention) byWarps(*ir.Node, loop.Caps) (ir.KernelLaunch, bool) {
	return ir.KernelLaunch{}, false
}
