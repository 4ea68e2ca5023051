// Package splat renders 3D Gaussian splats (Kerbl, Kopanas, Leimkühler and
// Drettakis, 3D Gaussian Splatting for Real-Time Radiance Field Rendering): it
// projects them, sorts them by depth and alpha-blends them from front to back in every
// pixel. It is a composite of ops, so images are differentiable by every parameter, at
// every order.
//
// There are two renderers with the same values and derivatives. With tiles ([Image.Tile])
// a Gaussian is evaluated only at the pixels of the tiles in which it is visible: work and
// memory of the backward pass are Pairs × Tile² for any image size. Without tiles every
// pixel evaluates every Gaussian, Height × Width × n, which is less for few or large ones.
// Values are f32 or f64, all of one type. Errors are those of the ops.
//
// Start reading at splat.go, with [Render]: harmonics.go has the colours and project.go the ellipses that it
// blends, tiles.go the pairs of tiles and Gaussians.
package splat

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Camera is a pinhole camera: a point p has camera coordinates (x, y, z) = Rotation·p +
// Translation, with depth z, and pixel coordinates Focal·(x/z, y/z) + Center.
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
	Colors    ir.Value // [n, channels]; the zero Value if there are harmonics
	// Harmonics are the coefficients [n, k, channels] from which [Harmonics] computes the
	// colors, and Bands the degrees to use, 0 for all.
	Harmonics ir.Value
	Bands     int
	// MaxAnisotropy is the maximum ratio of the scales of a Gaussian, at least 1, to which
	// its smaller ones are raised; 0 for none.
	MaxAnisotropy float64
}

// Flat is a set of n Gaussians in the plane of an image, in pixels.
type Flat struct {
	Means       ir.Value // [n, 2]: x to the right and y down, pixel (0, 0) from 0 to 1 both ways
	Covariances ir.Value // [n, 2, 2], symmetric positive definite
	Depths      ir.Value // [n]
	Opacities   ir.Value // [n]
	Colors      ir.Value // [n, channels]
}

// Image describes the image to render.
type Image struct {
	Height, Width int
	Background    ir.Value // [channels]; the zero Value is black
	// Near is the depth below which Gaussians are culled.
	Near float64
	// Tile is the side of the tiles, in pixels; 0 for none.
	Tile int
	// Pairs is the maximum number of pairs of a Gaussian and a tile in which it is
	// visible. A run that needs more fails with an error of kind [ir.ErrIndex] that states
	// the number.
	Pairs int
	Limits
}

const (
	blur     = 0.3       // added to variances, in square pixels: a low-pass filter
	maxAlpha = 0.99      // maximum α of a Gaussian in a pixel
	visible  = 1.0 / 255 // minimum α, unless the limits have another
)

