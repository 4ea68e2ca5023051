package ops

import "github.com/rlx-go/rlx/ir"

// AxisAttrs name the one axis that an op works along.
type AxisAttrs struct{ Axis int }

// Visit shows the attributes.
func (a *AxisAttrs) Visit(v ir.AttrVisitor) { v.Int("axis", &a.Axis) }

// AxesAttrs name some axes.
type AxesAttrs struct{ Axes []int }

// Visit shows the attributes.
func (a *AxesAttrs) Visit(v ir.AttrVisitor) { v.Ints("axes", &a.Axes) }

// DTypeAttrs name the element type of a result.
type DTypeAttrs struct{ DType ir.DType }

// Visit shows the attributes.
func (a *DTypeAttrs) Visit(v ir.AttrVisitor) { v.DType("dtype", &a.DType) }
