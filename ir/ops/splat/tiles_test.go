package splat_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/ops/splat"
)

// picture renders n Gaussians of a plane; its loss weighs every element of the image.
func picture(t testing.TB, d ir.DType, n int, m splat.Image) *ir.Graph {
	t.Helper()
	g, err := ir.Build("picture", func(b *ir.Builder) {
		in := func(name string, dims ...int) ir.Value { return b.Input(name, d, ir.Dims(dims...)...) }
		m.Background = in("background", 2)
		image := splat.Render(b, splat.Flat{
			Means: in("means", n, 2), Covariances: in("covariances", n, 2, 2), Depths: in("depths", n),
			Opacities: in("opacities", n), Colors: in("colors", n, 2),
		}, m)
		b.Output("image", image)
		weights := ops.Sin(b, ops.Convert(b, ops.Iota(b, ir.I32, 0, image.Shape().Size()), d))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, ops.Reshape(b, image, image.Shape().Size()), weights)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gaussians draws n of them over an image and around it, of standard deviations from
// half a pixel to size pixels. Some have the same depth, and some are too faint to see.
func gaussians(d ir.DType, n int, m splat.Image, size float64) map[string]*ir.Array {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	means, covariances := ir.NewArray(d, n, 2), ir.NewArray(d, n, 2, 2)
	depths, opacities, colors := ir.NewArray(d, n), ir.NewArray(d, n), ir.NewArray(d, n, 2)
	for i := range n {
		means.F[2*i], means.F[2*i+1] = (rng.Float64()*1.2-0.1)*float64(m.Width), (rng.Float64()*1.2-0.1)*float64(m.Height)
		sx, sy, r := 0.5+rng.Float64()*(size-0.5), 0.5+rng.Float64()*(size-0.5), rng.Float64()*1.6-0.8
		copy(covariances.F[4*i:], []float64{sx * sx, r * sx * sy, r * sx * sy, sy * sy})
		depths.F[i] = 1 + math.Floor(rng.Float64()*float64(n)/2)
		opacities.F[i] = []float64{0.002, 0.3, 0.7, 1}[i%4]
		colors.F[2*i], colors.F[2*i+1] = rng.Float64(), rng.Float64()
	}
	return map[string]*ir.Array{
		"means": means, "covariances": covariances, "depths": depths, "opacities": opacities, "colors": colors,
		"background": ir.Floats(d, []float64{0.2, 0.9}),
	}
}

// TestTilesChangeNoValueAndNoDerivative compares with rendering without tiles: the
// image, gradients by everything, and their derivatives in a direction.
func TestTilesChangeNoValueAndNoDerivative(t *testing.T) {
	const n = 20
	whole := splat.Image{Height: 13, Width: 18, Near: 3}
	tiles := whole
	tiles.Tile, tiles.Pairs = 4, 160
	in := gaussians(ir.F64, n, whole, 2)
	in["depths"].F[3], in["means"].F[8] = 1, math.NaN() // hidden by Near, and nowhere
	for name, x := range gaussians(ir.F64, n, whole, 3) {
		in[autodiff.TangentName(name)] = x
	}
	results := func(m splat.Image) map[string]*ir.Array {
		h, err := autodiff.HVPWith(picture(t, ir.F64, n, m), "loss", autodiff.Options{
			Wrt: []string{"means", "covariances", "opacities", "colors", "background"}, Missing: autodiff.MissingIsError,
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := ir.Eval(h, onlyPorts(h, in), ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]*ir.Array{}
		for i, o := range h.Outputs() {
			named[o.Name] = out[i]
		}
		return named
	}
	got, want := results(tiles), results(whole)
	for name, w := range want {
		size := 0.0
		for i, x := range w.F {
			g := got[name].F[i]
			if !(math.Abs(g-x) <= 1e-10*(1+math.Abs(x))) || g != g {
				t.Fatalf("%s[%d] is %v, without tiles %v", name, i, g, x)
			}
			size += math.Abs(x)
		}
		if size == 0 {
			t.Errorf("%s is 0", name)
		}
	}
}

func onlyPorts(g *ir.Graph, in map[string]*ir.Array) map[string]*ir.Array {
	out := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		out[p.Name] = in[p.Name]
	}
	return out
}

// TestTooManyPairsAreAnError checks the number of pairs in the error: each of 3
// Gaussians is seen in all 4 tiles.
func TestTooManyPairsAreAnError(t *testing.T) {
	m := splat.Image{Height: 8, Width: 8, Tile: 4}
	in := gaussians(ir.F32, 3, m, 3)
	in["means"] = ir.Floats(ir.F32, []float64{4, 4, 4, 4, 4, 4}, 3, 2)
	in["opacities"] = ir.Floats(ir.F32, []float64{1, 1, 1}, 3)
	for room, want := range map[int]error{12: nil, 11: ir.ErrIndex, 1: ir.ErrIndex} {
		m.Pairs = room
		if _, err := ir.Eval(picture(t, ir.F32, 3, m), in, ir.EvalOptions{}); !errors.Is(err, want) {
			t.Errorf("room for %d pairs: error %v, want %v", room, err, want)
		}
	}
}

func TestImagesThatCannotBeAreRefused(t *testing.T) {
	for _, m := range []splat.Image{
		{Height: 0, Width: 4}, {Height: 4, Width: -1}, {Height: 4, Width: 4, Tile: -2}, {Height: 4, Width: 4, Tile: 2},
	} {
		_, err := ir.Build("image", func(b *ir.Builder) { splat.Render(b, splat.Flat{}, m) })
		if !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%+v: error %v, want one of kind %v", m, err, ir.ErrAttr)
		}
	}
}

// elements counts what a graph computes: the elements of the results of its nodes but
// ports, literals and what only places others (reshape, broadcast, …).
func elements(g *ir.Graph) float64 {
	sum := 0.0
	for _, n := range g.Nodes() {
		switch n.Op() {
		case ir.OpPort, ir.OpConstant, ops.OpReshape, ops.OpBroadcastInDim, ops.OpTranspose, ops.OpIota:
			continue
		}
		for _, v := range n.Types() {
			size, _ := v.Shape.Size().Const()
			sum += float64(size)
		}
	}
	return sum
}

// TestWorkInTilesDoesNotGrowWithTheImage counts the elements that images of 64 Gaussians
// with their gradients take, of few pixels and of 16 times as many: with tiles the
// difference is that of the image itself, without it is all.
func TestWorkInTilesDoesNotGrowWithTheImage(t *testing.T) {
	work := func(side, tile int) float64 {
		m := splat.Image{Height: side, Width: side, Tile: tile, Pairs: 64 * 9}
		g, err := autodiff.Grad(picture(t, ir.F32, 64, m), "loss", "means", "covariances", "opacities", "colors")
		if err != nil {
			t.Fatal(err)
		}
		return elements(g)
	}
	tiles, whole := work(512, 16)/work(128, 16), work(512, 0)/work(128, 0)
	t.Logf("16 times as many pixels: %.2f times the elements with tiles, %.2f times without; at 512 × 512 %.3f of those without",
		tiles, whole, work(512, 16)/work(512, 0))
	if tiles > 3 || whole < 15 || work(512, 16) > work(512, 0)/20 {
		t.Error("tiles do not save what they should")
	}
}
