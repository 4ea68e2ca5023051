//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/executor/async"
	joint "github.com/rlx-go/rlx/internal/executor/ranks"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native"
)

// Register fails only if another package has registered "cuda", which then serves instead.
func init() { _ = native.Register(Backend()) }

// Backend returns the backend of the first GPU.
func Backend() native.Backend { return backendOf(0) }

// backends holds the backends by device number.
var backends sync.Map

func backendOf(number int) *backend {
	b, _ := backends.LoadOrStore(number, newBackend(number))
	return b.(*backend)
}

func newBackend(number int) *backend {
	return &backend{number: number, name: nameOf(number), choice: loop.FasterProducts, long: loop.LongElements}
}

// backend is one GPU, opened on first use.
type backend struct {
	number int
	name   string
	mu     sync.Mutex
	dev    *device
	// choice selects the products that cuBLASLt computes, if it is installed.
	choice loop.Products
	// The rest is for tests.
	guarded func() *guards // makes the guards of a program
	serial  bool           // the steps of a graph run one after the other
	noWgmma bool
	long    int // [loop.Caps.Long]
}

// device is an open GPU.
type device struct {
	*driver.Device
	multiplier *driver.Multiplier // nil without cuBLASLt
	wgmma      bool               // kernels use warp-group multiply-adds
	lost       atomic.Bool
	// refused holds the routines for which a library has no algorithm.
	refused atomic.Pointer[routine.Refusals]
	// hostBranches is set if the kernel that sets conditions does not compile.
	hostBranches atomic.Bool
}

func (b *backend) Device(number int) native.Backend { return backendOf(number) }

// device returns the GPU and opens it on first use. It retries after a failure, but a lost
// GPU stays lost.
func (b *backend) device() (*device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dev != nil && b.dev.lost.Load() {
		return nil, &native.Error{Backend: b.name, Call: "probe", Kind: native.ErrLost, Err: errGone}
	}
	if b.dev != nil {
		return b.dev, nil
	}
	l, err := driver.Load()
	dev := &device{}
	if err == nil {
		dev.Device, err = l.Open(b.number)
	}
	if err == nil {
		dev.wgmma = dev.HasWgmma() && !b.noWgmma
		dev.multiplier, err = dev.NewMultiplier()
	}
	if err != nil {
		return nil, &native.Error{Backend: b.name, Call: "probe", Kind: native.ErrUnavailable, Err: err}
	}
	b.dev = dev
	return b.dev, nil
}

// errGone is the reason of errors after the GPU is lost.
var errGone = errors.New("this process lost the GPU after an earlier error: restart it")

func (b *backend) Name() string { return b.name }

func (b *backend) Probe() error {
	_, err := b.device()
	return err
}

func (b *backend) Info() native.Info {
	d, err := b.device()
	if err != nil {
		return native.Info{}
	}
	l := d.Library()
	libraries := ""
	if d.Products != "" {
		libraries = ", cuBLASLt " + d.Products
	}
	if d.HasSolver() {
		libraries += ", cuSOLVER"
	}
	return native.Info{
		Description: fmt.Sprintf("%s, compute capability %d.%d, driver for CUDA %d.%d, NVRTC %s%s", d.Name, d.Major, d.Minor, l.Version/1000, l.Version%1000/10, d.Compiler.Version, libraries),
		Memory:      int64(d.Memory),
		Speed:       float64(d.Multiprocessors) * 128 * 2 * float64(d.Clock) / 1e6, // 128 cores with a fused multiply-add each cycle
	}
}

func (b *backend) Support(n *ir.Node) native.Support {
	s := async.Support(n, Target(), "CUDA kernels")
	if mesh, ok := ops.MeshOf(n); ok && mesh.Devices > 1 && s.Level == native.Decomposed {
		s.Level = native.Claimed // NCCL's, where a program has a mesh
	}
	return s
}

// Check implements [native.Checker].
func (b *backend) Check(m *ir.Module) error {
	d, err := b.device()
	if err != nil {
		return err
	}
	err = async.Check(
		func() (*plan.Plan, error) { return planOf(m, targetOf(d, native.Options{}, b.choice)) },
		func() (native.Budget, error) { return budgetOf(d, native.Options{}) },
	)
	return async.Fault(&program{name: b.name, device: d}, "check", err)
}

func (b *backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	r, err := newRanks(m, o.Mesh)
	var p native.Program
	if err == nil {
		p, err = b.compileFor(ctx, m, o, &program{ranks: r})
	}
	if r == nil && o.Mesh != nil && joint.InModule(m) {
		r = &ranks{module: m, mesh: o.Mesh} // the mesh lacks what the module has
	}
	if err = r.settle(ctx, err); err != nil {
		return nil, err
	}
	return p, nil
}

