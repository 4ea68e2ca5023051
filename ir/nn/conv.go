package nn

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ConvOptions are the options of convolutions. Lists have an entry for each spatial axis; one entry
// means all axes.
type ConvOptions struct {
	// Name is the scope of the parameters; "" means "conv" or "conv_transpose" and a number.
	Name string
	// Kernel is the size of the window; nil means the argument kernel on all axes.
	Kernel []int
	// Stride is the step of the window, Dilation the step within it; nil means 1.
	Stride, Dilation []int
	// Same pads so that a stride of 1 keeps the sizes, with the odd element at the end; a stride s
	// gives ⌈n/s⌉ with the same padding, where TensorFlow and JAX pad as little as n needs. Not for transposed
	// convolutions.
	Same bool
	// Pad is the number of zeros on both sides; of a transposed convolution, the elements cut off
	// from both. nil means 0, "valid".
	Pad []int
	// PaddingMode names the values that Pad and Same add: [PadZeros], also for "", [PadReflect], [PadReplicate] or
	// [PadCircular]. Not for transposed convolutions.
	PaddingMode string
	// OutputPad is added at the end of a transposed convolution; nil means 0.
	OutputPad []int
	// Groups divides the channels into groups with one convolution each; 0 means 1. With as many
	// groups as channels of x the convolution is depthwise.
	Groups int
	// NoBias omits the bias.
	NoBias bool
	// Init and BiasInit initialise weight and bias; the default of both is uniform in ±1/√(fan in),
	// as in PyTorch.
	Init, BiasInit ir.Initial
	// ChannelsFirst is for x [batch, channels, spatial axes...]; by default the channels are the
	// last axis. The weight has the same axes in both.
	ChannelsFirst bool
}

// What convolutions pad with, in PyTorch's words.
const (
	PadZeros     = "zeros"
	PadReflect   = "reflect"   // the image mirrored, without its edge
	PadReplicate = "replicate" // the edge, repeated
	PadCircular  = "circular"  // the image, repeated
)

// Conv1d returns the convolution of x, [batch, time, in]: [batch, time, out]. See [Conv2d].
func Conv1d(b *ir.Builder, x ir.Value, out, kernel int, o ...ConvOptions) ir.Value {
	return conv(b, x, 1, out, kernel, o)
}

// Conv2d returns the convolution (cross-correlation) of images x, [batch, height, width, in]:
// [batch, height, width, out]. Its parameters are weight [height, width, in/groups, out] of the
// window, and bias [out]; PyTorch's weight is [out, in/groups, height, width]. Errors are recorded
// in b: of kind [ir.ErrAttr] for options outside their domain, [ir.ErrShape] for x of another rank
// and [ir.ErrSymbol] if in is symbolic.
func Conv2d(b *ir.Builder, x ir.Value, out, kernel int, o ...ConvOptions) ir.Value {
	return conv(b, x, 2, out, kernel, o)
}

// Conv3d returns the convolution of x, [batch, depth, height, width, in]: [batch, depth, height,
// width, out]. See [Conv2d].
func Conv3d(b *ir.Builder, x ir.Value, out, kernel int, o ...ConvOptions) ir.Value {
	return conv(b, x, 3, out, kernel, o)
}

// ConvTranspose1d is [ConvTranspose2d] for x [batch, time, in].
func ConvTranspose1d(b *ir.Builder, x ir.Value, out, kernel int, o ...ConvOptions) ir.Value {
	return convTranspose(b, x, 1, out, kernel, o)
}

// ConvTranspose2d returns the transposed convolution of images x, [batch, height, width, in]. An
// axis of size n becomes (n − 1)·stride + (kernel − 1)·dilation + 1 − 2·pad + output pad long. Its
// parameters are weight [height, width, in, out/groups] of the window, and bias [out]; PyTorch's
// weight is [in, out/groups, height, width]. Errors are those of [Conv2d].
func ConvTranspose2d(b *ir.Builder, x ir.Value, out, kernel int, o ...ConvOptions) ir.Value {
	return convTranspose(b, x, 2, out, kernel, o)
}

