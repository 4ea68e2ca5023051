package rlx

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// Rates are the rates that a device reached in [Calibrate]. [OpenFor] estimates from them how long a module takes there.
type Rates struct {
	// Operations are the multiplications and additions per second in a product of f32 matrices.
	Operations float64
	// Bytes are those read and written per second by an elementwise op.
	Bytes float64
	// Transfer are the bytes per second of inputs and outputs, between host and device.
	Transfer float64
	// Kernel is the least time of a kernel that follows another one.
	Kernel time.Duration
	// Call is the least time of a run, from its start until the host has the outputs.
	Call time.Duration
}

// calibrationTime is how long each rate is measured.
const calibrationTime = 100 * time.Millisecond

// Calibrate measures a device, which takes a second or two, and keeps the rates for later processes, by the
// name and the description of the device, in the folder of the environment variable RLX_TUNE_CACHE. The
// errors are those of [Open] and [Session.Compile]; of a folder that cannot be written, its own.
func Calibrate(ctx context.Context, device string) (Rates, error) {
	if err := contextGiven(ctx, "calibrate"); err != nil {
		return Rates{}, err
	}
	return calibrate(ctx, device, calibrationTime)
}

func calibrate(ctx context.Context, device string, whole time.Duration) (Rates, error) {
	s, err := Open(device)
	if err != nil {
		return Rates{}, err
	}
	defer s.Close(context.WithoutCancel(ctx))
	c := calibration{session: s, whole: whole}
	r := c.rates(ctx)
	if c.err != nil {
		return Rates{}, c.err
	}
	return r, tune.WriteRates(calibrationName(s.Device()), r)
}

// RatesOf returns the rates of a device that [Calibrate] kept, and whether there are any.
func RatesOf(d Device) (Rates, bool) {
	var r Rates
	kept := tune.ReadRates(calibrationName(d), &r)
	return r, kept && r.Operations > 0 && r.Bytes > 0 && r.Transfer > 0
}

// calibrationName names a device and its driver.
func calibrationName(d Device) string { return d.Name + ": " + d.Description }

// calibration measures a device until an error occurs.
type calibration struct {
	session *Session
	whole   time.Duration // of each measurement
	err     error
}

// enough is the time of a run that is long enough to say a rate.
const enough = 20 * time.Millisecond

func (c *calibration) rates(ctx context.Context) (r Rates) {
	for n := 256; n <= 4096; n *= 2 {
		took := c.time(ctx, nil, func(b *ir.Builder) { b.SetState("x", products(b, n, 1)) })
		if r.Operations = 2 * float64(n) * float64(n) * float64(n) / took.Seconds(); took > enough {
			break
		}
	}
	for n := 1 << 20; n <= 1<<26; n *= 4 {
		took := c.time(ctx, nil, func(b *ir.Builder) {
			b.SetState("x", ops.Add(b, b.State("x", ir.F32, ir.N(n)), ops.Const(b, ir.F32, 1)))
		})
		if r.Bytes = 8 * float64(n) / took.Seconds(); took > enough {
			break
		}
	}
	const short, chain = 1, 33
	one := c.time(ctx, nil, func(b *ir.Builder) { b.SetState("x", products(b, 16, short)) })
	many := c.time(ctx, nil, func(b *ir.Builder) { b.SetState("x", products(b, 16, chain)) })
	r.Call, r.Kernel = one, max(many-one, 0)/(chain-short)
	const sent = 1 << 20
	took := c.time(ctx, Inputs{"x": native.Zeros(ir.F32, sent)}, func(b *ir.Builder) {
		b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.N(sent))))
	})
	r.Transfer = 2 * 4 * sent / max(took-one, took/10).Seconds()
	return r
}

// products returns state x times itself, again and again.
func products(b *ir.Builder, n, count int) ir.Value {
	x := b.State("x", ir.F32, ir.N(n), ir.N(n))
	y := x
	for range count {
		y = ops.MatMul(b, y, x)
	}
	return y
}

// time returns the median time of a run, at least a nanosecond.
func (c *calibration) time(ctx context.Context, in Inputs, f func(b *ir.Builder)) time.Duration {
	if c.err != nil {
		return 1
	}
	took, err := c.session.timeOf(ctx, in, f, c.whole)
	c.err = err
	return max(took, 1)
}

// timeOf compiles a graph and returns the median time of its runs, at least three after the first.
func (s *Session) timeOf(ctx context.Context, in Inputs, f func(b *ir.Builder), whole time.Duration) (time.Duration, error) {
	g, err := ir.Build("calibrate", f)
	if err != nil {
		return 0, err
	}
	m, err := ir.NewModule("calibrate", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return 0, err
	}
	p, err := s.Compile(ctx, m)
	if err != nil {
		return 0, err
	}
	defer p.Close(context.WithoutCancel(ctx))
	times, err := tune.Runs(whole, func() error {
		if _, err := p.Call(ctx, "run", in); err != nil {
			return err
		}
		return p.Sync(ctx)
	})
	if err != nil {
		return 0, err
	}
	return times[len(times)/2], nil
}

// estimate returns how long a run of each entry takes together: products and memory overlap, kernels follow each other.
func (r Rates) estimate(m *ir.Module) (seconds float64) {
	for _, e := range m.Entries {
		w := workload.Of(e.Graph)
		seconds += r.Call.Seconds() + max(w.Operations/r.Operations, w.Bytes/r.Bytes) + w.Kernels*r.Kernel.Seconds() + w.Transfer/r.Transfer
	}
	return seconds
}

// fastestFirst returns all devices, the fastest first. Those that are not usable come last. If all
// usable devices were calibrated it is by estimates for the module, or without one by the rates of products;
// else by [Device.Speed].
func fastestFirst(m *ir.Module) []Device {
	all := Devices()
	if m != nil {
		m, _ = withSizes(m) // a module that cannot be bound is refused by each device
	}
	seconds := make(map[string]float64, len(all))
	for _, d := range all {
		if d.Err != nil {
			continue
		}
		r, kept := RatesOf(d)
		if !kept {
			slices.SortStableFunc(all, func(a, b Device) int { return cmp.Compare(b.Speed, a.Speed) })
			return all
		}
		if seconds[d.Name] = 1 / r.Operations; m != nil {
			seconds[d.Name] = r.estimate(m)
		}
	}
	slices.SortStableFunc(all, func(a, b Device) int {
		x, usable := seconds[a.Name]
		y, other := seconds[b.Name]
		if usable != other {
			return cmp.Compare(b.Speed, a.Speed)
		}
		return cmp.Compare(x, y)
	})
	return all
}
