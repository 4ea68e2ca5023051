package report

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// OnTarget returns how the plans of a target compute a node. It refuses element types that the target
// can neither compute with nor store, except complex types that are lowered to pairs of reals. Reasons
// begin with holder, such as "CUDA kernels".
func OnTarget(n *ir.Node, t plan.Target, holder string) Support {
	for _, x := range slices.Concat(n.Types(), n.InTypes()) {
		inParts := x.DType.IsComplex() && t.Support(x.DType.Real()) != dtype.Unsupported && passes.HasComplexRule(n)
		if !inParts && t.Support(x.DType) == dtype.Unsupported {
			return Support{Unsupported, format.Sprintf("%s cannot hold %s", holder, x.DType)}
		}
	}
	if n.Def().IsComposite() && !sched.HasKernels(n, t.Caps) || t.DecomposesScan(n) {
		return Support{Level: Decomposed}
	}
	return Support{Level: Native}
}
