package wasmsimd_test

import (
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestManyPartsAreSeveralKernels has more small maps than one function holds: engines take long for long
// functions, and refuse those of over 7 MB, as the updates of a network of many small parameters were.
func TestManyPartsAreSeveralKernels(t *testing.T) {
	const parts = 300
	g, err := ir.Build("run", func(b *ir.Builder) {
		for i := range parts {
			b.Output("y"+strconv.Itoa(i), ops.Exp(b, b.Input("x"+strconv.Itoa(i), ir.F32, ir.N(i%40+1))))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(&ir.Module{Entries: []ir.Entry{{Name: "run", Graph: g}}}, plan.WebAssembly(true), wasmsimd.Printer{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Entries[0].Dispatches(); n < 3 || n > 6 {
		t.Errorf("%d kernels of %d parts", n, parts)
	}
}
