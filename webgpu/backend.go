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
	"github.com/rlx-go/rlx/webgpu/internal/exec"
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
	dev *exec.Device
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
func (b *backend) device() (*exec.Device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dev != nil {
		return b.dev, nil
	}
	dev, err := exec.Open(exec.Options{API: b.api})
	if err != nil {
		return nil, fault("probe", err)
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
	info := dev.Info()
	out := native.Info{Description: info.Name + " (" + info.Backend + ")", Software: info.CPU, Speed: 1000}
	if info.CPU {
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
	_, err = plan.Compile(m, dev.Target(), wgsl.Printer{})
	return fault("check", err)
}

func (b *backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	return b.compile(ctx, m, o, nil)
}

// CompileShared implements [native.Sharer].
func (b *backend) CompileShared(ctx context.Context, m *ir.Module, o native.Options, with native.Program) (native.Program, error) {
	other, ok := with.(*program)
	if !ok {
		return nil, fault("compile", ir.Errorf(ir.ErrUnsupported, "the other program is not one of WebGPU"))
	}
	if err := native.AcceptShared(m, with.Persistent()); err != nil {
		return nil, fault("compile", err)
	}
	return b.compile(ctx, m, o, other.s)
}

// compile compiles a module that uses the parameters and states of a session unless that is nil.
func (b *backend) compile(ctx context.Context, m *ir.Module, o native.Options, with *exec.Session) (native.Program, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault("compile", err)
	}
	dev, err := b.device()
	if err != nil {
		return nil, err
	}
	t := dev.Target()
	if with != nil {
		t.States = plan.LayoutOf(with.Plan())
	}
	p, err := plan.Compile(m, t, wgsl.Printer{})
	if err != nil {
		return nil, fault("compile", err)
	}
	out, err := load(ctx, dev, p, t.States, o, with)
	if err != nil {
		return nil, fault("compile", err)
	}
	return out, nil
}

// OpenPlan implements [native.PlanOpener].
func (b *backend) OpenPlan(ctx context.Context, file []byte, o native.Options) (native.Program, error) {
	return b.openPlan(ctx, file, o, nil)
}

// OpenPlanShared implements [native.PlanOpener].
func (b *backend) OpenPlanShared(ctx context.Context, file []byte, o native.Options, with native.Program) (native.Program, error) {
	other, ok := with.(*program)
	if !ok {
		return nil, fault("open", ir.Errorf(ir.ErrUnsupported, "the other program is not one of WebGPU"))
	}
	return b.openPlan(ctx, file, o, other.s)
}

// openPlan opens a plan file that uses the parameters and states of a session unless that is nil.
func (b *backend) openPlan(ctx context.Context, file []byte, o native.Options, with *exec.Session) (native.Program, error) {
	dev, err := b.device()
	if err != nil {
		return nil, err
	}
	p, err := plan.Decode(file)
	if err != nil {
		return nil, fault("open", err)
	}
	var states plan.Layout
	if with != nil {
		states = plan.LayoutOf(with.Plan())
		if err := checkStates(p, with.Plan()); err != nil {
			return nil, fault("open", err)
		}
	}
	out, err := load(ctx, dev, p, states, o, with)
	if err != nil {
		return nil, fault("open", err)
	}
	return out, nil
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

// load opens a plan that has the states of a session unless that is nil.
func load(ctx context.Context, dev *exec.Device, p *plan.Plan, states plan.Layout, o native.Options, with *exec.Session) (*program, error) {
	budget, err := budgetOf(dev, o)
	if err != nil {
		return nil, err
	}
	if err := async.CheckMemory(p, states, budget); err != nil {
		return nil, err
	}
	s, err := dev.LoadShared(ctx, p, with)
	if err != nil {
		return nil, err
	}
	return newProgram(s, states), nil
}

// budgetOf returns the memory budget of a program. WebGPU does not report the memory of a GPU; a
// software device uses the host's.
func budgetOf(dev *exec.Device, o native.Options) (native.Budget, error) {
	device := native.Budget{Bytes: math.MaxInt64, Source: "no bound"}
	if dev.Info().CPU {
		device = native.HostMemory()
	}
	return o.Budget(device)
}

// fault wraps an error of package exec or of the compiler in a [*native.Error].
func fault(call string, err error) error {
	if err == nil {
		return nil
	}
	out := &native.Error{Backend: Name, Call: call, Kind: native.KindOf(err), Err: err}
	var e *exec.Error
	if errors.As(err, &e) {
		out.Name, out.Node, out.Steps = e.Name, e.Node, e.Steps
		out.Kind = kindOf(e.Kind)
	}
	return out
}

// kindOf maps the kinds of package exec to those of package native.
func kindOf(kind error) error {
	switch kind {
	case exec.ErrDevice:
		return native.ErrUnavailable
	case exec.ErrLimit, exec.ErrMemory:
		return native.ErrMemory
	case exec.ErrLost:
		return native.ErrLost
	case exec.ErrClosed:
		return native.ErrClosed
	}
	return native.KindOf(kind)
}
