package ops

import "github.com/rlx-go/rlx/ir"

// AxisAttrs hold one axis.
type AxisAttrs struct{ Axis int }

// Visit shows the attributes.
func (a *AxisAttrs) Visit(v ir.AttrVisitor) { v.Int("axis", &a.Axis) }

func (a *AxisAttrs) named() []int { return []int{a.Axis} }

// AxesAttrs hold some axes.
type AxesAttrs struct{ Axes []int }

// Visit shows the attributes.
func (a *AxesAttrs) Visit(v ir.AttrVisitor) { v.Ints("axes", &a.Axes) }

func (a *AxesAttrs) named() []int { return a.Axes }

// namedAxes returns the axes in a node's attributes, of any type with a named method.
func namedAxes(n *ir.Node) []int { return n.Attrs().(interface{ named() []int }).named() }

// DTypeAttrs hold the element type of a result.
type DTypeAttrs struct{ DType ir.DType }

// Visit shows the attributes.
func (a *DTypeAttrs) Visit(v ir.AttrVisitor) { v.DType("dtype", &a.DType) }
