package loop_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestOccupancy has four variables live at once in a loop, and workgroups bounded by threads, by
// registers and by shared memory. The figures are from NVIDIA's occupancy calculator for compute
// capability 9.0 and the same number of registers.
func TestOccupancy(t *testing.T) {
	name := func(n string) scalar.Expr { return scalar.FreeVar(n, dtype.F32) }
	kernel := func(threads, private, shared int) *loop.Kernel {
		k := &loop.Kernel{Name: "k", Workgroup: [3]int{threads, 1, 1}, Groups: [3]int{1, 1, 1}}
		k.Body = []loop.Stmt{
			&loop.Let{Name: "a", Value: scalar.ConstF(dtype.F32, 1)},
			&loop.Var{Name: "b", Init: name("a")},
			&loop.For{Var: "i", Start: loop.Int(0), End: loop.Int(9), Step: loop.Int(1), Body: []loop.Stmt{
				&loop.Let{Name: "c", Value: scalar.Add(name("a"), name("b"))},
				&loop.Assign{Name: "b", Value: name("c")},
			}},
		}
		if private > 0 {
			k.Arrays = append(k.Arrays, loop.Array{Name: "p", DType: dtype.F32, Width: 1, Len: private, Space: loop.Private})
		}
		if shared > 0 {
			k.Arrays = append(k.Arrays, loop.Array{Name: "s", DType: dtype.F32, Width: 1, Len: shared, Space: loop.Shared})
		}
		return k
	}
	for _, c := range []struct {
		threads, private, shared int
		registers                int
		occupancy                float64
	}{
		{256, 0, 0, 20, 1},
		{32, 0, 0, 20, 0.5},            // 32 workgroups
		{256, 108, 0, 128, 0.25},       // 65,536 registers hold 512 threads
		{256, 0, 12 << 10, 20, 0.5},    // 49 KiB of 228 each
		{64, 0, 4 << 10, 20, 13. / 32}, // 17 KiB of 228 each
	} {
		k := kernel(c.threads, c.private, c.shared)
		if r, o := k.Registers(), k.Occupancy(); r != c.registers || o != c.occupancy {
			t.Errorf("%d threads, %d private and %d shared numbers: %d registers, %v occupied, not %d and %v", c.threads, c.private, c.shared, r, o, c.registers, c.occupancy)
		}
	}
}
