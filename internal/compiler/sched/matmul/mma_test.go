package matmul_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestProductsOfMultiplyAddsInEveryTile(t *testing.T) {
	cases := map[product]*schedtest.Case{}
	copying := schedtest.Hopper()
	copying.Name, copying.TensorMaps = "copying", false
	for _, target := range []plan.Target{schedtest.Hopper(), copying, schedtest.Ampere(), schedtest.Ada()} {
		t.Run(target.Name, func(t *testing.T) { productsInEveryTile(t, target, cases) })
	}
}

// product is a product of two matrices.
type product struct {
	d       ir.DType
	m, n, k int
	layout  string
}

// productsInEveryTile runs products with each tile of a target. The last one is split, has a part of
// a second column of tiles, and more steps than stages: 4 of 16-bit floats fill 256 columns. A short test has one layout of
// each, in turns.
func productsInEveryTile(t *testing.T, target plan.Target, cases map[product]*schedtest.Case) {
	for i, tile := range matmul.MmaSchedules(1, target.Caps) {
		shapes := []struct{ m, n, k, parts int }{{136, 72, 200, 1}, {130, 70, 33, 1}, {128, tile.N + 8, 576, 2}}
		for j, s := range shapes {
			layouts := []string{"nn", "tn", "nt", "tt"}
			if testing.Short() {
				layouts = layouts[(i+j)%len(layouts):][:1]
			}
			for _, d := range []ir.DType{[]ir.DType{ir.BF16, ir.F16, ir.BF16}[j], ir.F32} {
				if d == ir.F32 && s.parts > 1 {
					s.k = 64*tile.Stages + 32 // a step is 32 floats: half as many as of 16 bits
				}
				for _, layout := range layouts {
					t.Run(fmt.Sprintf("tile %d, %s %dx%dx%d/%d %s", i, d, s.m, s.n, s.k, s.parts, layout), func(t *testing.T) {
						key := product{d, s.m, s.n, s.k, layout}
						if cases[key] == nil {
							g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, d, s.m, s.n, s.k, layout, layout[0] == 't') })
							cases[key] = schedtest.NewCase(t, g, schedtest.Wholes)
						}
						c := cases[key]
						c.RunOn(t, schedtest.ContractionsBy(t, c.Graph, target, matmul.MmaSchedules(s.parts, target.Caps)[i]))
					})
				}
			}
		}
	}
}

// Products of few rows have these along the columns of tiles, in every layout.
func TestFewRowsAlongTheColumnsOfTiles(t *testing.T) {
	for _, target := range []plan.Target{schedtest.Hopper(), schedtest.Ampere()} {
		for _, s := range []struct{ m, n, k, parts int }{{1, 136, 200, 1}, {20, 200, 72, 1}, {61, 130, 1160, 2}} {
			for _, layout := range []string{"nn", "tn", "nt", "tt"} {
				t.Run(fmt.Sprintf("%s %dx%dx%d %s", target.Name, s.m, s.n, s.k, layout), func(t *testing.T) {
					g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, ir.BF16, s.m, s.n, s.k, layout, layout[0] == 't') })
					tile := matmul.MmaSchedules(s.parts, target.Caps)[2]
					schedtest.NewCase(t, g, schedtest.Wholes).RunOn(t, schedtest.ContractionsBy(t, g, target, tile))
				})
			}
		}
	}
}

// TestTilesOfMultiplyAddsAreChosenByCost tests the estimates of mma.go: large products have
// large tiles, those of few tiles have smaller ones or split-K, and small ones no multiply-adds.
func TestTilesOfMultiplyAddsAreChosenByCost(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		d       ir.DType
		columns int // of the tile, 0 for no multiply-adds
		kernels int
	}{
		{8192, 8192, 8192, ir.BF16, 256, 1},
		{4096, 4096, 4096, ir.F32, 256, 1},
		{1024, 1024, 1024, ir.F16, 64, 1},
		{512, 512, 4096, ir.BF16, 64, 2},
		{16, 4096, 4096, ir.BF16, 64, 2}, // 32 tiles, not 64 with 112 empty rows each
		{64, 16384, 1024, ir.BF16, 64, 1},
		{64, 64, 64, ir.BF16, 0, 1},
		{4096, 8, 128, ir.F32, 16, 1}, // the 8 columns stay in shared memory
		{1024, 1024, 1024, ir.F64, 0, 1},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, c.d, c.m, c.n, c.k, "nn", false) })
		kernels := schedtest.Kernels(t, g, schedtest.Hopper())
		columns := 0
		for _, k := range kernels {
			if err := schedtest.Hopper().Check(k); err != nil {
				t.Error(err)
			}
			if k.HasMma() && plan.WebGPU().Check(k) == nil {
				t.Errorf("WebGPU takes %s", k.Name)
			}
			loop.Walk(k.Body, func(s loop.Stmt) {
				if s, ok := s.(*loop.Mma); ok {
					columns = s.Shape.N
				}
			})
		}
		if columns != c.columns || len(kernels) != c.kernels {
			t.Errorf("%dx%dx%d of %s: %d kernels, %d columns, want %d and %d", c.m, c.n, c.k, c.d, len(kernels), columns, c.kernels, c.columns)
		}
	}
}

// TestImagesOfFewChannelsAreTilesWithoutMultiplyAdds has the gradient of an image of three channels in exact f32, for which a
// thread for each result would read every operand alone.
func TestImagesOfFewChannelsAreTilesWithoutMultiplyAdds(t *testing.T) {
	target := schedtest.Hopper()
	target.TF32, target.Device = false, hardware.H200()
	g := schedtest.Build(t, func(b *ir.Builder) {
		y, w := b.Input("y", ir.F32, ir.Dims(32, 112, 112, 64)...), b.Input("w", ir.F32, ir.Dims(8, 8, 3, 64)...)
		b.Output("x", ops.ConvTranspose(b, y, ops.Transpose(b, w, 0, 1, 3, 2), ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{2, 2}}))
	})
	for _, k := range schedtest.Kernels(t, g, target) {
		if strings.HasPrefix(k.Name, "reduce") {
			t.Errorf("the convolution is %s", k.Name)
		}
	}
}
