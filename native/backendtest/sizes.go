package backendtest

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// sizes are graphs with a dimension n.
var sizes = map[string]func(b *ir.Builder, n ir.Dim){
	"input":         func(b *ir.Builder, n ir.Dim) { b.Output("y", ops.Neg(b, b.Input("x", ir.F32, n))) },
	"input of rows": func(b *ir.Builder, n ir.Dim) { b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, n, n))) },
	"parameter":     func(b *ir.Builder, n ir.Dim) { b.Output("y", ops.Neg(b, b.Param("w", ir.F32, n))) },
	"state":         func(b *ir.Builder, n ir.Dim) { b.SetState("s", ops.Neg(b, b.State("s", ir.F32, n))) },
	"iota":          func(b *ir.Builder, n ir.Dim) { b.Output("y", ops.Iota(b, ir.I32, 0, n)) },
	"constant":      func(b *ir.Builder, n ir.Dim) { b.Output("y", ops.Const(b, ir.F32, 1, n)) },
	"broadcast": func(b *ir.Builder, n ir.Dim) {
		b.Output("y", ops.BroadcastTo(b, b.Input("x", ir.F32), ir.Shape{n, ir.N(3)}))
	},
	"random": func(b *ir.Builder, n ir.Dim) {
		b.Output("y", ops.Uniform(b, b.Input("key", ir.U32, ir.N(2)), ir.F32, n))
	},
	"product": func(b *ir.Builder, n ir.Dim) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, n, ir.N(1)), b.Input("w", ir.F32, ir.N(1), n)))
	},
	"running sum": func(b *ir.Builder, n ir.Dim) {
		b.Output("y", ops.CumSum(b, ops.BroadcastTo(b, b.Input("x", ir.F32), ir.Shape{n}), ops.CumSumAttrs{}))
	},
	"sort": func(b *ir.Builder, n ir.Dim) {
		b.Output("y", ops.Sort(b, ops.SortAttrs{}, b.Input("x", ir.F32, n))[0])
	},
}

// absurdSizes compiles graphs of impossible sizes: each is a typed error and allocates
// nothing.
func absurdSizes(t *testing.T, b native.Backend) {
	for name, f := range sizes {
		for _, size := range []int64{1 << 40, 1 << 46, 1 << 53, 1<<62 + 1} {
			n := int(size)
			if int64(n) != size {
				continue // an int has 32 bits here
			}
			g, err := ir.Build("absurd", func(b *ir.Builder) { f(b, ir.N(n)) })
			if err != nil {
				continue // refused where it is written
			}
			m, err := ir.NewModule("absurd", ir.Entry{Name: "run", Graph: g})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = b.Compile(context.Background(), m, native.Options{})
			runtime.ReadMemStats(&after)
			if kind := native.KindOf(err); err == nil || kind != native.ErrMemory && kind != ir.ErrShape && kind != ir.ErrUnsupported {
				t.Errorf("%s of %d: %v of kind %v", name, n, err, kind)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
				t.Errorf("%s of %d takes %d bytes before it is refused", name, n, taken)
			}
		}
	}
}

// memoryBudget compiles a graph with less memory than it needs, and with enough.
func memoryBudget(t *testing.T, b native.Backend) {
	g := build(t, "budget", func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.N(256), ir.N(1024)), b.Param("w", ir.F32, ir.N(1024), ir.N(16))))
	})
	m, err := ir.NewModule("budget", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	p, err := b.Compile(ctx, m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	needed := p.Memory()
	closeProgram(t, p)
	if least := int64(4 * (256*1024 + 1024*16)); needed < least {
		t.Errorf("the program holds %d bytes, its tensors %d", needed, least)
	}
	_, err = b.Compile(ctx, m, native.Options{Memory: needed - 1})
	var over *native.MemoryError
	if !errors.As(err, &over) || over.Needed != needed || over.Budget.Bytes != needed-1 || over.Batch != 256 || over.Fits < 128 || len(over.Largest) == 0 {
		t.Errorf("with a byte too few: %v", err)
	}
	if _, err := b.Compile(ctx, m, native.Options{Memory: -1}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("with less than nothing: %v", err)
	}
	t.Setenv(native.MemoryVariable, "300KiB")
	if _, err := b.Compile(ctx, m, native.Options{}); !errors.Is(err, native.ErrMemory) {
		t.Errorf("with a variable: %v", err)
	}
	t.Setenv(native.MemoryVariable, "")
	if p, err = b.Compile(ctx, m, native.Options{Memory: needed}); err != nil {
		t.Fatal(err)
	}
	closeProgram(t, p)
}
