//go:build cgo && !js

package webgpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Register fails only if another package has registered "webgpu", which then serves
// instead.
func init() { _ = native.Register(the) }

// the is the backend that leaves the choice of the graphics API to wgpu. Devices are opened on
// first use.
var the = &backend{}

// byAPI are the backends with a graphics API of the caller's choice.
var byAPI = sync.OnceValue(func() map[string]*backend {
	out := map[string]*backend{}
	for _, api := range apis {
		out[api] = &backend{api: api}
	}
	return out
})

// Backend returns the backend.
func Backend() native.Backend { return the }

type backend struct {
	api string // "" for any
	mu  sync.Mutex
	dev *device
}

// Variants implements [native.VariantDevice].
func (b *backend) Variants() []string { return slices.Clone(apis) }

// Variant implements [native.VariantDevice].
func (b *backend) Variant(name string) native.Backend {
	if v := byAPI()[name]; v != nil {
		return v
	}
	return nil
}

// device returns the device and opens it on first use. It retries after a failure.
func (b *backend) device() (*device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dev != nil {
		return b.dev, nil
	}
	dev, err := openDevice(b.api)
	if err != nil {
		return nil, &native.Error{Backend: Name, Call: "probe", Kind: native.ErrUnavailable, Err: err}
	}
	b.dev = dev
	return dev, nil
}

func (b *backend) Name() string {
	if b.api == "" {
		return Name
	}
	return Name + ":" + b.api
}

func (b *backend) Probe() error {
	_, err := b.device()
	return err
}

func (b *backend) Info() native.Info {
	dev, err := b.device()
	if err != nil {
		return native.Info{}
	}
	out := native.Info{Description: dev.description, Software: dev.software, Speed: 1000}
	if dev.software {
		out.Speed = 1 // an emulated GPU is slower than the CPU backend
	}
	return out
}

// Support refuses the element types that WGSL can neither compute with nor store. It works
// without a device and assumes what every device supports.
func (b *backend) Support(n *ir.Node) native.Support {
	return async.Support(n, plan.WebGPU(), "WGSL shaders")
}

// Check implements [native.Checker].
func (b *backend) Check(m *ir.Module) error {
	dev, err := b.device()
	if err != nil {
		return err
	}
	err = async.Check(
		func() (*plan.Plan, error) { return plan.Compile(m, dev.target(), wgsl.Printer{}) },
		func() (native.Budget, error) { return budgetOf(dev, native.Options{}) },
	)
	return async.Fault(&program{device: dev}, "check", err)
}

func (b *backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	return b.open(ctx, "compile", o, nil, planOf(m))
}

// CompileShared implements [native.Sharer].
func (b *backend) CompileShared(ctx context.Context, m *ir.Module, o native.Options, with native.Program) (native.Program, error) {
	return b.openShared(ctx, "compile", o, with, func(d *device, other *plan.Plan) (*plan.Plan, error) {
		if err := native.AcceptShared(m, with.Persistent()); err != nil {
			return nil, err
		}
		return planOf(m)(d, other)
	})
}

// OpenPlan implements [native.PlanOpener].
func (b *backend) OpenPlan(ctx context.Context, file []byte, o native.Options) (native.Program, error) {
	return b.open(ctx, "open", o, nil, fromFile(file))
}

// OpenPlanShared implements [native.PlanOpener].
func (b *backend) OpenPlanShared(ctx context.Context, file []byte, o native.Options, with native.Program) (native.Program, error) {
	return b.openShared(ctx, "open", o, with, fromFile(file))
}

// source returns a plan for a device, with the parameters and states at the places of those of another plan
// unless that is nil.
type source func(d *device, other *plan.Plan) (*plan.Plan, error)

// planOf is the source that compiles a module.
func planOf(m *ir.Module) source {
	return func(d *device, other *plan.Plan) (*plan.Plan, error) {
		t := d.target()
		if other != nil {
			t.States = plan.LayoutOf(other)
		}
		return plan.Compile(m, t, wgsl.Printer{})
	}
}

// fromFile is the source that reads a plan file.
func fromFile(file []byte) source {
	return func(d *device, other *plan.Plan) (*plan.Plan, error) {
		p, err := plan.Decode(file)
		if err != nil {
			return nil, err
		}
		if other != nil {
			if err := checkStates(p, other); err != nil {
				return nil, err
			}
		}
		return d.variant(p)
	}
}

// openShared makes a program of a plan that shares parameters and states with another program.
func (b *backend) openShared(ctx context.Context, call string, o native.Options, with native.Program, from source) (native.Program, error) {
	other, ok := with.(*program)
	if dev, err := b.device(); err != nil || !ok || other.device != dev {
		err := ir.Errorf(ir.ErrUnsupported, "the other program is not one of this device")
		return nil, &native.Error{Backend: Name, Call: call, Kind: ir.ErrUnsupported, Err: err}
	}
	drop, err := other.Hold(call)
	if err != nil {
		return nil, err
	}
	p, err := b.open(ctx, call, o, &sharing{other, drop}, from)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return p, nil
}

// sharing is the program that another shares memory with, and the function that releases it.
type sharing struct {
	from *program
	drop func() error
}

// open makes a program of a plan. It shares parameters and states unless with is nil.
func (b *backend) open(ctx context.Context, call string, o native.Options, with *sharing, from source) (native.Program, error) {
	dev, err := b.device()
	if err != nil {
		return nil, err
	}
	p := &program{device: dev}
	if err := p.load(ctx, o, with, from); err != nil {
		return nil, async.Fault(p, call, err)
	}
	return p, nil
}

// load opens a plan that has the states of another program unless with is nil.
func (p *program) load(ctx context.Context, o native.Options, with *sharing, from source) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var shared *plan.Plan
	var states plan.Layout
	if with != nil {
		shared, states = with.from.plan, plan.LayoutOf(with.from.plan)
	}
	made, err := from(p.device, shared)
	if err != nil {
		return err
	}
	budget, err := budgetOf(p.device, o)
	if err != nil {
		return err
	}
	if err := async.CheckMemory(made, states, budget); err != nil {
		return err
	}
	return p.open(made, with)
}

// checkStates returns an error unless the parameters and states of another plan are at the same places
// in the first buffers of a plan and of its variants for WebGPU.
func checkStates(p, other *plan.Plan) error {
	want := plan.LayoutOf(other)
	for _, v := range p.All() {
		if v.Target != plan.WebGPU().Name {
			continue
		}
		got := plan.LayoutOf(v)
		same := slices.Equal(got.Buffers, want.Buffers) && len(got.Places) == len(want.Places)
		for i, at := range v.StateBuffers() {
			same = same && i == at
		}
		for _, place := range want.Places {
			same = same && slices.Contains(got.Places, place)
		}
		if !same {
			return ir.Shapef("plan %q has its parameters and states at other places than plan %q", p.Name, other.Name)
		}
	}
	return nil
}

// budgetOf returns the memory budget of a program. WebGPU does not report the memory of a GPU; a
// software device uses the host's.
func budgetOf(dev *device, o native.Options) (native.Budget, error) {
	device := native.Budget{Bytes: math.MaxInt64, Source: "no bound"}
	if dev.software {
		device = native.HostMemory()
	}
	return o.Budget(device)
}
