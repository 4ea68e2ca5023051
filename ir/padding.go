package ir

import (
	"slices"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Extent describes which positions along an axis hold elements of the value, and which are padding,
// where symbols are bound to sizes larger than the true ones. The axis is the row-major product of
// its parts; along a part the elements come first, as many as the true size of the part, and
// padding follows. A nil Extent is an axis along which all elements are equal, padding included.
type Extent []Dim

// ExtentOf returns the extent of an axis of size d with all padding at its end.
func ExtentOf(d Dim) Extent { return Extent{d} }

// Size returns the size of the axis.
func (e Extent) Size() Dim { return Shape(e).Size() }

// PadFill is a value that padding must hold before an op computes.
type PadFill struct {
	Operand, Axis int
	Extent        Extent
	Value         scalar.Expr // a constant of the element type of the operand
}

// Padding is the context of a padding rule ([Def.Pad]) and collects its requirements. Sizes in it
// are symbolic: the true size of an open symbol is at most its bound.
type Padding struct {
	Node *Node
	// In has the extents of the axes of each operand.
	In [][]Extent
	// Open reports whether a size has a true value that may be smaller than its bound one.
	Open func(d Dim) bool

	// Out has the extents of the axes of each result. The rule sets it.
	Out [][]Extent
	// Fills are the axes of operands whose padding must hold a value: see [Padding.Fill].
	Fills []PadFill
	// NonNegative are sizes that must not be negative for the rule to hold; otherwise the graph is compiled
	// for the true sizes.
	NonNegative []Dim
	// Emit, if the rule sets it, adds the node, or others with its results, to the padded graph. By
	// default the node is copied.
	Emit func(e PadEmitter, in []Value) []Value
}

// PadEmitter adds nodes to a padded graph.
type PadEmitter interface {
	// Builder returns the builder of the padded graph.
	Builder() *Builder
	// Copy adds the node with its attributes bound.
	Copy(in ...Value) []Value
	// Bound returns the number that a size is bound to.
	Bound(d Dim) int
	// Size returns the true size, an i32 of rank 0.
	Size(d Dim) Value
	// Mask returns x with its padding along an axis replaced by value, of rank 0.
	Mask(x Value, axis int, e Extent, value Value) Value
}

// IsOpen reports whether an axis has padding.
func (p *Padding) IsOpen(e Extent) bool { return slices.ContainsFunc(e, p.Open) }

// At returns the extent of an axis of an operand, the plain one where all its elements are equal.
func (p *Padding) At(operand, axis int) Extent {
	if e := p.In[operand][axis]; e != nil {
		return e
	}
	return ExtentOf(p.Node.Input(operand).Dim(axis))
}

// Fill asks that the padding of an operand along an axis of the given extent holds a value.
func (p *Padding) Fill(operand, axis int, e Extent, value scalar.Expr) {
	if p.IsOpen(e) {
		p.Fills = append(p.Fills, PadFill{operand, axis, e, value})
	}
}

// Plain returns the extent of an axis with all padding at its end, if any. The error is of kind
// [ErrUnsupported] if there is padding between its elements.
func (p *Padding) Plain(operand, axis int) (Extent, error) {
	e := p.At(operand, axis)
	if len(e) > 1 && p.IsOpen(e) {
		return nil, Errorf(ErrUnsupported, "axis %d of operand %d has padding between its elements, the parts %s", axis, operand, Shape(e))
	}
	return e, nil
}

// Unify returns the extent of an axis of the result that two axes of equal size map to. The error
// is of kind [ErrUnsupported] if they have their padding in different places.
func (p *Padding) Unify(x, y Extent) (Extent, error) {
	switch {
	case x == nil:
		return y, nil
	case y == nil || slices.Equal(x, y) || !p.IsOpen(x) && !p.IsOpen(y):
		return x, nil
	}
	return nil, Errorf(ErrUnsupported, "operands have padding in different places along an axis: the parts %s and %s", Shape(x), Shape(y))
}

// Extents returns plain extents for a shape.
func (p *Padding) Extents(s Shape) []Extent {
	out := make([]Extent, len(s))
	for i, d := range s {
		out[i] = ExtentOf(d)
	}
	return out
}

// BindAttrs returns a copy of the node's attributes with all symbols of sizes replaced by numbers.
// The errors are those of [Graph.Bind].
func BindAttrs(n *Node, values map[string]int) (Attrs, error) {
	b := newBuilder("")
	a := sizeRule(func(d Dim) (Dim, error) { return bindDim(d, values) }).attrs(b, n)
	return a, b.err
}

// AttrDims returns the sizes in the attributes of a node, in order.
func AttrDims(n *Node) []Dim {
	var out []Dim
	if n.attrs != nil {
		n.attrs.Visit(dimVisitor{func(p *[]Dim) { out = append(out, *p...) }})
	}
	return out
}

// PortLike declares a port with the name, the kind and the options of a port of another graph, and
// another shape.
func (b *Builder) PortLike(p Port, s Shape) Value {
	return b.portWith(p.Name, p.Kind, p.Options(), Type{p.Value.DType(), s})
}