// ConvTranspose3d is [ConvTranspose2d] for x [batch, depth, height, width, in].
func ConvTranspose3d(b *ir.Builder, x ir.Value, out, kernel int, o ...ConvOptions) ir.Value {
	return convTranspose(b, x, 3, out, kernel, o)
}

func conv(b *ir.Builder, x ir.Value, axes, out, kernel int, o []ConvOptions) (y ir.Value) {
	opts := option(b, "conv", o)
	within(b, "conv", opts.Name, x, func(l *layer) {
		if !l.require(opts.OutputPad == nil, "OutputPad is %v: it must be left out, as it is for transposed convolutions", opts.OutputPad) {
			return
		}
		in, ok := convolution(l, &opts, axes, out, kernel)
		if !ok {
			return
		}
		low, high := opts.Pad, opts.Pad
		if opts.Same {
			low, high = ops.SamePadding(opts.Kernel, opts.Dilation)
		}
		x, low, high := padded(l, opts, low, high)
		weight, bias := convParams(l, opts, in/opts.Groups, out, in/opts.Groups)
		if axes == 2 && !opts.ChannelsFirst {
			y = ops.Conv2D(b, x, weight, bias, ops.Conv2DAttrs{Strides: opts.Stride, Dilations: opts.Dilation, PadLo: low, PadHi: high, Groups: opts.Groups})
			return
		}
		a := layouts(axes, opts.ChannelsFirst)
		if !reaches(l, x, a.Lhs[2:], opts, low, high) {
			return
		}
		a.Strides, a.RhsDilation, a.PadLo, a.PadHi, a.FeatureGroups = opts.Stride, opts.Dilation, low, high, ir.N(opts.Groups)
		y = ops.ConvGeneral(b, x, weight, a)
		if bias.Valid() && b.Err() == nil {
			y = ops.Add(b, y, ops.BroadcastInDim(b, bias, y.Shape(), []int{a.Out[1]}))
		}
	})
	return y
}

// padded pads the spatial axes of x by elements of its own, and returns the padding that is left.
func padded(l *layer, o ConvOptions, low, high []int) (x ir.Value, restLow, restHigh []int) {
	modes := map[string]string{PadReflect: ops.PadReflect, PadReplicate: ops.PadEdge, PadCircular: ops.PadWrap}
	mode, ok := modes[o.PaddingMode]
	if !ok {
		l.require(o.PaddingMode == "" || o.PaddingMode == PadZeros, "PaddingMode is %q: it must be %q, %q, %q or %q", o.PaddingMode, PadZeros, PadReflect, PadReplicate, PadCircular)
		return l.x, low, high
	}
	around := func(list []int) []int {
		if o.ChannelsFirst {
			return slices.Concat([]int{0, 0}, list)
		}
		return slices.Concat([]int{0}, list, []int{0})
	}
	none := make([]int, len(low))
	return ops.PadMode(l.Builder, l.x, around(low), around(high), mode), none, none
}

// reaches refuses a kernel that is longer than an axis of x with its padding, as [ops.Conv2D] does and [ops.ConvGeneral], whose
// result is then empty, does not.
func reaches(l *layer, x ir.Value, axes []int, o ConvOptions, low, high []int) bool {
	for i, axis := range axes {
		n, ok := x.Dim(axis).Const()
		if ok && n > 0 && n+low[i]+high[i] < (o.Kernel[i]-1)*o.Dilation[i]+1 {
			l.fail(ir.Shapef("a kernel of %d with dilation %d is longer than axis %d of x, %d elements padded by %d and %d", o.Kernel[i], o.Dilation[i], axis, n, low[i], high[i]))
			return false
		}
	}
	return true
}

// layouts returns the axes of batch, features and space of a convolution over some axes. The weight
// is [window..., in, out].
func layouts(axes int, channelsFirst bool) ops.ConvAttrs {
	x, w := []int{0, axes + 1}, []int{axes + 1, axes}
	first := 1
	if channelsFirst {
		x, first = []int{0, 1}, 2
	}
	for i := range axes {
		x, w = append(x, first+i), append(w, i)
	}
	return ops.ConvAttrs{Lhs: x, Rhs: w, Out: x}
}

