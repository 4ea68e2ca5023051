package splat

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Project projects a cloud to a camera's image: the means, covariances
// J·R·Σ·Rᵀ·Jᵀ by the Jacobian J of the projection at the mean (Zwicker et al., EWA
// Splatting), with 0.3 square pixels added to the variances, and depths, and the colors
// seen from the camera. The projection is infinite at depth 0: [Image.Near] culls it.
//
// A maximum anisotropy below 1 is an error of kind [ir.ErrAttr]; for harmonics see
// [Harmonics].
func Project(b *ir.Builder, c Cloud, camera Camera) Flat {
	if b.Err() != nil {
		return Flat{}
	}
	n := c.Means.Dim(0)
	seen := ops.Add(b, ops.MatMul(b, c.Means, flipped(b, camera.Rotation)), camera.Translation)
	z := column(b, seen, 2)
	slopes := ops.Div(b, ops.SliceAxis(b, seen, 1, ir.N(0), ir.N(2)), ops.ExpandDims(b, z, 1)) // x/z and y/z
	means := ops.Add(b, ops.Mul(b, slopes, camera.Focal), camera.Center)

	// J is Focal/z·(1, 0, −x/z) and Focal/z·(0, 1, −y/z).
	unit := ops.Literal(b, ir.Floats(c.Means.DType(), []float64{1, 0, 0, 1}, 2, 2))
	unit = ops.BroadcastInDim(b, unit, ir.Shape{n, ir.N(2), ir.N(2)}, []int{1, 2})
	rows := ops.Concatenate(b, 2, unit, ops.ExpandDims(b, ops.Neg(b, slopes), 2))
	scale := ops.Div(b, camera.Focal, ops.ExpandDims(b, z, 1))
	j := ops.MatMul(b, ops.Mul(b, rows, ops.ExpandDims(b, scale, 2)), camera.Rotation)
	axes := ops.MatMul(b, j, ops.Mul(b, rotations(b, c.Rotations), ops.ExpandDims(b, c.scales(b), 1)))
	covariances := ops.Add(b, ops.MatMul(b, axes, flipped(b, axes)), ops.Mul(b, unit, ops.ConstLike(b, unit, blur)))
	return Flat{Means: means, Covariances: covariances, Depths: z, Opacities: c.Opacities, Colors: c.colors(b, camera)}
}

// colors returns those seen from the camera, which is at −Rotationᵀ·Translation.
func (c Cloud) colors(b *ir.Builder, camera Camera) ir.Value {
	if !c.Harmonics.Valid() {
		return c.Colors
	}
	at := ops.MatMul(b, ops.ExpandDims(b, camera.Translation, 0), camera.Rotation)
	return Harmonics(b, c.Harmonics, ops.Add(b, c.Means, at), c.Bands)
}

// scales returns those of a limited anisotropy.
func (c Cloud) scales(b *ir.Builder) ir.Value {
	if c.MaxAnisotropy == 0 {
		return c.Scales
	}
	if !(c.MaxAnisotropy >= 1) {
		b.Fail(ir.Attrf("splat: the maximum anisotropy is %v; it must be 0 or at least 1", c.MaxAnisotropy))
		return ir.Value{}
	}
	largest := ops.KeepDims(b, ops.ReduceMax, c.Scales, 1)
	return ops.Max(b, c.Scales, ops.Mul(b, largest, ops.ConstLike(b, largest, 1/c.MaxAnisotropy)))
}

// rotations returns the matrices [n, 3, 3] of quaternions.
func rotations(b *ir.Builder, q ir.Value) ir.Value {
	q = ops.Div(b, q, ops.ExpandDims(b, ops.Norm(b, q, 2, 1), 1))
	w, v := column(b, q, 0), [3]ir.Value{column(b, q, 1), column(b, q, 2), column(b, q, 3)}
	two := ops.ConstLike(b, w, 2)
	double := func(x, y ir.Value) ir.Value { return ops.Mul(b, two, ops.Mul(b, x, y)) }
	var m [9]ir.Value
	for i := range 3 {
		j, k := (i+1)%3, (i+2)%3
		m[4*i] = ops.Sub(b, ops.OnesLike(b, w), ops.Add(b, double(v[j], v[j]), double(v[k], v[k])))
		m[3*i+j] = ops.Sub(b, double(v[i], v[j]), double(w, v[k]))
		m[3*j+i] = ops.Add(b, double(v[i], v[j]), double(w, v[k]))
	}
	return ops.Reshape(b, ops.Stack(b, 1, m[:]...), q.Dim(0), ir.N(3), ir.N(3))
}

// flipped swaps the last two axes.
func flipped(b *ir.Builder, x ir.Value) ir.Value { return ops.MoveAxis(b, x, -1, -2) }
