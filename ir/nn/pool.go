package nn

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
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
	// CeilMode adds a window at the end where the last one would leave elements out, if it begins within
	// x or the padding before it. The spatial axes are then constant.
	CeilMode bool
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
	return pool(b, "max_pool", x, size, opts, func(x ir.Value, a ops.PoolAttrs) ir.Value {
		if opts.CeilMode {
			x, a = longer(b, x, a, math.Inf(-1))
		}
		return ops.MaxPool(b, x, a)
	})
}

// AvgPool returns the mean of each window of x, [batch, spatial axes..., channels], with size
// elements along each axis; zeros of the padding count unless ExcludePad is set. Errors are
// recorded in b: of kind [ir.ErrAttr] for options outside their domain.
func AvgPool(b *ir.Builder, x ir.Value, size int, o ...PoolOptions) ir.Value {
	opts := option(b, "avg_pool", o)
	return pool(b, "avg_pool", x, size, opts, func(x ir.Value, a ops.PoolAttrs) ir.Value {
		if opts.CeilMode {
			return ceilAvgPool(b, x, a, !opts.ExcludePad)
		}
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
	return channelsLast(l, o.ChannelsFirst, func(x ir.Value) ir.Value {
		if o.CeilMode && !l.fits(x, a) {
			return ir.Value{}
		}
		return f(x, a)
	})
}

// fits records an error unless each spatial axis of x is constant and, padded, as long as the window, which
// is longer than the padding: the conditions of the ops, for [longer] pads in their place.
func (l *layer) fits(x ir.Value, a ops.PoolAttrs) bool {
	for i, size := range a.Sizes {
		n, ok := x.Dim(i + 1).Const()
		if !ok {
			l.fail(ir.Errorf(ir.ErrSymbol, "axis %d of x is %s: it must be a number with CeilMode", i+1, x.Dim(i+1)))
			continue
		}
		reach := (size - 1) * a.Dilations[i]
		l.require(a.PadLo[i] <= reach && a.PadHi[i] <= reach, "axis %d is padded by %d and %d: both must be less than the window, %d", i+1, a.PadLo[i], a.PadHi[i], reach+1)
		l.require(n+a.PadLo[i]+a.PadHi[i] > reach, "axis %d of x, %s, is shorter than the window", i+1, x.Type())
	}
	return l.Err() == nil
}

// longer pads x, so that windows without padding leave nothing out but what would begin in the padding
// at the end.
func longer(b *ir.Builder, x ir.Value, a ops.PoolAttrs, value float64) (ir.Value, ops.PoolAttrs) {
	low, high := make([]int, x.Rank()), make([]int, x.Rank())
	for i, stride := range a.Strides {
		n, _ := x.Dim(i + 1).Const()
		extent := (a.Sizes[i]-1)*a.Dilations[i] + 1
		rest := n + a.PadLo[i] + a.PadHi[i] - extent
		count := (rest+stride-1)/stride + 1
		if (count-1)*stride >= n+a.PadLo[i] {
			count--
		}
		low[i+1], high[i+1] = a.PadLo[i], (count-1)*stride+extent-n-a.PadLo[i] // negative where nothing reads the end
	}
	a.PadLo, a.PadHi = make([]int, len(a.Sizes)), make([]int, len(a.Sizes))
	return ops.Pad(b, x, ops.Const(b, x.DType(), value), low, high, nil), a
}

// ceilAvgPool is the mean over windows. The last window may reach beyond the padding; positions there do
// not count.
func ceilAvgPool(b *ir.Builder, x ir.Value, a ops.PoolAttrs, countPad bool) ir.Value {
	padded, whole := longer(b, x, a, 0)
	y := ops.AvgPool(b, padded, ops.AvgPoolAttrs{PoolAttrs: whole, CountIncludePad: true})
	if b.Err() != nil {
		return ir.Value{}
	}
	for i, size := range a.Sizes {
		n, _ := x.Dim(i + 1).Const()
		first, end := a.PadLo[i], a.PadLo[i]+n
		if countPad {
			first, end = 0, end+a.PadHi[i]
		}
		counted, _ := y.Dim(i + 1).Const()
		factors := make([]float64, counted)
		for k := range factors {
			elements := 0
			for j := range size {
				if at := k*a.Strides[i] + j*a.Dilations[i]; at >= first && at < end {
					elements++
				}
			}
			factors[k] = float64(size) / float64(elements)
		}
		if slices.Max(factors) > 1 {
			f := ops.Literal(b, ir.Floats(y.DType(), factors))
			y = ops.Mul(b, y, ops.BroadcastInDim(b, f, y.Shape(), []int{i + 1}))
		}
	}
	return y
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
	return reduce(b, x, permute.Counting(1, x.Rank()-2)...)
}
