//go:build unix && !386 && !arm && !wasm

package cpu_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestTensorsOverFourGiB sums the rows of a tensor of 4 GiB and 4 MiB. Only its last row,
// beyond 32-bit byte offsets, is not zero: systems do not back memory that was never written,
// so that the test needs little. It runs in a process of its own: where the heap has grown before,
// Go's allocator clears the memory of the program's input, and the test takes 8 GB.
func TestTensorsOverFourGiB(t *testing.T) {
	if !cpu.Alone(t) {
		return
	}
	const rows, cols = 1025, 1 << 20
	memory, err := syscall.Mmap(-1, 0, 4*rows*cols, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	x, y := unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), rows*cols), make([]float32, rows) // Go's allocator may write zeros
	for j := range cols {
		x[(rows-1)*cols+j] = float32(j % 4)
	}
	step := bind(t, compileGraphs(t, graph(t, func(b *ir.Builder) {
		b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(rows, cols)...), 1))
	})), "run", map[string]native.Tensor{"x": native.Float32s(x, rows, cols)}, map[string]native.Tensor{"y": native.Float32s(y, rows)})
	runBound(t, step)
	for i, got := range y {
		want := float32(0)
		if i == rows-1 {
			want = 1.5 * cols // 0, 1, 2 and 3 repeated, whose sums are exact
		}
		if got != want {
			t.Fatalf("row %d is %v, not %v", i, got, want)
		}
	}
}
