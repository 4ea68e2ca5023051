package onnx

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// call is a node being imported. Its methods record the first error and then return zero values,
// as the constructors of package ops do.
type call struct {
	*scope
	n     *node
	opset int64
	in    []*value
	out   []*value
	elems []Element // of results that are held in a wider type
	err   error
}

func (c *call) fail(err error) {
	if c.err == nil && err != nil {
		c.err = err
	}
}

func (c *call) failf(text string, args ...any) { c.fail(ir.Errorf(ir.ErrUnsupported, text, args...)) }

// has reports whether an operand is given.
func (c *call) has(i int) bool { return i < len(c.in) && c.in[i] != nil }

// needs reports whether the first n operands are given, and fails without one of them.
func (c *call) needs(n int) bool {
	for i := range n {
		if !c.has(i) {
			c.fail(damaged("operand %d is missing", i))
			return false
		}
	}
	return true
}

// x returns an operand in the graph.
func (c *call) x(i int) ir.Value {
	if !c.has(i) {
		c.fail(damaged("operand %d is missing", i))
		return ir.Value{}
	}
	return c.emit(c.in[i])
}

// xs returns all operands.
func (c *call) xs() []ir.Value {
	var out []ir.Value
	for i := range c.in {
		out = append(out, c.x(i))
	}
	return out
}

// opt returns an operand, or the zero Value if it is left out.
func (c *call) opt(i int) ir.Value {
	if !c.has(i) {
		return ir.Value{}
	}
	return c.emit(c.in[i])
}

// known returns the elements of an operand that decides about shapes.
func (c *call) known(i int) *ir.Array {
	if !c.has(i) {
		c.fail(damaged("operand %d is missing", i))
		return nil
	}
	a := c.in[i].array(c.im)
	if a == nil {
		c.fail(cmp.Or[error](c.in[i].err, &NeedError{Value: c.in[i].name, Type: c.in[i].typ, From: c.in[i].from}))
	}
	return a
}

// knownInts returns the elements of an operand as integers.
func (c *call) knownInts(i int) []int {
	a := c.known(i)
	if a == nil {
		return nil
	}
	if a.I == nil && a.Len() > 0 {
		c.fail(ir.DTypef("operand %q is of %s: it must be of integers", c.in[i].name, a.DType))
		return nil
	}
	out := make([]int, len(a.I))
	for k, x := range a.I {
		out[k] = int(x)
	}
	return out
}

// knownFloats returns the elements of an operand as floats.
func (c *call) knownFloats(i int) []float64 {
	a := c.known(i)
	if a == nil {
		return nil
	}
	out := make([]float64, a.Len())
	for k := range out {
		out[k] = a.Float(k)
	}
	return out
}

// knownInt returns the only element of an operand, or otherwise if it is left out.
func (c *call) knownInt(i, otherwise int) int {
	if !c.has(i) {
		return otherwise
	}
	list := c.knownInts(i)
	if len(list) != 1 {
		c.fail(ir.Shapef("operand %d must have one element", i))
		return otherwise
	}
	return list[0]
}

// sizes returns the elements of an operand as sizes.
func (c *call) sizes(i int) []ir.Dim {
	if !c.has(i) {
		c.fail(damaged("operand %d is missing", i))
		return nil
	}
	d, ok := c.in[i].sizes(c.im)
	if !ok {
		c.known(i)
	}
	return d
}

// maxRank is more than the axes that any op here looks at.
const maxRank = 64

// shape returns the sizes of a value's axes where they must be numbers, and after an error zeros.
func (c *call) shape(x ir.Value) []int {
	if !x.Valid() {
		return make([]int, maxRank)
	}
	s, ok := x.Shape().Ints()
	if !ok {
		c.failf("the operand is %s: its sizes must be numbers, as Options.Sizes gives them", x.Shape())
		return make([]int, x.Rank())
	}
	return s
}

