//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/loop"
)

// constants returns, for each kernel of a plan, the compiler's options for its constant arrays: those
// that no step of a run writes. Loads of others must stay behind the kernel's wait for the kernels
// before it. Entries that are not ordered by dependencies are left out, as their kernels start in turn.
func constants(p *plan.Plan) [][]string {
	written := make([][]bool, len(p.Kernels))
	for i, k := range p.Kernels {
		written[i] = make([]bool, len(k.Storage))
	}
	for i := range p.Entries {
		if e := &p.Entries[i]; orders(e) {
			noteWritten(p, slices.Collect(plan.Each(e.Steps)), written)
		}
	}
	out := make([][]string, len(p.Kernels))
	for i, k := range p.Kernels {
		for a, access := range k.Storage {
			if access == loop.Read && !written[i][a] && cudacpp.Waits(k.Source) {
				out[i] = append(out[i], cudacpp.Constant(a))
			}
		}
	}
	return out
}

// noteWritten notes, for each kernel, the arrays in memory that one of the steps writes.
func noteWritten(p *plan.Plan, steps []plan.Step, written [][]bool) {
	stores := map[int][]region{} // by buffer
	for _, s := range steps {
		for _, r := range regionsOf(p, s) {
			if r.access != loop.Read {
				stores[r.buffer] = append(stores[r.buffer], r)
			}
		}
	}
	for _, s := range steps {
		d, is := s.(*plan.Dispatch)
		if !is {
			continue
		}
		for a, r := range regionsOf(p, d) {
			if slices.ContainsFunc(stores[r.buffer], r.overlaps) {
				written[d.Kernel][a] = true
			}
		}
	}
}
