package nn

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MambaOptions are the options of [Mamba].
type MambaOptions struct {
	// Name is the scope of the parameters; "" means "mamba" and a number.
	Name string
	// State is the size of the state of each channel; 0 means 16.
	State int
	// Kernel is the length of the causal convolution; 0 means 4.
	Kernel int
	// Expand is the ratio of channels to width; 0 means 2.
	Expand int
	// Rank is the rank of the projection of step sizes; 0 means ⌈width/16⌉.
	Rank int
	// Init initialises the projections; the default is that of [Linear].
	Init ir.Initial
}

// Mamba returns the selective state space block of x, [batch, time, width] (Gu and Dao, Mamba):
// a projection to channels and gates, a causal depthwise convolution, silu, the scan, the gate
// and a projection back: [batch, time, width]. Parameters have the names of mamba_ssm, with
// channels = expand·width: in_proj/weight [width, 2·channels], conv1d/weight [kernel, 1, channels],
// conv1d/bias, x_proj/weight [channels, rank + 2·state], dt_proj/weight [rank, channels],
// dt_proj/bias, A_log [channels, state], D [channels] and out_proj/weight [channels, width]. With a
// [Cache] the states conv_state and ssm_state continue the sequence. Errors are recorded in b: of
// kind [ir.ErrAttr] for negative options.
func Mamba(b *ir.Builder, x ir.Value, o ...MambaOptions) (y ir.Value) {
	opts := option(b, "mamba", o)
	within(b, "mamba", opts.Name, x, func(l *layer) {
		if x.Rank() != 3 {
			l.fail(ir.Shapef("x is %s: it must have three axes, batch, time and features", x.Type()))
		}
		width := l.size(-1)
		l.require(opts.State >= 0 && opts.Kernel >= 0 && opts.Expand >= 0 && opts.Rank >= 0, "State is %d, Kernel %d, Expand %d and Rank %d: none must be negative", opts.State, opts.Kernel, opts.Expand, opts.Rank)
		for _, d := range []struct {
			field *int
			usual int
		}{{&opts.State, 16}, {&opts.Kernel, 4}, {&opts.Expand, 2}, {&opts.Rank, (width + 15) / 16}} {
			if *d.field == 0 {
				*d.field = d.usual
			}
		}
		if b.Err() == nil {
			y = mamba(l, opts, width, opts.Expand*width)
		}
	})
	return y
}

func mamba(l *layer, o MambaOptions, width, channels int) ir.Value {
	b := l.Builder
	project := func(name string, x ir.Value, out int) ir.Value {
		return Linear(b, x, out, LinearOptions{Name: name, NoBias: true, Init: o.Init})
	}
	both := project("in_proj", l.x, 2*channels)
	if b.Err() != nil {
		return ir.Value{}
	}
	parts := ops.Split(b, both, -1, ir.N(channels), ir.N(channels))
	x, gate := ops.Silu(b, causalConv(l, parts[0], o.Kernel, channels)), parts[1]
	mixed := project("x_proj", x, o.Rank+2*o.State)
	if b.Err() != nil {
		return ir.Value{}
	}
	parts = ops.Split(b, mixed, -1, ir.N(o.Rank), ir.N(o.State), ir.N(o.State))
	bound := 1 / math.Sqrt(float64(o.Rank))
	delta := Linear(b, parts[0], channels, LinearOptions{Name: "dt_proj", Init: Uniform(-bound, bound), BiasInit: rule("softplus_inverse", 1e-3, 0.1)})
	a := l.param("A_log", ir.Initial{}, rule("log_range"), channels, o.State)
	d := l.param("D", ir.Initial{}, Constant(1), channels)
	if b.Err() != nil {
		return ir.Value{}
	}
	a = ops.Neg(b, ops.Exp(b, a))
	state, keep := l.carried("ssm_state", l.x.Dim(1), l.x.Dim(0), ir.N(channels), ir.N(o.State))
	y, last := ops.SelectiveScan(b, ops.StateSpace{X: x, Delta: ops.Softplus(b, delta), A: a, B: parts[1], C: parts[2], State: state})
	keep(last)
	y = ops.Mul(b, ops.Add(b, y, ops.Mul(b, x, d)), ops.Silu(b, gate))
	return project("out_proj", y, width)
}

// causalConv is a depthwise convolution of x, [batch, time, channels], over each step and the
// kernel − 1 before it, which are zeros at first.
func causalConv(l *layer, x ir.Value, kernel, channels int) (y ir.Value) {
	b := l.Builder
	if kernel > 1 {
		before, keep := l.carried("conv_state", l.x.Dim(1), x.Dim(0), ir.N(kernel-1), ir.N(channels))
		x = ops.Concatenate(b, 1, before, x)
		if b.Err() == nil {
			keep(ops.SliceAxis(b, x, 1, l.x.Dim(1), ir.N(kernel-1)))
		}
	}
	return Conv1d(b, x, channels, kernel, ConvOptions{Name: "conv1d", Groups: channels})
}
