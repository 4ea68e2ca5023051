package cpu_test

import (
	"runtime"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestTensorsOfAChainShareMemory compiles and runs a chain of products and row sums with two live
// tensors at a time: the program holds those two, its input and its output, not one for each link
// of the chain, besides the parts of a product of two workers.
func TestTensorsOfAChainShareMemory(t *testing.T) {
	if !cpu.Alone(t, "GOMAXPROCS=2") {
		return
	}
	const n, links = 768, 8
	const tensor = 4 * n * n
	g := unary(t, func(b *ir.Builder, x ir.Value) ir.Value {
		for range links {
			x = ops.MatMul(b, x, x)
			x = ops.Sub(b, x, ops.ExpandDims(b, ops.ReduceMax(b, x, 1), -1))
		}
		return x
	}, n, n)
	before := heap()
	p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
	kept := heap() - before
	if most := 5 * tensor; kept > uint64(most) {
		t.Errorf("%d MiB are kept, not %d at most", kept>>20, most>>20)
	}
	in, out := tensorsOf(t, p)
	step := bind(t, p, "run", in, out)
	runBound(t, step)
	before = heap()
	runBound(t, step)
	if more := heap() - before; int64(more) > tensor/4 {
		t.Errorf("a run takes %d MiB more", more>>20)
	}
}

// heap returns the bytes of memory in use.
func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