// Render returns an image [height, width, channels]: the sum over Gaussians, nearest
// first, of color·α·Π(1 − α of those before), plus the background times the remaining
// transmittance. α is the opacity times exp(−dᵀ·Σ⁻¹·d/2) at the distance d from the centre
// of the pixel, at most 0.99, and 0 below 1/255 and where [Limits] say so. Gaussians of
// equal depth keep their order. Derivatives treat the order as constant.
//
// Image sizes below 1, a negative tile, tiles with Pairs below 1, and limits out of range
// are errors of kind [ir.ErrAttr].
func Render(b *ir.Builder, f Flat, m Image) ir.Value {
	if m.Height < 1 || m.Width < 1 || m.Tile < 0 || m.Tile > 0 && m.Pairs < 1 {
		b.Fail(ir.Attrf("an image of %d × %d pixels in tiles of %d with room for %d pairs", m.Height, m.Width, m.Tile, m.Pairs))
	}
	if err := m.check(); err != nil {
		b.Fail(err)
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	shown := ops.Gt(b, f.Depths, ops.ConstLike(b, f.Depths, m.Near))
	f.Opacities = ops.Select(b, shown, f.Opacities, ops.ZerosLike(b, f.Opacities))
	order := ops.ArgSort(b, f.Depths, ops.SortAttrs{})
	if m.Tile > 0 {
		return inTiles(b, f, order, m)
	}
	pixels := blend(b, f.at(b, order), m)
	return ops.Reshape(b, pixels, ir.N(m.Height), ir.N(m.Width), f.Colors.Dim(1))
}

// at returns the Gaussians at the given indices.
func (f Flat) at(b *ir.Builder, indices ir.Value) Flat {
	take := func(x ir.Value) ir.Value { return ops.Take(b, x, indices, 0, ops.OutsideClip) }
	return Flat{take(f.Means), take(f.Covariances), take(f.Depths), take(f.Opacities), take(f.Colors)}
}

// blend returns the colors [pixels, channels] of all pixels, in row-major order, each
// blended from all Gaussians in order.
func blend(b *ir.Builder, f Flat, m Image) ir.Value {
	x, y := centers(b, m.Height, m.Width, f.Means.DType())
	alpha := f.cover(b, ops.ExpandDims(b, x, 1), ops.ExpandDims(b, y, 1), 0, m.Limits)
	along := ops.CumSumAttrs{Axis: 1, Exclusive: true}
	alpha, before := m.end(b, alpha, inOrder{
		through: func(alpha ir.Value) ir.Value { return ops.CumProd(b, ops.Sub(b, ops.OnesLike(b, alpha), alpha), along) },
		number:  func(x ir.Value) ir.Value { return ops.CumSum(b, x, along) },
	})
	pixels := ops.MatMul(b, ops.Mul(b, alpha, before), f.Colors)
	if m.Background.Valid() {
		left := ops.ReduceProd(b, ops.Sub(b, ops.OnesLike(b, alpha), alpha), 1)
		pixels = ops.Add(b, pixels, ops.Mul(b, ops.ExpandDims(b, left, 1), m.Background))
	}
	return pixels
}

// centers returns the pixel centres of a height × width image, in row-major order.
func centers(b *ir.Builder, height, width int, d ir.DType) (x, y ir.Value) {
	along := func(axis int) ir.Value {
		at := ops.Reshape(b, ops.Iota(b, ir.I32, axis, ir.N(height), ir.N(width)), ir.N(height*width))
		return ops.Add(b, ops.Convert(b, at, d), ops.Const(b, d, 0.5))
	}
	return along(1), along(0)
}

// cover returns α at the points x, y. The parameters of the Gaussians are vectors, which
// get an axis of size 1 at the given position and are broadcast with x and y.
func (f Flat) cover(b *ir.Builder, x, y ir.Value, axis int, l Limits) ir.Value {
	number := func(v ir.Value) ir.Value { return ops.ExpandDims(b, v, axis) }
	dx := ops.Sub(b, x, number(column(b, f.Means, 0)))
	dy := ops.Sub(b, y, number(column(b, f.Means, 1)))
	xx, xy, yy := f.covariance(b, 0, 0), f.covariance(b, 0, 1), f.covariance(b, 1, 1)
	det := ops.Sub(b, ops.Mul(b, xx, yy), ops.Mul(b, xy, xy))
	half := ops.Div(b, ops.ConstLike(b, det, -0.5), det)
	square := func(c, u, v ir.Value) ir.Value { return ops.Mul(b, number(ops.Mul(b, c, half)), ops.Mul(b, u, v)) }
	power := ops.Add(b, square(yy, dx, dx), square(xx, dy, dy))
	power = ops.Sub(b, power, square(ops.Add(b, xy, xy), dx, dy))
	alpha := ops.Mul(b, number(f.Opacities), ops.Exp(b, power))
	alpha = ops.Min(b, alpha, ops.ConstLike(b, alpha, maxAlpha))
	seen := ops.Ge(b, alpha, ops.ConstLike(b, alpha, l.minAlpha()))
	if l.Radius > 0 {
		seen = ops.And(b, seen, ops.Ge(b, power, ops.ConstLike(b, power, -l.Radius*l.Radius/2)))
	}
	return ops.Select(b, seen, alpha, ops.ZerosLike(b, alpha))
}

// covariance returns one element of each covariance matrix.
func (f Flat) covariance(b *ir.Builder, i, j int) ir.Value {
	rows := ops.Reshape(b, f.Covariances, f.Covariances.Dim(0), ir.N(4))
	return column(b, rows, 2*i+j)
}

// column returns column i of a matrix.
func column(b *ir.Builder, x ir.Value, i int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Reshape(b, ops.SliceAxis(b, x, 1, ir.N(i), ir.N(1)), x.Dim(0))
}
