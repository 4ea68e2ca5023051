package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

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

// Defaults of attributes, for hosts that set them by name ([ir.Defaulter]).

// defaultAxis makes the last axis of the first operand the default.
func defaultAxis(axis *int, in []ir.Type, given func(name string) bool) {
	if !given("axis") && len(in) > 0 {
		*axis = max(len(in[0].Shape)-1, 0)
	}
}

// defaultAxes makes all axes of the first operand the default.
func defaultAxes(axes *[]int, in []ir.Type, given func(name string) bool) {
	if !given("axes") && len(in) > 0 {
		*axes = counting(0, len(in[0].Shape))
	}
}

// Complete sets the default: all axes.
func (a *AxesAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxes(&a.Axes, in, given)
}

// Complete sets the default: the last axis.
func (a *AxisAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxis(&a.Axis, in, given)
}

// Complete sets the defaults: the last axis, and i32 for the result.
func (a *ArgAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxis(&a.Axis, in, given)
	if !given("dtype") {
		a.DType = ir.I32
	}
}

// Complete sets the defaults: strides, dilations and groups of 1, and no padding.
func (a *Conv2DAttrs) Complete([]ir.Type, func(name string) bool) { a.complete() }

// Complete sets the defaults: strides, dilations and groups of 1, no padding, and axes in
// order.
func (a *ConvAttrs) Complete(in []ir.Type, _ func(name string) bool) {
	if len(in) > 0 {
		a.complete(len(in[0].Shape))
	}
}

// Complete sets the defaults: strides of the window sizes, and no padding.
func (a *PoolAttrs) Complete([]ir.Type, func(name string) bool) { a.complete() }

// Complete sets the defaults: the last axis, and an epsilon of 1e-5.
func (a *NormAttrs) Complete(_ []ir.Type, given func(name string) bool) {
	if !given("epsilon") {
		a.Epsilon = 1e-5
	}
}

// Complete sets the default scale 1/√d for queries of d elements.
func (a *AttentionAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if given("scale") || len(in) == 0 || len(in[0].Shape) == 0 {
		return
	}
	if d, ok := in[0].Shape[len(in[0].Shape)-1].Const(); ok && d > 0 {
		a.Scale = 1 / math.Sqrt(float64(d))
	}
}

// Complete sets the default scale 1/√d for queries of d elements.
func (a *CachedAttentionAttrs) Complete(in []ir.Type, given func(name string) bool) {
	s := AttentionAttrs{Scale: a.Scale}
	s.Complete(in, given)
	a.Scale = s.Scale
}

// Complete sets the default element type i32.
func (a *IotaAttrs) Complete(_ []ir.Type, given func(name string) bool) {
	if !given("dtype") {
		a.DType = ir.I32
	}
}
