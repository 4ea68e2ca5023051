package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// NormOptions are the options of [LayerNorm], [RMSNorm], [GroupNorm] and [InstanceNorm].
type NormOptions struct {
	// Name is the scope of the parameters; "" means the kind of layer and a number.
	Name string
	// Epsilon is added to the variance; 0 means 1e-5, and for RMSNorm 1e-6.
	Epsilon float64
	// NoBias omits the bias, and NoAffine weight and bias. RMSNorm has no bias.
	NoBias, NoAffine bool
	// ChannelsFirst is for images [batch, channels, spatial axes...]; by default the channels are
	// the last axis. LayerNorm and RMSNorm then normalise the channels of each position.
	ChannelsFirst bool
}

// LayerNorm normalises the last axis of x, [..., n], to mean 0 and variance 1 and applies weight
// and bias, [n], ones and zeros at first (Ba, Kiros and Hinton). Errors are recorded in b.
func LayerNorm(b *ir.Builder, x ir.Value, o ...NormOptions) ir.Value {
	return norm(b, "layer_norm", x, o, func(l *layer, x, scale, bias ir.Value, epsilon float64) ir.Value {
		return ops.LayerNorm(l.Builder, x, scale, bias, epsilon)
	})
}

// RMSNorm divides the last axis of x, [..., n], by its root mean square and multiplies it with
// weight, [n], ones at first (Zhang and Sennrich). Errors are recorded in b.
func RMSNorm(b *ir.Builder, x ir.Value, o ...NormOptions) ir.Value {
	opts := option(b, "rms_norm", o)
	opts.NoBias = true
	if opts.Epsilon == 0 {
		opts.Epsilon = 1e-6
	}
	return norm(b, "rms_norm", x, []NormOptions{opts}, func(l *layer, x, scale, _ ir.Value, epsilon float64) ir.Value {
		return ops.RMSNorm(l.Builder, x, scale, epsilon)
	})
}

// GroupNorm normalises the channels of x, [batch, spatial axes..., channels], in groups of equal
// size, over the group and the spatial axes. It applies weight and bias, [channels], ones and zeros
// at first (Wu and He). Errors are recorded in b: of kind [ir.ErrAttr] if groups does not divide
// the channels.
func GroupNorm(b *ir.Builder, x ir.Value, groups int, o ...NormOptions) ir.Value {
	return norm(b, "group_norm", x, o, func(l *layer, x, scale, bias ir.Value, epsilon float64) ir.Value {
		channels, _ := scale.Dim(0).Const()
		if !l.require(groups >= 1 && channels%max(groups, 1) == 0, "groups is %d: it must divide the channels, %d", groups, channels) {
			return ir.Value{}
		}
		return ops.GroupNorm(l.Builder, x, scale, bias, groups, epsilon)
	})
}

// InstanceNorm normalises each channel of each example of x, [batch, spatial axes..., channels],
// over the spatial axes, and applies weight and bias, [channels], ones and zeros at first (Ulyanov,
// Vedaldi and Lempitsky). PyTorch's has neither by default: see NoAffine. Errors are recorded in b.
func InstanceNorm(b *ir.Builder, x ir.Value, o ...NormOptions) ir.Value {
	return norm(b, "instance_norm", x, o, func(l *layer, x, scale, bias ir.Value, epsilon float64) ir.Value {
		return ops.InstanceNorm(l.Builder, x, scale, bias, epsilon)
	})
}

// norm declares weight and bias and calls f, with the channels of x last.
func norm(b *ir.Builder, kind string, x ir.Value, o []NormOptions, f func(l *layer, x, scale, bias ir.Value, epsilon float64) ir.Value) (y ir.Value) {
	opts := option(b, kind, o)
	within(b, kind, opts.Name, x, func(l *layer) {
		if !l.require(opts.Epsilon >= 0, "Epsilon is %v: it must not be negative", opts.Epsilon) {
			return
		}
		if opts.Epsilon == 0 {
			opts.Epsilon = 1e-5
		}
		scale, bias := affineParams(l, opts)
		y = channelsLast(l, opts.ChannelsFirst, func(x ir.Value) ir.Value { return f(l, x, scale, bias, opts.Epsilon) })
	})
	return y
}

// affineParams declares weight and bias of the channels of x. Without parameters they are ones and no
// bias.
func affineParams(l *layer, o NormOptions) (scale, bias ir.Value) {
	channels := l.size(channelAxis(o.ChannelsFirst))
	if l.Err() != nil {
		return scale, bias
	}
	if o.NoAffine {
		return ops.Ones(l.Builder, l.x.DType(), ir.N(channels)), bias
	}
	scale = l.param("weight", ir.Initial{}, Constant(1), channels)
	if !o.NoBias {
		bias = l.param("bias", ir.Initial{}, Constant(0), channels)
	}
	return scale, bias
}

