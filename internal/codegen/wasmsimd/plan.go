package wasmsimd

import (
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// Plans compiles a module ahead of time for every engine: with relaxed SIMD and
// without, to be the variants of a plan in this order. Its errors are those of
// [plan.Compile].
func Plans(m *ir.Module) ([]*plan.Plan, error) {
	var out []*plan.Plan
	for _, relaxed := range []bool{true, false} {
		p, err := plan.Compile(m, plan.WebAssembly(relaxed), Printer{Relaxed: relaxed})
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
