package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Defaults of attributes, for hosts that set them by name ([ir.Completer]).

// Complete makes all axes the default.
func (a *AxesAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axes") && len(in) > 0 {
		a.Axes = counting(0, len(in[0].Shape))
	}
}

// Complete makes the last axis the default.
func (a *AxisAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axis") && len(in) > 0 {
		a.Axis = max(len(in[0].Shape)-1, 0)
	}
}

// Complete makes the last axis the default, and i32 the type of the result.
func (a *ArgAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axis") && len(in) > 0 {
		a.Axis = max(len(in[0].Shape)-1, 0)
	}
	if !given("dtype") {
		a.DType = ir.I32
	}
}

// Complete fills in strides and dilations of 1, no padding and one group.
func (a *Conv2DAttrs) Complete([]ir.Type, func(name string) bool) { a.complete() }

// Complete fills in strides and dilations of 1, no padding, one group and axes in order.
func (a *ConvAttrs) Complete(in []ir.Type, _ func(name string) bool) {
	if len(in) > 0 {
		a.complete(len(in[0].Shape))
	}
}

// Complete fills in strides as long as the windows, and no padding.
func (a *PoolAttrs) Complete([]ir.Type, func(name string) bool) { a.complete() }

// Complete fills in the last axis and an epsilon of 1e-5.
func (a *NormAttrs) Complete(_ []ir.Type, given func(name string) bool) {
	if !given("epsilon") {
		a.Epsilon = 1e-5
	}
}

// Complete fills in the scale 1/√d for queries of d elements.
func (a *AttentionAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if given("scale") || len(in) == 0 || len(in[0].Shape) == 0 {
		return
	}
	if d, ok := in[0].Shape[len(in[0].Shape)-1].Const(); ok && d > 0 {
		a.Scale = 1 / math.Sqrt(float64(d))
	}
}

// Complete fills in the element type i32.
func (a *IotaAttrs) Complete(_ []ir.Type, given func(name string) bool) {
	if !given("dtype") {
		a.DType = ir.I32
	}
}
