package cpu_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestCompilingGrowsWithTheNumberOfInputs checks that compiling four times as many inputs
// takes much less than sixteen times as long, as a linear search for each would. Other programs
// may delay a compilation: the best of four trials counts.
func TestCompilingGrowsWithTheNumberOfInputs(t *testing.T) {
	var few, many time.Duration
	for range 4 {
		few, many = compileSum(t, 3_000), compileSum(t, 12_000)
		if many <= 10*few {
			return
		}
	}
	t.Errorf("3,000 inputs take %v, 12,000 take %v", few, many)
}

// compileSum returns the minimum time of three compilations of a sum of n inputs.
func compileSum(t *testing.T, n int) time.Duration {
	t.Helper()
	g, err := ir.Build("sum", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(4))
		for i := range n {
			x = ops.Add(b, x, b.Input(fmt.Sprint("x", i), ir.F32, ir.N(4)))
		}
		b.Output("y", x)
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("sum", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	least := time.Duration(1 << 62)
	for range 3 {
		begun := time.Now()
		p, err := cpu.Backend().Compile(context.Background(), m, native.Options{})
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, time.Since(begun))
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return least
}
