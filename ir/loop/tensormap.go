package loop

import (
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
	// Size is the size of a copy along each axis; along the first it is a row of a [Tile].
	Size []int
}

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

// CopyTMA starts a TMA copy of a tile of a box to a shared array of the same type; elements
// out of bounds of the box are zero. In shared memory it forms rows of a [Tile] of Depth 0,
// one for each position of the axes after the first. The copy is part of a phase of an
// [Mbarrier], which completes only after it. The threads of one warp execute it together and
// start one copy.
type CopyTMA struct {
	Map int // index in [Kernel.TensorMaps]
	// From is the origin of the tile along each axis of the box.
	From []scalar.Expr
	To   int
	ToAt scalar.Expr // a multiple of 1,024 bytes
	// Mbarrier and At name the barrier, see [Arrive].
	Mbarrier int
	At       scalar.Expr
}

// Check returns why the box is not a valid view of an array of length elements of type d, or
// "".
func (b *TensorMap) Check(d dtype.DType, length int) string {
	axes := len(b.Dims)
	switch {
	case d != dtype.F16 && d != dtype.BF16 && d != dtype.F32:
		return format.Sprintf("a box of %s", d)
	case axes < 2 || axes > maxBoxAxes || len(b.Strides) != axes-1 || len(b.Size) != axes:
		return format.Sprintf("a box of %d axes with %d strides and %d sizes", axes, len(b.Strides), len(b.Size))
	case b.Size[0] != RowElements(d):
		return format.Sprintf("a copy of %d elements of %s along the first axis, not of %d", b.Size[0], d, RowElements(d))
	case b.First < 0 || b.First%ChunkElements(d) != 0:
		return format.Sprintf("a box that begins at element %d", b.First)
	}
	left := length - b.First // elements after the origin of the remaining axes
	for i, n := range b.Dims {
		stride := 1
		if i > 0 {
			stride = b.Strides[i-1]
		}
		switch {
		case n < 1 || b.Size[i] < 1 || b.Size[i] > maxBoxSize:
			return format.Sprintf("a box of %d elements along axis %d, copied by %d", n, i, b.Size[i])
		case i > 0 && (stride < 1 || stride%ChunkElements(d) != 0):
			return format.Sprintf("rows of a box are %d elements apart along axis %d", stride, i)
		case left < 1 || n-1 > (left-1)/stride:
			return format.Sprintf("a box that ends beyond the %d elements of its array", length)
		}
		left -= (n - 1) * stride
	}
	return ""
}

// checkBox checks a box, independent of its copies.
func (c *checker) checkBox(b *TensorMap) error {
	if b.Array < 0 || b.Array >= len(c.k.Arrays) {
		return c.fail("unknown array %d of a box", b.Array)
	}
	a := c.k.Arrays[b.Array]
	if a.Space != Storage || a.Access == Atomic || a.Width != 1 || a.Len == 0 {
		return c.fail("box array %s must be storage of width 1", a.Name)
	}
	if wrong := b.Check(a.DType, a.Len); wrong != "" {
		return c.fail("%s", wrong)
	}
	return nil
}

func (c *checker) copyBox(s *CopyTMA, uniform bool) error {
	if err := c.mbarrier(s.Mbarrier, uniform, exprsOf(s)...); err != nil {
		return err
	}
	if s.Map < 0 || s.Map >= len(c.k.TensorMaps) {
		return c.fail("unknown box %d", s.Map)
	}
	to, err := c.access(s.To, 1, stores, s.ToAt)
	if err != nil {
		return err
	}
	b := &c.k.TensorMaps[s.Map]
	switch from := c.k.Arrays[b.Array]; {
	case len(s.From) != len(b.Dims):
		return c.fail("%d positions given for a box of %d axes", len(s.From), len(b.Dims))
	case to.Space != Shared || to.DType != from.DType:
		return c.fail("copy from %s of %s to %s; it must be to shared memory of its type", from.Name, from.DType, to.Name)
	case c.threads != Warp:
		return c.fail("%d threads copy a box; one warp must", c.threads)
	}
	return nil
}
