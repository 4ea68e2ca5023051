package async

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/fair"
	"github.com/rlx-go/rlx/internal/executor/named"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// Program is a plan on a device, a [native.Program].
type Program struct {
	Signature
	plan    *plan.Plan
	machine Machine
	kept    named.Persistent
	slots   []*plan.Slot // of kept

	*queue
	entries []*entry
	runs    int // number of runs begun
	closed  bool
	holds   int          // of the machine, which is released after the last
	drop    func() error // releases the program whose memory this one shares, or nil
}

// queue serialises the calls of programs that have parameters and states in common.
type queue struct {
	// order serialises calls that use the machine, first come, first served. It is
	// acquired before mu. Calls that only wait for a run take mu alone.
	order      fair.Lock
	mu         sync.Mutex
	programs   []*Program // that are open
	hostDriven *entry     // the last host-driven entry begun, or nil
	unreported *bound     // a bound entry without outputs whose run failed, or nil
}

// NewProgram returns a program that runs a plan on a machine.
func NewProgram(p *plan.Plan, m Machine) *Program {
	return newProgram(p, plan.Layout{}, m, &queue{})
}

// Hold keeps the machine of the program, even after Close, until drop is called. The error is of kind
// [native.ErrClosed] or [native.ErrLost] for a call of a program that is closed or whose device is lost.
func (p *Program) Hold(call string) (drop func() error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(call); err != nil {
		return nil, err
	}
	p.holds++
	return func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.release()
	}, nil
}

// release ends a hold. The program is locked.
func (p *Program) release() error {
	if p.holds--; p.holds > 0 {
		return nil
	}
	return p.machine.Release()
}

// Sharing returns a program on a machine whose plan has the layout of p's ([plan.Target]) and whose
// parameters and states are in the memory of p: a call of one waits for the runs of the other where
// it would wait for its own. It takes over a [Program.Hold] of p.
func (p *Program) Sharing(made *plan.Plan, m Machine, drop func() error) *Program {
	other := newProgram(made, plan.LayoutOf(p.plan), m, p.queue)
	other.drop = drop
	return other
}

func newProgram(p *plan.Plan, shared plan.Layout, m Machine, q *queue) *Program {
	made := &Program{Signature: SignatureOf(p, shared), plan: p, machine: m, queue: q, holds: 1}
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Role.Persistent() {
			made.slots = append(made.slots, s)
		}
	}
	made.kept = named.NewPersistent(made.persistent)
	for i := range p.Entries {
		made.entries = append(made.entries, newEntry(made, i))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.programs = append(q.programs, made)
	return made
}

// Do calls f with the number of an entry in the plan, with the program locked. It wraps
// f's error as [Fault] does; the error is of kind [ir.ErrName] for an unknown entry.
func (p *Program) Do(ctx context.Context, entry string, f func(number int) error) error {
	if err := p.lock(ctx, entry); err != nil {
		return err
	}
	defer p.unlock()
	e, err := p.lookup(entry)
	if err != nil {
		return err
	}
	return p.fault(entry, f(e.number))
}

// lock locks the program for a call, in the order of calls.
func (p *Program) lock(ctx context.Context, call string) error {
	if err := p.order.Lock(ctx); err != nil {
		return p.fault(call, err)
	}
	p.mu.Lock()
	return nil
}

func (p *Program) unlock() {
	p.mu.Unlock()
	p.order.Unlock()
}

// lookup returns an entry. The program is locked.
func (p *Program) lookup(name string) (*entry, error) {
	if err := p.usable(name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.spec.Name == name })
	if i < 0 {
		return nil, Blame(p.machine, name, "", named.UnknownEntry(name, p.Entries()))
	}
	return p.entries[i], nil
}

// Set writes a parameter or a state, after the runs begun before.
func (p *Program) Set(ctx context.Context, name string, t native.Tensor) error {
	return p.SetAll(ctx, map[string]native.Tensor{name: t})
}

// SetAll writes several parameters and states, or none.
func (p *Program) SetAll(ctx context.Context, values map[string]native.Tensor) error {
	if err := p.lock(ctx, "set"); err != nil {
		return err
	}
	defer p.unlock()
	if err := p.usable("set"); err != nil {
		return err
	}
	numbers, err := p.kept.Accept(p.machine.Backend(), values)
	if err != nil {
		return err
	}
	if !p.machine.Ordered() {
		if err := p.drain(ctx, "set"); err != nil {
			return err
		}
	}
	for name, i := range numbers {
		slot := p.slots[i]
		if err := p.machine.Write(slot, loop.DeviceBytes(slot.DType, values[name].Data)); err != nil {
			return p.fault("set", err)
		}
	}
	return nil
}

