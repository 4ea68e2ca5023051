package async

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/native"
)

// Support tells what a target makes of a node, for backends that compile for it: it
// refuses element types that the target can neither compute with nor store, and that
// are no complex numbers whose parts it computes with. holder is who cannot hold
// them, such as "CUDA kernels".
func Support(n *ir.Node, t plan.Target, holder string) native.Support {
	types := n.Types()
	for _, v := range n.Inputs() {
		types = append(types[:len(types):len(types)], v.Type())
	}
	for _, x := range types {
		inParts := x.DType.IsComplex() && t.Support(x.DType.Real()) != dtype.Unsupported && passes.Pairable(n)
		if !inParts && t.Support(x.DType) == dtype.Unsupported {
			return native.Support{Level: native.Unsupported, Reason: fmt.Sprintf("%s cannot hold %s", holder, x.DType)}
		}
	}
	if n.Def().IsComposite() && !sched.HasKernels(n, t.Caps) || t.Apart(n) {
		return native.Support{Level: native.Decomposed}
	}
	return native.Support{Level: native.Native}
}
