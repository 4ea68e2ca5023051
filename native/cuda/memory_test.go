//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// TestProgramAllocatesTheMemoryOfItsPlan: the device allocates the plan's buffers and those for
// inputs that arrive during another run, no more during runs, and frees all of them at the end.
func TestProgramAllocatesTheMemoryOfItsPlan(t *testing.T) {
	fake.Install(t, false)
	b := cuda.New(0)
	taken := func() int {
		t.Helper()
		n, err := cuda.TakenBytes(b)
		must(t, err)
		return n
	}
	before := taken()
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: running(t)})
	must(t, err)
	p, err := b.Compile(context.Background(), m, native.Options{})
	must(t, err)
	const inputs, rows = 4 * 1000, 8 * 256 // what arrives, and the rows that buffers are rounded up to
	planned, own := cuda.PlannedBytes(p), taken()-before
	if own < planned || own > planned+inputs+rows {
		t.Errorf("the program takes %d bytes and its plan %d", own, planned)
	}
	for range 5 {
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Float32s(make([]float32, 1000))})
		must(t, err)
		_, err = r.Wait(context.Background())
		must(t, err)
	}
	if n := taken() - before; n != own {
		t.Errorf("%d bytes are taken after 5 runs, %d before them", n, own)
	}
	must(t, p.Close(context.Background()))
	if n := taken(); n != before {
		t.Errorf("%d bytes are taken after the program was closed, %d before it was made", n, before)
	}
}
