package clang

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	_ "github.com/rlx-go/rlx/ir/ops/samples" // of all ops
)

// opsAtOnce is the number of ops whose kernels one process compiles: it reads the headers once.
const opsAtOnce = 12

// TestOps has a compiler check the kernels of every sample of every op: those of some ops at once, and
// of kernels that differ only in numbers one. The plans are those of compile, nil for a sample that the
// target does not support; prefix begins the names of their functions.
func TestOps(t *testing.T, prefix string, compile func(op ir.Op, s ir.Sample) (*plan.Plan, error), check func(source string) error) {
	for list := range slices.Chunk(ir.Ops(), opsAtOnce) {
		t.Run(string(list[0]), func(t *testing.T) {
			t.Parallel()
			var all Batch
			for _, op := range list {
				d, _ := ir.Lookup(op)
				if d.Samples == nil {
					continue
				}
				for i, s := range d.Samples() {
					p, err := compile(op, s)
					if err != nil {
						t.Errorf("%s, sample %d: %v", op, i, err)
						continue
					}
					if p != nil {
						all.Add(fmt.Sprintf("%s_sample_%d", strings.ReplaceAll(string(op), ".", "_"), i), prefix, p)
					}
				}
			}
			if err := check(all.String()); err != nil {
				t.Error(err)
			}
		})
	}
}
