package elementwise_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFusedMapsAreVectorized fuses maps horizontally: with vectors where all of them vectorise
// and store more together than a launch moves, though none moves twice as much.
func TestFusedMapsAreVectorized(t *testing.T) {
	quick := schedtest.Hopper()
	quick.Device = hardware.H200()
	for _, c := range []struct {
		name    string
		sizes   []int
		launch  float64
		vectors int
	}{
		{"whole vectors", []int{4096, 4100, 4104}, 6, 6},
		{"a part of a vector", []int{4096, 4100, 4103}, 6, 0},
		{"no more than a launch moves", []int{4096, 4100}, 3000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			quick.Device.Launch = c.launch
			g := schedtest.Build(t, func(b *ir.Builder) {
				for i, n := range c.sizes {
					x := b.Input(fmt.Sprint("x", i), ir.F32, ir.N(n))
					for range i {
						x = ops.Add(b, x, x) // each does something else
					}
					b.Output(fmt.Sprint("y", i), ops.Convert(b, x, ir.BF16))
				}
			})
			kernels := schedtest.Kernels(t, g, quick)
			if len(kernels) != 1 {
				t.Fatalf("%d kernels, not one", len(kernels))
			}
			if vectors := vectorsOf(kernels[0]); vectors != c.vectors {
				t.Errorf("%d vectors are read and stored, not %d", vectors, c.vectors)
			}
			schedtest.RunOn(t, g, quick, 0)
		})
	}
}

// vectorsOf counts the loads and stores of vectors in a kernel.
func vectorsOf(k *loop.Kernel) (vectors int) {
	loop.Walk(k.Body, func(s loop.Stmt) {
		switch s.(type) {
		case *loop.LoadVec, *loop.StoreVec:
			vectors++
		}
	})
	return vectors
}

// TestConcatenationsAreVectorized counts the vectors that a thread of a concatenation reads and stores: those of each part
// if all begin and end at whole vectors.
func TestConcatenationsAreVectorized(t *testing.T) {
	quick := schedtest.Hopper()
	quick.Device = hardware.H200()
	quick.Device.Launch = 1
	for _, c := range []struct {
		name    string
		widths  []int
		vectors int
	}{
		{"two parts", []int{8, 4}, 3},
		{"four parts", []int{4, 12, 8, 4}, 5},
		{"a part of a vector", []int{6, 6}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				var parts []ir.Value
				for i, n := range c.widths {
					parts = append(parts, b.Input(fmt.Sprint("x", i), ir.F32, ir.Dims(70, n)...))
				}
				b.Output("y", ops.Concatenate(b, 1, parts...))
			})
			if vectors := vectorsOf(schedtest.Kernels(t, g, quick)[0]); vectors != c.vectors {
				t.Errorf("%d vectors are read and stored, not %d", vectors, c.vectors)
			}
			schedtest.RunOn(t, g, quick, 0)
		})
	}
}

// TestRowsByIndicesAreVectorized reads rows by indices by WebGPU and CUDA: as vectors, in which the index is loaded once, where
// rows are whole vectors.
func TestRowsByIndicesAreVectorized(t *testing.T) {
	for _, target := range []plan.Target{plan.WebGPU(), schedtest.Hopper()} {
		t.Run(target.Name, func(t *testing.T) { vectorizesRowsByIndices(t, target) })
	}
}

func vectorizesRowsByIndices(t *testing.T, target plan.Target) {
	target.Device = hardware.H200()
	target.Device.Launch = 1 // any map is large
	for width, want := range map[int]bool{24: true, 36: true, 22: false, 7: false} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", ops.Relu(b, ops.Embedding(b, b.Param("table", ir.F32, ir.Dims(50, width)...), b.Input("i", ir.I32, ir.N(60)))))
		})
		schedtest.RunOn(t, g, target, 0)
		loads, stores := 0, 0
		for _, k := range schedtest.Kernels(t, g, target) {
			loop.Walk(k.Body, func(s loop.Stmt) {
				switch s.(type) {
				case *loop.LoadVec:
					loads++
				case *loop.StoreVec:
					stores++
				}
			})
		}
		if got := loads > 0 && stores > 0; got != want {
			t.Errorf("rows of %d: %d vectors loaded, %d stored", width, loads, stores)
		}
	}
}