// CompileShared implements [native.Sharer].
func (b *backend) CompileShared(ctx context.Context, m *ir.Module, o native.Options, with native.Program) (native.Program, error) {
	other, ok := with.(*program)
	if !ok || other.ranks != nil || o.Mesh != nil {
		err := ir.Errorf(ir.ErrUnsupported, "the other program is not one of this device, or one of them has several ranks")
		return nil, &native.Error{Backend: b.name, Call: "compile", Kind: ir.ErrUnsupported, Err: err}
	}
	drop, err := other.Hold("compile")
	if err != nil {
		return nil, err
	}
	if err := native.AcceptShared(m, with.Persistent()); err != nil {
		return nil, errors.Join(async.Fault(other, "compile", err), drop())
	}
	p, err := b.compileFor(ctx, m, o, &program{with: other, drop: drop})
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return p, nil
}

// compileFor compiles a module for a program whose ranks, and the program that it shares memory with,
// are those of another.
func (b *backend) compileFor(ctx context.Context, m *ir.Module, o native.Options, from *program) (native.Program, error) {
	d, err := b.device()
	if err != nil {
		return nil, err
	}
	budget, err := budgetOf(d, o)
	if err != nil {
		return nil, async.Fault(&program{name: b.name, device: d}, "compile", err)
	}
	t := targetOf(d, o, b.choice)
	t.Long, t.Collectives = b.long, from.ranks != nil
	if o.Tune {
		if t.Schedules, err = tuned(ctx, d, m, t); err != nil {
			return nil, async.Fault(&program{name: b.name, device: d}, "tune", err)
		}
	}
	if from.with != nil {
		t.States = plan.LayoutOf(from.with.plan)
	}
	p, err := b.compile(ctx, d, m, t, budget, from)
	if err != nil {
		return nil, async.Fault(p, "compile", err)
	}
	return p, nil
}

// compile makes a program with the ranks, the phases so far and the shared memory of another. It
// compiles again, with kernels for the refused routines, if a library turns out to lack an algorithm.
func (b *backend) compile(ctx context.Context, d *device, m *ir.Module, t plan.Target, budget native.Budget, from *program) (*program, error) {
	p := &program{name: b.name, device: d, budget: budget, phases: from.phases, ranks: from.ranks, with: from.with, drop: from.drop, serial: b.serial}
	if b.guarded != nil {
		p.guards = b.guarded()
	}
	t.Refused = d.refused.Load()
	err := p.compile(ctx, m, t)
	if errors.Is(err, driver.ErrNoAlgorithm) && d.refused.Load() != t.Refused {
		return b.compile(ctx, d, m, t, budget, p)
	}
	return p, err
}

func (p *program) compile(ctx context.Context, m *ir.Module, t plan.Target) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var made *plan.Plan
	err := p.timed("plan", func() (err error) {
		made, err = planOf(m, t)
		return err
	})
	if err != nil {
		return err
	}
	if err := async.CheckMemory(made, t.States, p.budget); err != nil {
		return err
	}
	return p.open(ctx, made)
}

// budgetOf returns the memory budget of a program: the free memory of the device, unless the
// options set one.
func budgetOf(d *device, o native.Options) (native.Budget, error) {
	free, _, err := d.MemoryInfo()
	if err != nil {
		return native.Budget{}, err
	}
	device := native.Budget{Bytes: int64(free), Source: "what is free on the device"}
	return o.Budget(device)
}

// open prepares a plan to run. The error is [driver.ErrNoAlgorithm] if a library lacks an
// algorithm for one of its routines.
func (p *program) open(ctx context.Context, made *plan.Plan) (err error) {
	p.calls.p, p.graphKernels.p = p, p
	err = p.timed("algorithms", func() error { return p.calls.prepare(made.Routines) })
	if err != nil {
		return errors.Join(err, p.calls.solver.release())
	}
	p.plan = made
	if err := p.build(ctx); err != nil {
		return p.abandon(err)
	}
	if p.with != nil {
		p.Program = p.with.Sharing(made, p, p.drop)
	} else {
		p.Program = async.NewProgram(made, p)
	}
	return nil
}

// targetOf returns [Target] with the features and the profile of a device.
func targetOf(d *device, o native.Options, choice loop.Products) plan.Target {
	t := Target()
	t.TF32, t.Multiprocessors = o.TF32, d.Multiprocessors
	t.Device = hardware.Named(d.Name).WithDriver(d.Multiprocessors, d.Bandwidth, d.Cache)
	if d.wgmma || d.HasMma() {
		t.Mma, t.MmaByWarps, t.MmaBytes, t.TensorMaps = true, !d.wgmma, d.Shared, d.wgmma
	}
	if d.multiplier != nil {
		t.Products, t.ProductBytes, t.Refused = choice, productBytes, d.refused.Load()
	}
	t.Factors = d.HasSolver() && choice != loop.NoProducts
	if t.Factors {
		t.Refused = d.refused.Load()
	}
	return t
}
