package splat_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/ops/splat"
)

// wave is offset + scale·sin(seed + 0.7·i).
func wave(seed, offset, scale float64, dims ...int) *ir.Array {
	a := ir.NewArray(ir.F64, dims...)
	for i := range a.F {
		a.F[i] = offset + scale*math.Sin(seed+0.7*float64(i))
	}
	return a
}

func literal(b *ir.Builder, x []float64, dims ...int) ir.Value {
	return ops.Literal(b, ir.Floats(ir.F64, x, dims...))
}

// camera turns by the angles 0.1, −0.2 and 0.3 about x, y and z.
func camera(b *ir.Builder) splat.Camera {
	return splat.Camera{
		Rotation: literal(b, []float64{
			0.9362933635841991, -0.3129918257854679, -0.1593450793079779, 0.2896294776255155, 0.9447024859948941, -0.1537919979889642,
			0.19866933079506124, 0.0978433950072557, 0.9751703272018157,
		}, 3, 3),
		Translation: literal(b, []float64{0.1, -0.2, 3}, 3),
		Focal:       literal(b, []float64{4, 5}, 2),
		Center:      literal(b, []float64{2, 1.5}, 2),
	}
}

// scene renders four Gaussians into 3 × 4 pixels.
func scene(t *testing.T, near float64) (*ir.Graph, map[string]*ir.Array) {
	t.Helper()
	return sceneOf(t, splat.Image{Height: 3, Width: 4, Near: near})
}

// sceneOf renders four Gaussians before a background.
func sceneOf(t *testing.T, m splat.Image) (*ir.Graph, map[string]*ir.Array) {
	t.Helper()
	g, err := ir.Build("scene", func(b *ir.Builder) {
		in := func(name string, dims ...int) ir.Value { return b.Input(name, ir.F64, ir.Dims(dims...)...) }
		flat := splat.Project(b, splat.Cloud{
			Means: in("means", 4, 3), Scales: in("scales", 4, 3), Rotations: in("rotations", 4, 4),
			Opacities: in("opacities", 4), Colors: in("colors", 4, 3),
		}, camera(b))
		m.Background = in("background", 3)
		b.Output("image", splat.Render(b, flat, m))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, map[string]*ir.Array{
		"means": wave(1, 0, 0.8, 4, 3), "scales": wave(2, 0.4, 0.2, 4, 3), "rotations": wave(3, 0.3, 1, 4, 4),
		"opacities": wave(4, 0.6, 0.3, 4), "colors": wave(5, 0.5, 0.5, 4, 3), "background": ir.Floats(ir.F64, []float64{0.1, 0.2, 0.3}),
	}
}

// TestImageIsThatOfALoopOverPixels is against NumPy 2.4.6 and scipy.spatial 1.17.1:
// Gaussians sorted by depth, and a loop over pixels and Gaussians by the formulas in
// the comments.
func TestImageIsThatOfALoopOverPixels(t *testing.T) {
	checkImage(t, splat.Image{Height: 3, Width: 4, Near: 0.2})
}

// TestImageInTilesIsThatOfALoopOverPixels has tiles that do not divide the image, one of
// a pixel, one that is larger than the image, and a pair for each Gaussian and tile.
func TestImageInTilesIsThatOfALoopOverPixels(t *testing.T) {
	for _, tile := range []int{1, 2, 3, 5} {
		checkImage(t, splat.Image{Height: 3, Width: 4, Near: 0.2, Tile: tile, Pairs: 4 * 12})
	}
}

// checkImage compares the image of four Gaussians with that of the loop, and its first
// and second derivatives with differences.
func checkImage(t *testing.T, m splat.Image) {
	t.Helper()
	want := []float64{
		0.20380103426007878, 0.21445700203630153, 0.24694968764366965, 0.3150607056436139, 0.2730364503362309, 0.2576167460870533,
		0.3564594259976732, 0.4274791606401659, 0.452528358105709, 0.2270586910975816, 0.3296883910312708, 0.3974010625250357,
		0.13513151209908614, 0.20571118223850782, 0.2867410652887676, 0.18604508800783917, 0.2357238691881341, 0.32616428267440944,
		0.1848577183848626, 0.2934470565123385, 0.43817595222941397, 0.13605554023505778, 0.24739217155509358, 0.3638451297221628,
		0.10238366903997302, 0.20121730411488042, 0.30381984557133934, 0.0873670823992761, 0.21168570989967753, 0.38171365502058374,
		0.06181713252985928, 0.22799109993345112, 0.4821665032371695, 0.08103444816734878, 0.21136540587722188, 0.3767548680610542,
	}
	g, in := sceneOf(t, m)
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if !(math.Abs(out[0].F[i]-w) <= 1e-12) {
			t.Errorf("element %d is %v, want %v", i, out[0].F[i], w)
		}
	}
	if err := gradcheck.Check(g, in, gradcheck.Options{Order: 2, Tol: 1e-5}); err != nil {
		t.Error(err)
	}
}

// TestGaussiansBehindNearPlaneAreCulled hides all of them: the background stays, and nothing
// has a gradient but that.
func TestGaussiansBehindNearPlaneAreCulled(t *testing.T) {
	g, in := scene(t, 10)
	d, err := autodiff.VJP(g)
	if err != nil {
		t.Fatal(err)
	}
	in["cotangent/image"] = wave(1, 1, 0, 3, 4, 3)
	out, err := ir.Eval(d, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k, o := range d.Outputs() {
		for i, x := range out[k].F {
			want := 0.0
			switch o.Name {
			case "image":
				want = in["background"].F[i%3]
			case "grad/background":
				want = 12
			}
			if x != want {
				t.Errorf("%s[%d] is %v, want %v", o.Name, i, x, want)
			}
		}
	}
}
