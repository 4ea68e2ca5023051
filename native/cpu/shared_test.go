package cpu_test

import (
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestSharedValuesAreVisitedOnce compiles chains of values that are each used twice, over rows that read another row, and in
// sums over narrow rows: as trees they have 2⁴⁸ nodes.
func TestSharedValuesAreVisitedOnce(t *testing.T) {
	chain := func(b *ir.Builder, x ir.Value) ir.Value {
		for range 48 {
			x = ops.Sub(b, ops.Sin(b, x), ops.Mul(b, x, x))
		}
		return x
	}
	g, err := ir.Build("chains", func(b *ir.Builder) {
		x, row := b.Input("x", ir.F32, ir.Dims(64, 64)...), b.Input("row", ir.F32, ir.N(64))
		b.Output("rows", chain(b, ops.Add(b, x, row)))
		b.Output("sums", ops.ReduceSum(b, chain(b, b.Input("z", ir.F32, ir.Dims(4, 1000, 3)...)), 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	module, err := ir.NewModule("chains", ir.Entry{Name: "chains", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	compiled := make(chan error, 1)
	go func() {
		p, err := session.Compile(t.Context(), module)
		if err == nil {
			err = p.Close(t.Context())
		}
		compiled <- err
	}()
	select {
	case err := <-compiled:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a graph of 200 nodes is not compiled within a minute")
	}
}
