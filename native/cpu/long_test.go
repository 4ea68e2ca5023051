//go:build !386 && !arm && !wasm

package cpu_test

import (
	"os"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

// Positions of 64 bits, on small arrays.
func TestCountingIn64Bits(t *testing.T) {
	b := cpu.Long()
	t.Run("ops", func(t *testing.T) { backendtest.Ops(t, b) })
	t.Run("gradients", func(t *testing.T) { backendtest.Gradients(t, b) })
	t.Run("graphs", func(t *testing.T) { backendtest.Graphs(t, b) })
	t.Run("large maps", func(t *testing.T) { backendtest.LargeMaps(t, b) })
}

// Arrays of more than 2³¹ bytes, in one axis and in two, have the right elements everywhere.
// Each takes 2 GiB, and the test half a minute: it runs where RLX_TEST_LONG is set.
func TestArraysOfMoreThan31Bits(t *testing.T) {
	if os.Getenv("RLX_TEST_LONG") == "" {
		t.Skip("RLX_TEST_LONG is not set")
	}
	const rows, columns = 1<<16 + 1, 1 << 15
	for name, f := range map[string]func(b *ir.Builder) (x, last ir.Value){
		"one axis": func(b *ir.Builder) (x, last ir.Value) {
			x = kept(b, "x", ops.Convert(b, ops.Mod(b, ops.Iota(b, ir.U32, 0, ir.N(rows*columns)), ops.Const(b, ir.U32, 7)), ir.I8))
			return x, ops.SliceAxis(b, x, 0, ir.N(rows*columns-3), ir.N(3))
		},
		"two axes": func(b *ir.Builder) (x, last ir.Value) {
			shape := ir.Dims(rows, columns)
			number := ops.Add(b, ops.Mul(b, ops.Iota(b, ir.U32, 0, shape...), ops.Const(b, ir.U32, columns)), ops.Iota(b, ir.U32, 1, shape...))
			x = kept(b, "x", ops.Convert(b, ops.Mod(b, number, ops.Const(b, ir.U32, 7)), ir.I8))
			return x, ops.Reshape(b, ops.Slice(b, x, ir.Dims(rows-1, columns-3), ir.Dims(1, 3), []int{1, 1}), ir.N(3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := compileGraphs(t, graph(t, func(b *ir.Builder) {
				x, last := f(b)
				b.Output("sum", ops.ReduceSum(b, ops.Convert(b, x, ir.U32)))
				b.Output("last", ops.Convert(b, last, ir.U32))
			}))
			out := run(t, p, nil)
			sum := uint32(0)
			for i := range rows * columns {
				sum += uint32(i % 7)
			}
			n := uint32(rows * columns)
			for name, want := range map[string][]uint32{"sum": {sum}, "last": {(n - 3) % 7, (n - 2) % 7, (n - 1) % 7}} {
				if got, err := out[name].Uint32s(); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s is %v, not %v: %v", name, got, want, err)
				}
			}
		})
	}
}

// kept is a value in a separate array.
func kept(b *ir.Builder, name string, v ir.Value) ir.Value {
	b.State(name, v.DType(), v.Shape()...)
	b.SetState(name, v)
	return v
}
