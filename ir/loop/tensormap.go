package loop

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TensorMap is a view of a storage array that [CopyTMA] copies tiles from: a CUDA tensor map (PTX
// ISA, "Tensors").
type TensorMap struct {
	Array int
	// First is the element of the array at the origin of the view.
	First int
	// Dims are the sizes of the view, the contiguous axis first. Strides are those of the
	// other axes, in elements. First and Strides are multiples of 16 bytes.
	Dims, Strides []int
	// Size is the size of a copy along each axis; along the first it is a row of a [Tile]. A copy in im2col mode
	// has two sizes: the row, and the number of its pixels.
	Size []int
	// Im2col, if not nil, makes the copies those of im2col mode.
	Im2col *Im2col
}

// Im2col is the im2col mode of a tensor map of images (PTX ISA, "Tensors: Im2col mode"). The first axis of the view has the
// channels, the last one the images, and those in between are spatial. A copy visits pixels, one after the other: along the first
// spatial axis from Lower to the end of the axis plus Upper, both inclusive, by Step, then along the next one, and so on from image to
// image. It reads each at an offset from its position, the same for all; what lies outside of the view is zero. The lists have an entry for
// each spatial axis.
type Im2col struct{ Lower, Upper, Step []int }

// Pixels returns the number of pixels along spatial axis i of a view.
func (c *Im2col) Pixels(b *TensorMap, i int) int {
	return (b.Dims[i+1]-1+c.Upper[i]-c.Lower[i])/c.Step[i] + 1
}

// MaxIm2colStep is the maximal step between pixels (CUDA Driver API, cuTensorMapEncodeIm2col).
const MaxIm2colStep = 8

// Im2colBits returns the bits of a signed corner and of an unsigned offset along each of one to three spatial axes (CUDA Driver API,
// cuTensorMapEncodeIm2col; PTX ISA, "Im2col mode").
func Im2colBits(spatial int) int { return 16 / spatial }

// maxBoxAxes and maxBoxSize are the maximal rank of a [TensorMap] and size of a copy along an axis
// (CUDA Driver API, cuTensorMapEncodeTiled).
const (
	maxBoxAxes = 5
	maxBoxSize = 256
)

// Elements returns the number of elements of a copy.
func (b *TensorMap) Elements() int {
	n := 1
	for _, size := range b.Size {
		n *= size
	}
	return n
}

// CopyTMA starts a TMA copy of a tile of a tensor map to a shared array of the same type; elements
// out of bounds of the tensor map are zero. In shared memory it forms rows of a [Tile] of Depth 0,
// one for each position of the axes after the first. The copy is part of a phase of an
// [Mbarrier], which completes only after it. The threads of one warp execute it together and
// start one copy.
type CopyTMA struct {
	Map int // index in [Kernel.TensorMaps]
	// From is the origin of the tile along each axis of the tensor map; in im2col mode that of the first pixel and channel.
	From []scalar.Expr
	// Offset is the offset of the read elements along each spatial axis, in im2col mode only.
	Offset []scalar.Expr
	To     int
	ToAt   scalar.Expr // a multiple of 1,024 bytes
	// Mbarrier and At name the barrier, see [Arrive].
	Mbarrier int
	At       scalar.Expr
}

// Check returns why the tensor map is not a valid view of an array of length elements of type d, or
// "".
func (b *TensorMap) Check(d dtype.DType, length int) string {
	axes := len(b.Dims)
	switch {
	case d != dtype.F16 && d != dtype.BF16 && d != dtype.F32:
		return format.Sprintf("a tensor map of %s", d)
	case axes < 2 || axes > maxBoxAxes || len(b.Strides) != axes-1 || len(b.Size) != b.sizes():
		return format.Sprintf("a tensor map of %d axes with %d strides and %d sizes", axes, len(b.Strides), len(b.Size))
	case b.Im2col != nil && !b.Im2col.fits(axes-2):
		return format.Sprintf("pixels of a tensor map of %d axes from %d to %d by %d", axes, b.Im2col.Lower, b.Im2col.Upper, b.Im2col.Step)
	case slices.ContainsFunc(b.Size, func(n int) bool { return n < 1 || n > maxBoxSize }):
		return format.Sprintf("copies of %d elements of a tensor map", b.Size)
	case b.Size[0] != RowElements(d):
		return format.Sprintf("a copy of %d elements of %s along the first axis, not of %d", b.Size[0], d, RowElements(d))
	case b.First < 0 || b.First%ChunkElements(d) != 0:
		return format.Sprintf("a tensor map that begins at element %d", b.First)
	}
	left := length - b.First // elements after the origin of the remaining axes
	for i, n := range b.Dims {
		stride := 1
		if i > 0 {
			stride = b.Strides[i-1]
		}
		switch {
		case n < 1:
			return format.Sprintf("a tensor map of %d elements along axis %d", n, i)
		case i > 0 && (stride < 1 || stride%ChunkElements(d) != 0):
			return format.Sprintf("rows of a tensor map are %d elements apart along axis %d", stride, i)
		case left < 1 || n-1 > (left-1)/stride:
			return format.Sprintf("a tensor map that ends beyond the %d elements of its array", length)
		}
		left -= (n - 1) * stride
	}
	return ""
}

// sizes returns the number of sizes of a copy.
func (b *TensorMap) sizes() int {
	if b.Im2col != nil {
		return 2
	}
	return len(b.Dims)
}

// fits reports whether the pixels are within the limits of a map with some spatial axes.
func (c *Im2col) fits(spatial int) bool {
	if spatial < 1 || len(c.Lower) != spatial || len(c.Upper) != spatial || len(c.Step) != spatial {
		return false
	}
	end := 1 << (Im2colBits(spatial) - 1)
	for i := range spatial {
		if min(c.Lower[i], c.Upper[i]) < -end || max(c.Lower[i], c.Upper[i]) >= end || c.Step[i] < 1 || c.Step[i] > MaxIm2colStep {
			return false
		}
	}
	return true
}

// checkTensorMap checks a tensor map, independent of its copies.
func (c *checker) checkTensorMap(b *TensorMap) error {
	if b.Array < 0 || b.Array >= len(c.k.Arrays) {
		return c.fail("unknown array %d of a tensor map", b.Array)
	}
	a := c.k.Arrays[b.Array]
	if a.Space != Storage || a.Access == Atomic || a.Width != 1 || a.Len == 0 {
		return c.fail("tensor map array %s must be storage of width 1", a.Name)
	}
	if wrong := b.Check(a.DType, a.Len); wrong != "" {
		return c.fail("%s", wrong)
	}
	return nil
}

func (c *checker) copyTMA(s *CopyTMA, uniform bool) error {
	if err := c.mbarrier(s.Mbarrier, uniform, exprsOf(s)...); err != nil {
		return err
	}
	if s.Map < 0 || s.Map >= len(c.k.TensorMaps) {
		return c.fail("unknown tensor map %d", s.Map)
	}
	to, err := c.access(s.To, 1, stores, s.ToAt)
	if err != nil {
		return err
	}
	b := &c.k.TensorMaps[s.Map]
	switch from := c.k.Arrays[b.Array]; {
	case len(s.From) != len(b.Dims) || b.Im2col == nil && len(s.Offset) > 0 || b.Im2col != nil && len(s.Offset) != len(b.Dims)-2:
		return c.fail("%d positions and %d offsets given for a tensor map of %d axes", len(s.From), len(s.Offset), len(b.Dims))
	case to.Space != Shared || to.DType != from.DType:
		return c.fail("copy from %s of %s to %s; it must be to shared memory of its type", from.Name, from.DType, to.Name)
	case c.threads != Warp:
		return c.fail("%d threads copy by a tensor map; one warp must", c.threads)
	}
	return nil
}
