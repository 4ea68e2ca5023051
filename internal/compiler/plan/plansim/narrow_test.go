package plansim_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// inBytes is a target with byte-addressed memory that stores types of 8 and 16 bits, as CUDA does.
func inBytes() plan.Target {
	target := plan.WebGPU()
	target.Dialect = dtype.CUDA
	return target
}

// storage is a graph that stores values of narrow types, and whether threads must
// share words in it.
type storage struct {
	build  func(b *ir.Builder)
	shared bool
}

func gelus(d ir.DType, dims ...int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		x := ops.Convert(b, b.Input("x", d, ir.Dims(dims...)...), ir.F32)
		b.Output("y", ops.Convert(b, ops.GeluTanh(b, x), d))
	}
}

func productOf(d ir.DType, m, k, n int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		x, w := b.Input("x", d, ir.Dims(m, k)...), b.Input("w", d, ir.Dims(k, n)...)
		b.Output("y", ops.Relu(b, ops.MatMul(b, x, w)))
	}
}

var storages = map[string]storage{
	"map of f16":                  {gelus(ir.F16, 30, 34), false},
	"map of an odd number of f16": {gelus(ir.F16, 3, 341), true},
	"map of f8":                   {gelus(ir.F8E4M3, 1000), false},
	"map of f8 not by four":       {gelus(ir.F8E5M2, 1001), true},
	"tiles of bf16":               {productOf(ir.BF16, 256, 64, 256), false},
	"tiles at the edge of f16":    {productOf(ir.F16, 260, 64, 257), true},
	"product without tiles":       {productOf(ir.BF16, 20, 64, 30), true},
	"rows of one element each":    {func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F16, ir.Dims(50, 9)...), 1)) }, true},
	"transposed":                  {func(b *ir.Builder) { b.Output("y", ops.Transpose(b, b.Input("x", ir.I8, ir.Dims(32, 64)...), 1, 0)) }, false},
	"in place": {func(b *ir.Builder) {
		carries, _ := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{b.Input("x", ir.BF16, ir.N(256))}, Length: ir.N(3),
			Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Mul(b, c[0], c[0])}, nil
			},
		})
		b.Output("y", carries[0])
	}, false},
	"side by side": {func(b *ir.Builder) {
		for i, n := range []int{40, 1000, 7} {
			x := b.Input([]string{"x", "y", "z"}[i], ir.U8, ir.N(n))
			b.Output([]string{"a", "b", "c"}[i], ops.Mul(b, x, x))
		}
	}, true},
}

// TestNarrowTypesInMemoryOfWordsAndBytes compares with the reference implementation, in the
// simulator, which sees threads that write one word without atomic operations.
func TestNarrowTypesInMemoryOfWordsAndBytes(t *testing.T) {
	for name, c := range storages {
		g, err := ir.Build("g", c.build)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]*ir.Array{}
		for _, p := range g.Ports() {
			dims, _ := p.Value.Shape().Ints()
			a := ir.NewArray(p.Value.DType(), dims...)
			for i := range a.Len() {
				if x := 2 * math.Sin(float64(i*i)); a.F != nil {
					a.F[i] = x
				} else {
					a.I[i] = int64(50 * x)
				}
			}
			a.Round()
			in[p.Name] = a
		}
		t.Run("words/"+name, func(t *testing.T) {
			checkGraphOn(t, plan.WebGPU(), g, in)
			if got := sharesWords(t, g, plan.WebGPU()); got != c.shared {
				t.Errorf("threads share words: %t, want %t", got, c.shared)
			}
		})
		t.Run("bytes/"+name, func(t *testing.T) {
			checkGraphOn(t, inBytes(), g, in)
			if sharesWords(t, g, inBytes()) {
				t.Error("threads share words where there are bytes")
			}
		})
		t.Run("one thread/"+name, func(t *testing.T) { checkGraphOn(t, plan.WebAssembly(false), g, in) })
	}
}

// sharesWords reports whether a kernel changes words by atomic operations.
func sharesWords(t *testing.T, g *ir.Graph, target plan.Target) bool {
	t.Helper()
	m := moduleOf(t, g)
	_, kernels, err := plan.CompileKernels(m, target, plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kernels {
		for _, a := range k.Arrays {
			if a.Access == loop.Atomic {
				return true
			}
		}
	}
	return false
}