// size returns the size of an axis of x, which must be a number, as those of the other axes need not.
func (c *call) size(x ir.Value, axis int) int {
	if !x.Valid() {
		return 0
	}
	n, ok := x.Dim(axis).Const()
	if !ok {
		c.failf("axis %d of %s must be a number, as Options.Sizes gives it", axis, x.Shape())
	}
	return n
}

// sizesFrom returns the sizes of the axes from one on, which must be numbers.
func (c *call) sizesFrom(x ir.Value, axis int) (sizes []int) {
	for i := axis; i < x.Rank(); i++ {
		sizes = append(sizes, c.size(x, i))
	}
	return sizes
}

// attr returns an attribute, of the function's call if it refers to one of that; nil if not given.
func (c *call) attr(name string) *attribute {
	a := c.n.attrs[name]
	if a != nil && a.ref != "" {
		return c.attrs[a.ref]
	}
	return a
}

func (c *call) hasAttr(name string) bool { return c.attr(name) != nil }

func (c *call) int(name string, otherwise int) int {
	if a := c.attr(name); a != nil {
		return int(a.i)
	}
	return otherwise
}

func (c *call) bool(name string) bool { return c.int(name, 0) != 0 }

func (c *call) float(name string, otherwise float64) float64 {
	if a := c.attr(name); a != nil {
		return a.f
	}
	return otherwise
}

func (c *call) text(name, otherwise string) string {
	if a := c.attr(name); a != nil {
		return a.s
	}
	return otherwise
}

// ints returns an attribute, nil if it is not given.
func (c *call) ints(name string) []int {
	a := c.attr(name)
	if a == nil {
		return nil
	}
	out := make([]int, len(a.ints))
	for i, x := range a.ints {
		out[i] = int(x)
	}
	return out
}

// intsOr returns an attribute of numbers, n times the same if it is not given.
func (c *call) intsOr(name string, otherwise, n int) []int {
	if given := c.ints(name); given != nil {
		return given
	}
	return spread(otherwise, n)
}

// axis returns the attribute that names an axis of x, counted from the first.
func (c *call) axis(name string, otherwise int, rank int) int {
	return c.axisOf(c.int(name, otherwise), rank)
}

func (c *call) axisOf(axis, rank int) int {
	if axis < -rank || axis >= rank {
		c.fail(ir.Errorf(ir.ErrIndex, "the axis is %d: it must be in [%d, %d)", axis, -rank, rank))
		return 0
	}
	return (axis + rank) % max(rank, 1)
}

// axesOf returns axes counted from the first.
func (c *call) axesOf(axes []int, rank int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = c.axisOf(a, rank)
	}
	return out
}

// all returns 0, 1, ..., n-1.
func all(n int) []int { return permute.Counting(0, n) }

// spread returns n copies of x.
func spread(x, n int) []int {
	return slices.Repeat([]int{x}, n)
}

// alone is the shape of values along one axis of some: the others have size 1.
func alone(size ir.Dim, axis, rank int) ir.Shape {
	shape := slices.Repeat(ir.Shape{ir.N(1)}, rank)
	if axis < rank {
		shape[axis] = size
	}
	return shape
}

// wants reports whether a result has a name and so is used.
func (c *call) wants(i int) bool { return i < len(c.n.outputs) && c.n.outputs[i] != "" }

// like returns x converted to the element type of y.
func (c *call) like(x, y ir.Value) ir.Value { return ops.Convert(c.b, x, y.DType()) }

// element returns the attribute that names an element type.
func (c *call) element(name string, otherwise Element) Element {
	e := Element(c.int(name, int(otherwise)))
	if !e.DType().Valid() {
		c.failf("attribute %s is element type %v; tensors here have no such type", name, e)
	}
	return e
}

// one returns a list of one value.
func one(x ir.Value) []ir.Value { return []ir.Value{x} }

// single returns the importer of an op with one result.
func single(f func(c *call) ir.Value) func(c *call) []ir.Value {
	return func(c *call) []ir.Value { return one(f(c)) }
}
