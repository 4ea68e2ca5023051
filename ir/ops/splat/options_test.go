package splat_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/ops/splat"
)

// options are those of testdata/options.py: of an image, and of a cloud with a number of coefficients.
var options = map[string]struct {
	limits       splat.Limits
	anisotropy   float64
	count, bands int
}{
	"none": {}, "least alpha": {limits: splat.Limits{MinAlpha: 0.2}}, "radius": {limits: splat.Limits{Radius: 1.5}},
	"least transmittance": {limits: splat.Limits{MinTransmittance: 0.4}}, "two": {limits: splat.Limits{MaxSplats: 2}},
	"all":        {limits: splat.Limits{MinAlpha: 0.05, Radius: 2, MinTransmittance: 0.3, MaxSplats: 3}},
	"anisotropy": {anisotropy: 1.5}, "harmonics": {count: 16}, "two bands": {count: 16, bands: 2}, "one coefficient": {count: 1},
}

// TestImagesWithOptionsAreThoseOfALoopOverPixels compares images, with and without tiles, and the derivatives
// of those without.
func TestImagesWithOptionsAreThoseOfALoopOverPixels(t *testing.T) {
	data, err := os.ReadFile("testdata/options.json")
	if err != nil {
		t.Fatal(err)
	}
	var images map[string][]float64
	if err := json.Unmarshal(data, &images); err != nil {
		t.Fatal(err)
	}
	const n = 6
	in := map[string]*ir.Array{
		"means": wave(1, 0, 0.8, n, 3), "scales": wave(2, 0.4, 0.3, n, 3), "rotations": wave(3, 0.3, 1, n, 4),
		"opacities": wave(4, 0.6, 0.39, n), "colors": wave(5, 0.5, 0.5, n, 3),
	}
	for name, want := range images {
		o := options[name]
		build := func(tile int) (*ir.Graph, map[string]*ir.Array) {
			of := map[string]*ir.Array{}
			g, err := ir.Build("scene", func(b *ir.Builder) {
				input := func(name string, dims ...int) ir.Value {
					of[name] = in[name]
					return b.Input(name, ir.F64, ir.Dims(dims...)...)
				}
				cloud := splat.Cloud{
					Means: input("means", n, 3), Scales: input("scales", n, 3), Rotations: input("rotations", n, 4), Opacities: input("opacities", n),
					Bands: o.bands, MaxAnisotropy: o.anisotropy,
				}
				if o.count > 0 {
					in["harmonics"] = wave(6, 0, 0.6, n, o.count, 3)
					cloud.Harmonics = input("harmonics", n, o.count, 3)
				} else {
					cloud.Colors = input("colors", n, 3)
				}
				m := splat.Image{Height: 4, Width: 5, Near: 0.2, Tile: tile, Pairs: n * 20, Limits: o.limits, Background: literal(b, []float64{0.1, 0.2, 0.3}, 3)}
				b.Output("image", splat.Render(b, splat.Project(b, cloud, camera(b)), m))
			})
			if err != nil {
				t.Fatal(name, err)
			}
			return g, of
		}
		for _, tile := range []int{0, 2} {
			g, of := build(tile)
			out, err := ir.Eval(g, of, ir.EvalOptions{})
			if err != nil {
				t.Fatal(name, err)
			}
			for i, w := range want {
				if !(math.Abs(out[0].F[i]-w) <= 1e-12) {
					t.Errorf("%s, tile %d: element %d is %v, want %v", name, tile, i, out[0].F[i], w)
				}
			}
		}
		g, of := build(0)
		if err := gradcheck.Check(g, of, gradcheck.Options{Order: 1, Tol: 1e-5}); err != nil {
			t.Error(name, err)
		}
	}
}

func TestOptionsOutOfRangeAreErrors(t *testing.T) {
	flat := func(b *ir.Builder) splat.Flat {
		in := func(name string, dims ...int) ir.Value { return b.Input(name, ir.F32, ir.Dims(dims...)...) }
		return splat.Flat{Means: in("m", 2, 2), Covariances: in("s", 2, 2, 2), Depths: in("d", 2), Opacities: in("o", 2), Colors: in("c", 2, 3)}
	}
	limits := func(l splat.Limits) func(b *ir.Builder) ir.Value {
		return func(b *ir.Builder) ir.Value {
			return splat.Render(b, flat(b), splat.Image{Height: 1, Width: 1, Limits: l})
		}
	}
	harmonics := func(count, bands int) func(b *ir.Builder) ir.Value {
		return func(b *ir.Builder) ir.Value {
			return splat.Harmonics(b, ops.Ones(b, ir.F32, ir.Dims(2, count, 3)...), ops.Ones(b, ir.F32, ir.Dims(2, 3)...), bands)
		}
	}
	for what, c := range map[string]struct {
		build func(b *ir.Builder) ir.Value
		kind  error
	}{
		"an α of 1": {limits(splat.Limits{MinAlpha: 1}), ir.ErrAttr}, "a negative number": {limits(splat.Limits{MaxSplats: -1}), ir.ErrAttr},
		"five coefficients": {harmonics(5, 0), ir.ErrShape}, "negative bands": {harmonics(4, -1), ir.ErrAttr},
		"an anisotropy below 1": {func(b *ir.Builder) ir.Value {
			one := func(dims ...int) ir.Value { return ops.Ones(b, ir.F64, ir.Dims(dims...)...) }
			c := splat.Cloud{Means: one(2, 3), Scales: one(2, 3), Rotations: one(2, 4), Opacities: one(2), Colors: one(2, 3), MaxAnisotropy: 0.5}
			return splat.Project(b, c, camera(b)).Means
		}, ir.ErrAttr},
	} {
		if _, err := ir.Build("bad", func(b *ir.Builder) { b.Output("y", c.build(b)) }); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