func convTranspose(b *ir.Builder, x ir.Value, axes, out, kernel int, o []ConvOptions) (y ir.Value) {
	opts := option(b, "conv_transpose", o)
	within(b, "conv_transpose", opts.Name, x, func(l *layer) {
		l.require(opts.PaddingMode == "", "PaddingMode is %q: it must be left out for a transposed convolution", opts.PaddingMode)
		in, ok := convolution(l, &opts, axes, out, kernel)
		if !ok || !l.require(!opts.Same, "Same is set: a transposed convolution must have Pad instead") {
			return
		}
		opts.OutputPad = l.perAxis("OutputPad", opts.OutputPad, 0, 0, axes)
		weight, bias := convParams(l, opts, in, out/opts.Groups, out/opts.Groups)
		if b.Err() != nil {
			return
		}
		a := ops.ConvTransposeAttrs{
			Strides: opts.Stride, Dilations: opts.Dilation, PadLo: opts.Pad, PadHi: opts.Pad, OutputPadding: opts.OutputPad, Groups: opts.Groups,
		}
		y = channelsLast(l, opts.ChannelsFirst, func(x ir.Value) ir.Value { return ops.ConvTranspose(b, x, weight, bias, a) })
		requireResult(l, y)
	})
	return y
}

// requireResult refuses a y whose axis is empty where that of x is not, as one is from which Pad cuts off all elements.
func requireResult(l *layer, y ir.Value) {
	if l.Err() != nil {
		return
	}
	for i := range y.Rank() {
		if !l.require(!y.Dim(i).Is(0) || l.x.Dim(i).Is(0), "pad cuts off all elements of axis %d of the result", i) {
			return
		}
	}
}

// convolution checks and completes the options of a convolution and returns the number of input
// channels.
func convolution(l *layer, o *ConvOptions, axes, out, kernel int) (in int, ok bool) {
	if l.x.Rank() != axes+2 {
		l.fail(ir.Shapef("x is %s: it must have %d axes, a batch, %d of space and channels", l.x.Type(), axes+2, axes))
		return 0, false
	}
	in = l.size(channelAxis(o.ChannelsFirst))
	o.Kernel = l.perAxis("kernel", o.Kernel, kernel, 1, axes)
	o.Stride = l.perAxis("Stride", o.Stride, 1, 1, axes)
	o.Dilation = l.perAxis("Dilation", o.Dilation, 1, 1, axes)
	l.require(!o.Same || o.Pad == nil, "Pad is %v and Same is set: one must be left out", o.Pad)
	o.Pad = l.perAxis("Pad", o.Pad, 0, 0, axes)
	l.require(o.Groups >= 0 && out >= 1, "Groups is %d and out %d: the first must not be negative, the second 1 or more", o.Groups, out)
	o.Groups = max(o.Groups, 1)
	ok = l.require(in%o.Groups == 0 && out%o.Groups == 0, "Groups is %d: it must divide the channels of x, %d, and out, %d", o.Groups, in, out)
	return in, ok
}

// perAxis returns a list with one entry for each axis: usual if the list is nil, or its single
// entry repeated. An entry below least or another length is an error of kind [ir.ErrAttr].
func (l *layer) perAxis(what string, list []int, usual, least, axes int) []int {
	switch len(list) {
	case 0:
		list = slices.Repeat([]int{usual}, axes)
	case 1:
		list = slices.Repeat(list, axes)
	}
	l.require(len(list) == axes, "%s has %d entries: it must have one, or one for each of %d axes", what, len(list), axes)
	l.require(slices.Min(list) >= least, "%s is %v: each entry must be %d or more", what, list, least)
	return list
}

// convParams declares a weight [window..., rows, cols] and a bias. fan is the number of channels
// that PyTorch counts as the fan in.
func convParams(l *layer, o ConvOptions, rows, cols, fan int) (weight, bias ir.Value) {
	out := cols
	for _, k := range o.Kernel {
		fan *= k
	}
	if l.kind == "conv_transpose" {
		out *= o.Groups
	}
	weight = l.param("weight", o.Init, fanIn(fan), append(slices.Clone(o.Kernel), rows, cols)...)
	if !o.NoBias {
		bias = l.param("bias", o.BiasInit, fanIn(fan), out)
	}
	return weight, bias
}