// Get waits for all runs and returns a parameter or a state, or the unreported error of a
// bound entry without outputs.
func (p *Program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.lock(ctx, "get"); err != nil {
		return native.Tensor{}, err
	}
	defer p.unlock()
	if err := p.usable("get"); err != nil {
		return native.Tensor{}, err
	}
	i, err := p.kept.Find(name)
	if err != nil {
		return native.Tensor{}, Blame(p.machine, "get", name, err)
	}
	if err := p.settle(ctx); err != nil {
		return native.Tensor{}, err
	}
	return p.read(p.slots[i])
}

// GetAll is [Program.Get] for all parameters and states.
func (p *Program) GetAll(ctx context.Context) (map[string]native.Tensor, error) {
	if err := p.lock(ctx, "get"); err != nil {
		return nil, err
	}
	defer p.unlock()
	if err := p.usable("get"); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	out := map[string]native.Tensor{}
	for _, slot := range p.slots {
		t, err := p.read(slot)
		if err != nil {
			return nil, err
		}
		out[slot.Name] = t
	}
	return out, nil
}

// settle waits for all runs and returns an unreported error.
func (p *Program) settle(ctx context.Context) error {
	if err := p.drain(ctx, "get"); err != nil {
		return err
	}
	if b := p.unreported; b != nil {
		return b.takeError()
	}
	return nil
}

// read reads a parameter or a state.
func (p *Program) read(slot *plan.Slot) (native.Tensor, error) {
	t := native.Zeros(slot.DType, slot.Dims...)
	data := t.Data
	if slot.DType == dtype.Bool {
		data = make([]byte, slot.Bytes)
	}
	if err := p.machine.Read(slot, data); err != nil {
		return native.Tensor{}, p.fault("get", err)
	}
	if slot.DType == dtype.Bool {
		copy(t.Data, loop.HostBytes(slot.DType, data))
	}
	return t, nil
}

// drain waits for the runs of all programs of the queue and collects their results.
func (p *Program) drain(ctx context.Context, call string) error {
	for _, other := range slices.Clone(p.programs) {
		if err := p.drainOf(ctx, call, other); err != nil {
			return err
		}
	}
	return nil
}

// drainOf is drain for the runs of one program.
func (p *Program) drainOf(ctx context.Context, call string, other *Program) error {
	for _, e := range other.entries {
		if err := p.await(ctx, call, func() bool { e.collect(); return !e.busy() }); err != nil {
			return err
		}
	}
	return nil
}

// await polls done until it holds or ctx is done. It releases mu between polls.
func (p *Program) await(ctx context.Context, call string, done func() bool) error {
	for begin := time.Now(); !done(); {
		if err := p.usable(call); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return p.fault(call, err)
		}
		p.mu.Unlock()
		Pause(time.Since(begin))
		p.mu.Lock()
	}
	return nil
}

// Pause waits between two polls of a run, longer the longer the run was waited for. It
// only yields at first, since a step takes less time than a sleep.
func Pause(waited time.Duration) {
	if waited < time.Millisecond {
		runtime.Gosched()
		return
	}
	time.Sleep(min(waited/16, time.Millisecond))
}

// Sync waits for the runs started before, whose errors are left to their own calls. See
// [native.Syncer].
func (p *Program) Sync(ctx context.Context) error {
	if err := p.lock(ctx, "sync"); err != nil {
		return err
	}
	defer p.unlock()
	if err := p.usable("sync"); err != nil {
		return err
	}
	return p.drain(ctx, "sync")
}

// Close waits for the runs in flight; their results can still be waited for. See
// [native.Program].
func (p *Program) Close(ctx context.Context) error {
	closed, err := p.close(ctx)
	if closed && p.drop != nil {
		err = errors.Join(err, p.fault("close", p.drop()))
	}
	return err
}

// close is Close but for the hold of another program. closed is false if nothing was closed.
func (p *Program) close(ctx context.Context) (closed bool, err error) {
	if !p.order.TryLock() {
		if err := p.order.Lock(ctx); err != nil {
			return false, p.fault("close", err)
		}
	}
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return false, nil
	}
	var failed error
	if p.usable("close") == nil {
		if failed = p.drainOf(ctx, "close", p); failed != nil && ctx.Err() != nil {
			return false, failed
		}
	}
	p.closed = true
	p.programs = slices.DeleteFunc(p.programs, func(other *Program) bool { return other == p })
	for _, e := range p.entries {
		failed = errors.Join(failed, e.release())
	}
	return true, p.fault("close", errors.Join(failed, p.release()))
}
