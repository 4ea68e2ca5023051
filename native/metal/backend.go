//go:build cgo && (darwin || linux)

package metal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// Register fails only if another package has registered "metal", which then serves instead.
func init() { _ = native.Register(the) }

// the is the only backend; its device is opened on first use.
var the = &backend{}

// Backend returns the backend.
func Backend() native.Backend { return the }

type backend struct {
	mu  sync.Mutex
	dev *device
}

// device is an open GPU.
type device struct {
	*driver.Device
	lost atomic.Bool
}

// device returns the GPU and opens it on first use. It retries after a failure, but a lost
// GPU stays lost.
func (b *backend) device() (*device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dev != nil && b.dev.lost.Load() {
		return nil, &native.Error{Backend: Name, Call: "probe", Kind: native.ErrLost, Err: errDeviceGone}
	}
	if b.dev != nil {
		return b.dev, nil
	}
	d, err := driver.Open()
	if err != nil {
		return nil, &native.Error{Backend: Name, Call: "probe", Kind: native.ErrUnavailable, Err: err}
	}
	b.dev = &device{Device: d}
	return b.dev, nil
}

func (b *backend) Name() string { return Name }

func (b *backend) Probe() error {
	_, err := b.device()
	return err
}

// speed ranks Metal above the machine's CPU and below an NVIDIA GPU. Metal does not report
// the number of cores.
const speed = 2000

func (b *backend) Info() native.Info {
	d, err := b.device()
	if err != nil {
		return native.Info{}
	}
	i := d.Info()
	return native.Info{Description: i.Name + " (Metal)", Software: driver.Software, Memory: int64(i.Memory), Speed: speed}
}

func (b *backend) Support(n *ir.Node) native.Support {
	return async.Support(n, Target(), "Metal kernels")
}

// Check implements [native.Checker].
func (b *backend) Check(m *ir.Module) error {
	d, err := b.device()
	if err != nil {
		return err
	}
	t := targetOf(d)
	err = async.Check(
		func() (*plan.Plan, error) { return plan.Compile(m, t, msl.Printer{BFloat: t.BFloat}) },
		func() (native.Budget, error) { return budgetOf(d, native.Options{}) },
	)
	return async.Fault(&program{device: d}, "check", err)
}

func (b *backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	d, err := b.device()
	if err != nil {
		return nil, err
	}
	p := &program{device: d}
	if p.budget, err = budgetOf(d, o); err != nil {
		return nil, async.Fault(p, "compile", err)
	}
	if err := p.compile(ctx, m, targetOf(d)); err != nil {
		return nil, async.Fault(p, "compile", err)
	}
	return p, nil
}

// budgetOf returns the memory budget of a program: the memory of the device, unless the options set one.
func budgetOf(d *device, o native.Options) (native.Budget, error) {
	return o.Budget(native.Budget{Bytes: int64(d.Info().Memory), Source: "the device's memory"})
}

// targetOf returns [Target] with the limits of a device.
func targetOf(d *device) plan.Target {
	t, i := Target(), d.Info()
	t.BufferBytes = min(t.BufferBytes, i.Buffer/plan.RowBytes*plan.RowBytes)
	t.BindingBytes = min(t.BindingBytes, t.BufferBytes)
	t.SharedBytes = min(t.SharedBytes, i.Shared)
	t.Invocations = min(t.Invocations, i.Threads[0])
	t.BFloat, t.Device = i.BFloat, hardware.Named(i.Name)
	return t
}

func (p *program) compile(ctx context.Context, m *ir.Module, t plan.Target) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limit := bufferTime
	p.limit, p.torn = limit, map[*plan.Slot]int{}
	cut := func(k *loop.Kernel) bool { return needsCut(k, limit) }
	made, kernels, err := plan.CompileKernels(m, t, msl.Printer{BFloat: t.BFloat, Tiled: cut})
	if err != nil {
		return err
	}
	if len(made.Routines) > 0 {
		return ir.Errorf(ir.ErrUnsupported, "the plan calls a library; Metal has none")
	}
	if err := async.CheckMemory(made, plan.Layout{}, p.budget); err != nil {
		return err
	}
	p.plan = made
	for _, k := range kernels {
		p.works, p.cuts = append(p.works, workOf(k.Kernel)), append(p.cuts, cut(k.Kernel))
	}
	if err := p.build(ctx); err != nil {
		return errors.Join(err, p.Release())
	}
	p.Program = async.NewProgram(made, p)
	return nil
}
