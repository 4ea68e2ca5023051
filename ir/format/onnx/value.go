package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// value is a value of the model during import.
type value struct {
	name string
	elem Element
	typ  ir.Type
	// What is known of the elements: all of them, those of an initializer, or, for integers of at
	// most one axis, symbolic sizes.
	known  *ir.Array
	tensor *tensor
	dims   []ir.Dim
	// axes is true if those of dims that are not numbers are sizes of axes, so that they are not negative.
	axes bool
	// constant values are of nodes: frozen weights, unless the model has no others.
	constant bool
	// list holds the elements of a sequence, or of an optional at most one. It is not nil for these.
	list     []*value
	optional bool

	at      map[*ir.Builder]ir.Value // the value in the graphs that have it
	from    []string                 // the inputs of the model that it depends on
	refused error                    // why it cannot be used
	err     error                    // why its elements could not be read
}

func (v *value) isList() bool { return v.list != nil }

func (v *value) set(b *ir.Builder, x ir.Value) {
	if v.at == nil {
		v.at = map[*ir.Builder]ir.Value{}
	}
	v.at[b] = x
}

// array returns the elements, or nil if they are not known.
func (v *value) array(im *importer) *ir.Array {
	if v.known == nil && v.tensor != nil && v.err == nil {
		v.known, v.err = v.tensor.array(im.o.Files)
	}
	return v.known
}

// sizes returns the elements of an integer tensor of at most one axis as sizes. Negative ones are
// not sizes: see [value.array].
func (v *value) sizes(im *importer) ([]ir.Dim, bool) {
	if v.dims != nil {
		return v.dims, true
	}
	if n, ok := v.typ.Shape.Size().Const(); !ok || n > foldElements || v.typ.Shape.Rank() > 1 || !v.typ.DType.IsInteger() {
		return nil, false
	}
	a := v.array(im)
	if a == nil {
		return nil, false
	}
	out := make([]ir.Dim, len(a.I))
	for i, x := range a.I {
		out[i] = dimOf(x)
	}
	return out, true
}

// dimOf returns a number as a size, negative numbers too. Numbers that no size has, as ends of slices
// that mean all, are cut.
func dimOf(x int64) ir.Dim {
	const limit = min(maxElements, math.MaxInt)
	x = min(max(x, -limit), limit)
	if x < 0 {
		return ir.N(0).Sub(ir.N(int(-x)))
	}
	return ir.N(int(x))
}

// emitDims adds symbolic sizes as an i64 value.
func emitDims(b *ir.Builder, v *value) ir.Value {
	var parts []ir.Value
	for _, d := range v.dims {
		if n, ok := constant(d); ok && n < 0 { // no size
			parts = append(parts, ops.Literal(b, ir.Ints(v.typ.DType, []int64{n}, 1)))
			continue
		}
		parts = append(parts, ops.Reshape(b, ops.DimSize(b, v.typ.DType, d), ir.N(1)))
	}
	if v.typ.Shape.Rank() == 0 {
		return ops.Reshape(b, parts[0])
	}
	if len(parts) == 0 {
		return ops.Zeros(b, v.typ.DType, ir.N(0))
	}
	return ops.Concatenate(b, 0, parts...)
}

// newDims returns a value of sizes: known where all are numbers.
func newDims(elem Element, dims []ir.Dim, rank int) *value {
	shape := ir.Shape{}
	if rank == 1 {
		shape = ir.Shape{ir.N(len(dims))}
	}
	d := elem.DType()
	v := &value{elem: elem, typ: ir.Type{DType: d, Shape: shape}, dims: dims}
	numbers := make([]int64, len(dims))
	for i, x := range dims {
		n, ok := constant(x)
		if !ok {
			return v
		}
		numbers[i] = n
	}
	v.dims = nil
	sizes, _ := shape.Ints()
	v.known = ir.Ints(d, numbers, append([]int{}, sizes...)...)
	return v
}

// constant returns a size that is a number, which may be negative.
func constant(d ir.Dim) (int64, bool) {
	if n, ok := d.Const(); ok {
		return int64(n), true
	}
	if n, ok := ir.N(0).Sub(d).Const(); ok {
		return -int64(n), true
	}
	return 0, false
}
