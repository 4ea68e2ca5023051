package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// PoolOptions are the options of [MaxPool] and [AvgPool]. Lists have an entry for each spatial axis;
// one entry means all axes.
type PoolOptions struct {
	// Window is the size of the window; nil means the argument size on all axes.
	Window []int
	// Stride is the step of the window; nil means its size.
	Stride []int
	// Dilation is the step within the window; nil means 1.
	Dilation []int
	// Same pads so that a stride of 1 keeps the sizes.
	Same bool
	// Pad is the padding on both sides; nil means 0.
	Pad []int
	// ExcludePad leaves padding out of the mean of AvgPool; PyTorch's count_include_pad is its
	// opposite.
	ExcludePad bool
	// ChannelsFirst is for x [batch, channels, spatial axes...]; by default the channels are the
	// last axis.
	ChannelsFirst bool
}

// MaxPool returns the largest element of each window of x, [batch, spatial axes..., channels], with
// size elements along each axis. Padding is ignored. Errors are recorded in b: of kind [ir.ErrAttr]
// for options outside their domain.
func MaxPool(b *ir.Builder, x ir.Value, size int, o ...PoolOptions) ir.Value {
	opts := option(b, "max_pool", o)
	return pool(b, "max_pool", x, size, opts, func(x ir.Value, a ops.PoolAttrs) ir.Value { return ops.MaxPool(b, x, a) })
}

// AvgPool returns the mean of each window of x, [batch, spatial axes..., channels], with size
// elements along each axis; zeros of the padding count unless ExcludePad is set. Errors are
// recorded in b: of kind [ir.ErrAttr] for options outside their domain.
func AvgPool(b *ir.Builder, x ir.Value, size int, o ...PoolOptions) ir.Value {
	opts := option(b, "avg_pool", o)
	return pool(b, "avg_pool", x, size, opts, func(x ir.Value, a ops.PoolAttrs) ir.Value {
		return ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: a, CountIncludePad: !opts.ExcludePad})
	})
}

func pool(b *ir.Builder, kind string, x ir.Value, size int, o PoolOptions, f func(x ir.Value, a ops.PoolAttrs) ir.Value) ir.Value {
	if !b.Require(ir.Op("nn."+kind), "input", x.Valid()) {
		return ir.Value{}
	}
	l := &layer{b, kind, x}
	if !l.rank(3, "[batch, spatial axes..., channels]") {
		return ir.Value{}
	}
	axes := x.Rank() - 2
	o.Window = l.perAxis("the window", o.Window, size, 1, axes)
	if o.Stride == nil {
		o.Stride = o.Window
	}
	o.Stride = l.perAxis("Stride", o.Stride, 1, 1, axes)
	o.Dilation = l.perAxis("Dilation", o.Dilation, 1, 1, axes)
	l.require(!o.Same || o.Pad == nil, "Pad is %v and Same is set: one must be left out", o.Pad)
	o.Pad = l.perAxis("Pad", o.Pad, 0, 0, axes)
	if b.Err() != nil {
		return ir.Value{}
	}
	a := ops.PoolAttrs{Sizes: o.Window, Strides: o.Stride, Dilations: o.Dilation, PadLo: o.Pad, PadHi: o.Pad}
	if o.Same {
		a.PadLo, a.PadHi = ops.SamePadding(o.Window, o.Dilation)
	}
	return channelsLast(l, o.ChannelsFirst, func(x ir.Value) ir.Value { return f(x, a) })
}

// GlobalAvgPool returns the mean of x, [batch, spatial axes..., channels], over the spatial axes:
// [batch, channels].
func GlobalAvgPool(b *ir.Builder, x ir.Value) ir.Value {
	return overSpace(b, "global_avg_pool", x, ops.Mean)
}

// GlobalMaxPool returns the largest elements of x, [batch, spatial axes..., channels], over the
// spatial axes: [batch, channels].
func GlobalMaxPool(b *ir.Builder, x ir.Value) ir.Value {
	return overSpace(b, "global_max_pool", x, ops.ReduceMax)
}

// overSpace reduces the spatial axes of x.
func overSpace(b *ir.Builder, kind string, x ir.Value, reduce func(b *ir.Builder, x ir.Value, axes ...int) ir.Value) ir.Value {
	if !b.Require(ir.Op("nn."+kind), "input", x.Valid()) {
		return ir.Value{}
	}
	l := &layer{b, kind, x}
	if !l.rank(3, "[batch, spatial axes..., channels]") {
		return ir.Value{}
	}
	axes := make([]int, x.Rank()-2)
	for i := range axes {
		axes[i] = i + 1
	}
	return reduce(b, x, axes...)
}
