package backendtest

import (
	"context"
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// syncs checks [native.Syncer]: runs that were started before are done, of a program with states and
// without, and a closed program refuses.
func syncs(t *testing.T, b native.Backend) {
	ctx := context.Background()
	p := counter(t, b)
	s, ok := p.(native.Syncer)
	if !ok {
		closeProgram(t, p)
		t.Fatal("programs have no Sync")
	}
	in := map[string]native.Tensor{"x": native.Float32s([]float32{1, 2, 3}), "scale": native.Float32(10)}
	for range 5 {
		if _, err := p.Run(ctx, "step", in); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	got, err := p.Get(ctx, "total")
	if err != nil {
		t.Fatal(err)
	}
	if err := sameFloats(floats(t, got), []float32{5, 10, 15}); err != nil {
		t.Error(err)
	}
	closeProgram(t, p)
	if err := s.Sync(ctx); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a closed program: %v", err)
	}
}

// checks checks [native.Checker]: it takes what Compile takes.
func checks(t *testing.T, b native.Backend) {
	c, ok := b.(native.Checker)
	if !ok {
		t.Log("the backend supports all that Support says, without a check")
		return
	}
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(4, 8)...)
		b.Output("y", ops.Softmax(b, ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(8, 8)...)), 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "e", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(m); err != nil {
		t.Error(err)
	}
	open, err := ir.Build("open", func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.Sym("n")))) })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(&ir.Module{Entries: []ir.Entry{{Name: "e", Graph: open}}}); err == nil {
		t.Error("an open size passes")
	}
}
