package loop_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// memories are targets that only store f16: one with memory of words, one with
// memory of bytes.
func memories() map[string]loop.Caps {
	words, bytes := loop.DefaultCaps(), loop.DefaultCaps()
	bytes.Dialect = dtype.CUDA
	return map[string]loop.Caps{"words": words, "bytes": bytes}
}

// runWidened widens and runs a kernel on storage arrays given as bytes, whole
// words each.
func runWidened(t *testing.T, k *loop.Kernel, caps loop.Caps, buffers ...[]byte) *loop.Kernel {
	t.Helper()
	w := loop.Widen(k, caps)
	if err := loop.Check(w); err != nil {
		t.Fatalf("%v\n%s", err, w)
	}
	var l sim.Launch
	for _, b := range buffers {
		l.Arrays = append(l.Arrays, sim.Binding{Buffer: b, Bytes: len(b)})
	}
	if err := sim.Run(w, l, sim.Options{}); err != nil {
		t.Fatalf("%v\n%s", err, w)
	}
	return w
}

// TestWidenedKernelsEqualPlainLoops has vectors of f16, which fill words.
func TestWidenedKernelsEqualPlainLoops(t *testing.T) {
	for name, caps := range memories() {
		for _, c := range kerneltest.Half() {
			var buffers [][]byte
			for i, a := range c.Storage() {
				buffers = append(buffers, kerneltest.Encode(a.DType, c.Arrays[i]))
			}
			w := runWidened(t, c.Kernel, caps, buffers...)
			var got [][]float64
			for i, a := range c.Storage() {
				got = append(got, kerneltest.Decode(a.DType, buffers[i]))
			}
			if err := c.Compare(got); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if slices.ContainsFunc(w.Arrays, func(a loop.Array) bool { return a.Access == loop.Atomic }) {
				t.Errorf("%s: whole words are stored by atomic operations:\n%s", name, w)
			}
		}
	}
}

// narrowKernel uses narrow types in variables, in shared and private memory, and in stores of
// single elements. Thread i of 8 adds 1 to
// 2048 + 2i in f16, ten times, and 100 to its i8 by way of both memories.
func narrowKernel() *loop.Kernel {
	i := loop.LocalID(0, 8)
	half := func(x float64) s.Expr { return s.ConstF(dtype.F16, x) }
	sum := s.FreeVar("sum", dtype.F16)
	at := func(array int, t dtype.DType, at s.Expr) s.Expr { return s.LoadAt(array, t, at) }
	return &loop.Kernel{
		Name: "narrow", Workgroup: [3]int{8, 1, 1}, Groups: [3]int{1, 1, 1},
		Arrays: []loop.Array{
			{Name: "x", DType: dtype.F16, Width: 1, Len: 8, Access: loop.ReadWrite},
			{Name: "n", DType: dtype.I8, Width: 1, Len: 8, Access: loop.ReadWrite},
			{Name: "all", DType: dtype.I8, Width: 1, Len: 8, Space: loop.Shared},
			{Name: "own", DType: dtype.I8, Width: 1, Len: 1, Space: loop.Private},
		},
		Body: []loop.Stmt{
			&loop.Var{Name: "sum", Init: at(0, dtype.F16, i)},
			&loop.For{Var: "k", Start: loop.Int(0), End: loop.Int(10), Step: loop.Int(1), Body: []loop.Stmt{
				&loop.Assign{Name: "sum", Value: s.Add(sum, half(1))},
			}},
			&loop.Store{Array: 0, At: i, Value: sum},
			&loop.Store{Array: 3, At: loop.Int(0), Value: at(1, dtype.I8, i)},
			&loop.Store{Array: 2, At: i, Value: s.Add(at(3, dtype.I8, loop.Int(0)), s.ConstI(dtype.I8, 100))},
			&loop.Barrier{},
			&loop.Store{Array: 1, At: i, Value: at(2, dtype.I8, s.Sub(loop.Int(7), i))},
		},
	}
}

// TestWidenedArithmeticIsRoundedAndWraps checks that in f16 adding 1 to 2048 and more, where
// neighbours are 2 apart, rounds to even, and that sums of i8 wrap.
func TestWidenedArithmeticIsRoundedAndWraps(t *testing.T) {
	for name, caps := range memories() {
		x, n := make([]float64, 8), make([]float64, 8)
		for i := range x {
			x[i], n[i] = 2048+4*float64(i), 10*float64(i)
		}
		halves, bytes := kerneltest.Encode(dtype.F16, x), kerneltest.Encode(dtype.I8, n)
		w := runWidened(t, narrowKernel(), caps, halves, bytes)
		if got := kerneltest.Decode(dtype.F16, halves); !slices.Equal(got, x) {
			t.Errorf("%s: %v, want %v", name, got, x)
		}
		// 100 + 10i, of the thread at the other end.
		want := []float64{-86, -96, -106, -116, -126, 120, 110, 100}
		if got := kerneltest.Decode(dtype.I8, bytes); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		shared := slices.ContainsFunc(w.Arrays, func(a loop.Array) bool { return a.Access == loop.Atomic })
		if shared != (name == "words") {
			t.Errorf("%s: threads change words together: %t", name, shared)
		}
	}
}

// TestWidenKeepsKernelsWithoutNarrowTypes checks that Widen returns other kernels unchanged.
func TestWidenKeepsKernelsWithoutNarrowTypes(t *testing.T) {
	for _, caps := range memories() {
		for _, c := range kerneltest.Cases() {
			if loop.Widen(c.Kernel, caps) != c.Kernel {
				t.Errorf("%s is changed", c.Kernel.Name)
			}
		}
	}
	f16 := loop.DefaultCaps()
	f16.F16 = true
	for _, c := range kerneltest.Half() {
		if loop.Widen(c.Kernel, f16) != c.Kernel {
			t.Errorf("%s is changed where there is f16", c.Kernel.Name)
		}
	}
}
