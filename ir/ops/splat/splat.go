// Package splat renders clouds of Gaussians (Kerbl, Kopanas, Leimkühler and
// Drettakis, 3D Gaussian Splatting for Real-Time Radiance Field Rendering): it
// projects them, sorts them by depth and blends them from front to back, in every
// pixel. All is made of ops, so that images have derivatives by every parameter, of
// every order.
//
// Every pixel looks at every Gaussian, without tiles: work and the memory of the way
// back are those of height × width × n. Values are f32 or f64, all of one type.
// Errors are those of the ops.
package splat

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Camera sees the point x at Rotation·x + Translation, z being the depth, and shows
// it at Focal·(x/z, y/z) + Center, in pixels.
type Camera struct {
	Rotation    ir.Value // [3, 3]
	Translation ir.Value // [3]
	Focal       ir.Value // [2]
	Center      ir.Value // [2]
}

// Cloud is a set of n Gaussians in space.
type Cloud struct {
	Means     ir.Value // [n, 3]
	Scales    ir.Value // [n, 3], standard deviations along the axes of the Gaussian
	Rotations ir.Value // [n, 4], quaternions w, x, y, z of any length but 0
	Opacities ir.Value // [n], from 0 to 1
	Colors    ir.Value // [n, channels]
}

// Flat is a set of n Gaussians in the plane of an image, in pixels.
type Flat struct {
	Means       ir.Value // [n, 2]: x to the right and y down, pixel (0, 0) from 0 to 1 both ways
	Covariances ir.Value // [n, 2, 2], symmetric positive definite
	Depths      ir.Value // [n]
	Opacities   ir.Value // [n]
	Colors      ir.Value // [n, channels]
}

// Image says what [Render] makes.
type Image struct {
	Height, Width int
	Background    ir.Value // [channels]; black where it is no value
	// Near is the depth up to which Gaussians are not shown.
	Near float64
}

const (
	blur       = 0.3       // added to variances, in square pixels, so that nothing falls between pixels
	mostOpaque = 0.99      // what one Gaussian covers of a pixel at most
	visible    = 1.0 / 255 // what it has to cover to be counted
)

// Render returns an image [height, width, channels]: the sum over Gaussians, nearest
// first, of color·α·Π(1 − α of those before), and the background times what is left.
// α is the opacity times exp(−dᵀ·Σ⁻¹·d/2) at the distance d from the centre of the
// pixel, at most 0.99, and nothing below 1/255. Gaussians of one depth are in the
// order in which they are given. The order counts as constant in derivatives.
func Render(b *ir.Builder, f Flat, m Image) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	order := ops.ArgSort(b, f.Depths, ops.SortAttrs{})
	sorted := func(x ir.Value) ir.Value { return ops.Take(b, x, order, 0, ops.OutsideClip) }
	shown := ops.Gt(b, f.Depths, ops.ConstLike(b, f.Depths, m.Near))
	opacity := sorted(ops.Select(b, shown, f.Opacities, ops.ZerosLike(b, f.Opacities)))
	alpha := covered(b, sorted(f.Means), sorted(f.Covariances), opacity, m)
	left := ops.CumProd(b, ops.Sub(b, ops.OnesLike(b, alpha), alpha), ops.CumSumAttrs{Axis: 1})
	before := ops.CumProd(b, ops.Sub(b, ops.OnesLike(b, alpha), alpha), ops.CumSumAttrs{Axis: 1, Exclusive: true})
	pixels := ops.MatMul(b, ops.Mul(b, alpha, before), sorted(f.Colors))
	if m.Background.Valid() {
		rest := ops.SliceAxis(b, left, 1, left.Dim(1).Sub(ir.N(1)), ir.N(1))
		pixels = ops.Add(b, pixels, ops.Mul(b, rest, m.Background))
	}
	return ops.Reshape(b, pixels, ir.N(m.Height), ir.N(m.Width), f.Colors.Dim(1))
}

// covered returns α of each pixel, row by row, and each Gaussian: [pixels, n].
func covered(b *ir.Builder, means, covariances, opacity ir.Value, m Image) ir.Value {
	d, size := means.DType(), ir.N(m.Height*m.Width)
	n := means.Dim(0)
	// distance is that from the centres of pixels along an axis.
	distance := func(axis int) ir.Value {
		at := ops.Iota(b, ir.I32, 1-axis, ir.N(m.Height), ir.N(m.Width))
		center := ops.Convert(b, ops.Reshape(b, at, size, ir.N(1)), d)
		center = ops.Add(b, center, ops.Const(b, d, 0.5))
		return ops.Sub(b, center, ops.Reshape(b, ops.SliceAxis(b, means, 1, ir.N(axis), ir.N(1)), ir.N(1), n))
	}
	dx, dy := distance(0), distance(1)
	element := func(i, j int) ir.Value {
		row := ops.SliceAxis(b, covariances, 1, ir.N(i), ir.N(1))
		return ops.Reshape(b, ops.SliceAxis(b, row, 2, ir.N(j), ir.N(1)), ir.N(1), n)
	}
	a, c, e := element(0, 0), element(0, 1), element(1, 1)
	det := ops.Sub(b, ops.Mul(b, a, e), ops.Mul(b, c, c))
	square := ops.Add(b, ops.Mul(b, e, ops.Mul(b, dx, dx)), ops.Mul(b, a, ops.Mul(b, dy, dy)))
	square = ops.Sub(b, square, ops.Mul(b, ops.Mul(b, c, ops.Const(b, d, 2)), ops.Mul(b, dx, dy)))
	power := ops.Div(b, ops.Mul(b, square, ops.Const(b, d, -0.5)), det)
	alpha := ops.Mul(b, ops.Reshape(b, opacity, ir.N(1), n), ops.Exp(b, power))
	alpha = ops.Min(b, alpha, ops.ConstLike(b, alpha, mostOpaque))
	return ops.Select(b, ops.Ge(b, alpha, ops.ConstLike(b, alpha, visible)), alpha, ops.ZerosLike(b, alpha))
}