// channelAxis returns the axis of channels, from the end if they are last.
func channelAxis(first bool) int {
	if first {
		return 1
	}
	return -1
}

// channelsLast returns f of the layer's input with its channels last, and moves the channels of the
// result back.
func channelsLast(l *layer, first bool, f func(x ir.Value) ir.Value) ir.Value {
	if !first || l.Err() != nil {
		return f(l.x)
	}
	y := f(ops.MoveAxis(l.Builder, l.x, 1, -1))
	return ops.MoveAxis(l.Builder, y, -1, 1)
}

// BatchNormOptions are the options of [BatchNorm].
type BatchNormOptions struct {
	// Name is the scope of parameters and states; "" means "batch_norm" and a number.
	Name string
	// Epsilon is added to the variance; 0 means 1e-5.
	Epsilon float64
	// Momentum is the weight of a batch in the running statistics, as in PyTorch; 0 means 0.1.
	Momentum float64
	// NoAffine omits weight and bias.
	NoAffine bool
	// ChannelsFirst is for images [batch, channels, spatial axes...]; by default the channels are
	// the last axis.
	ChannelsFirst bool
}

// BatchNorm normalises each channel of x, [batch, spatial axes..., channels], and applies weight
// and bias, [channels], ones and zeros at first (Ioffe and Szegedy). In training ([Train]) it uses
// mean and variance of the batch and moves the states running_mean and running_var, zeros and ones
// at first, towards them, the variance unbiased; in inference it uses these, which are then frozen
// parameters. Errors are recorded in b: of kind [ir.ErrGraph] without [Train] or [Infer], and
// [ir.ErrShape] for training with one value per channel.
func BatchNorm(b *ir.Builder, x ir.Value, o ...BatchNormOptions) (y ir.Value) {
	opts := option(b, "batch_norm", o)
	within(b, "batch_norm", opts.Name, x, func(l *layer) {
		inDomain := opts.Epsilon >= 0 && opts.Momentum >= 0 && opts.Momentum <= 1
		if !l.require(inDomain, "Epsilon is %v and Momentum %v: neither must be negative, nor Momentum above 1", opts.Epsilon, opts.Momentum) || !l.rank(2, "[batch, ..., channels]") {
			return
		}
		if opts.Epsilon == 0 {
			opts.Epsilon = 1e-5
		}
		y = channelsLast(l, opts.ChannelsFirst, func(x ir.Value) ir.Value { return batchNorm(l, x, opts) })
	})
	return y
}

func batchNorm(l *layer, x ir.Value, o BatchNormOptions) ir.Value {
	scale, bias := affineParams(l, NormOptions{NoAffine: o.NoAffine, ChannelsFirst: o.ChannelsFirst})
	if l.Err() != nil {
		return ir.Value{}
	}
	if !bias.Valid() {
		bias = ops.ZerosLike(l.Builder, scale)
	}
	channels, _ := scale.Dim(0).Const()
	const meanName, varianceName = "running_mean", "running_var"
	if !l.training() {
		mean := l.paramOf(meanName, ir.PortOptions{Initial: Constant(0), Frozen: true}, x.DType(), channels)
		variance := l.paramOf(varianceName, ir.PortOptions{Initial: Constant(1), Frozen: true}, x.DType(), channels)
		return ops.BatchNormInference(l.Builder, x, ops.BatchNormVectors{Scale: scale, Bias: bias, Mean: mean, Variance: variance}, o.Epsilon)
	}
	if n, ok := x.Shape().Size().Const(); ok && n == channels {
		l.fail(ir.Shapef("x is %s: there must be more than one value for each channel in training", l.x.Type()))
		return ir.Value{}
	}
	if _, ok := l.sharedPort(meanName, ir.StatePort, x.DType(), []int{channels}); !ok {
		l.StateWith(meanName, ir.PortOptions{Initial: Constant(0)}, x.DType(), ir.N(channels))
		l.StateWith(varianceName, ir.PortOptions{Initial: Constant(1)}, x.DType(), ir.N(channels))
	}
	attrs := ops.BatchNormAttrs{EpsilonAttrs: ops.EpsilonAttrs{Epsilon: o.Epsilon}, Momentum: o.Momentum}
	var y ir.Value
	l.UpdateState(varianceName, func(variance ir.Value) ir.Value {
		l.UpdateState(meanName, func(mean ir.Value) ir.Value {
			y, mean, variance = ops.BatchNormTraining(l.Builder, x, ops.BatchNormVectors{Scale: scale, Bias: bias, Mean: mean, Variance: variance}, attrs)
			return mean
		})
		return variance
	})
	return y
}
