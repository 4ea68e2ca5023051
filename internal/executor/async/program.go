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
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// Program is a plan on a device as a [native.Program]: it looks at what callers give,
// keeps the runs of each entry in their order, hands outputs and errors to who waits for
// them, and leaves the device to a [Machine].
type Program struct {
	Signature
	plan    *plan.Plan
	machine Machine
	kept    map[string]*plan.Slot // parameters and states by name

	// turns are of calls that ask something of the machine, in their order; those that
	// wait for what was asked need none. Who has one may then lock mu.
	turns   fair.Lock
	mu      sync.Mutex
	entries []*entry
	led     *entry // the last one begun whose runs the host leads, nil before
	runs    int    // that were begun
	// silent is a bound entry that has failed and has nobody waiting for it.
	silent *bound
	closed bool
}

// NewProgram returns the program of a plan on a machine that is ready to run it.
func NewProgram(p *plan.Plan, m Machine) *Program {
	made := &Program{Signature: SignatureOf(p), plan: p, machine: m, kept: map[string]*plan.Slot{}}
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Role.Persistent() {
			made.kept[s.Name] = s
		}
	}
	for i := range p.Entries {
		made.entries = append(made.entries, newEntry(made, i))
	}
	return made
}

// Do calls f with the number of an entry in the plan, while nobody else uses the program.
// It returns f's error as one of this call, and one of kind [ir.ErrName] where there is no
// such entry.
func (p *Program) Do(ctx context.Context, entry string, f func(number int) error) error {
	if err := p.lock(ctx, entry); err != nil {
		return err
	}
	defer p.unlock()
	e, err := p.look(entry)
	if err != nil {
		return err
	}
	return p.fault(entry, f(e.number))
}

// lock takes a turn and the program for a call, after all calls before it.
func (p *Program) lock(ctx context.Context, call string) error {
	if err := p.turns.Lock(ctx); err != nil {
		return p.fault(call, err)
	}
	p.mu.Lock()
	return nil
}

func (p *Program) unlock() {
	p.mu.Unlock()
	p.turns.Unlock()
}

// look returns an entry for a call, with the program locked.
func (p *Program) look(name string) (*entry, error) {
	if err := p.usable(name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.spec.Name == name })
	if i < 0 {
		return nil, Blame(p.machine, name, "", ir.Errorf(ir.ErrName, "there is no such entry: there are %v", p.Entries()))
	}
	return p.entries[i], nil
}

// find returns a parameter or a state for a call, with the program locked.
func (p *Program) find(call, name string) (*plan.Slot, error) {
	if err := p.usable(call); err != nil {
		return nil, err
	}
	if s := p.kept[name]; s != nil {
		return s, nil
	}
	var names []string
	for _, s := range p.Persistent() {
		names = append(names, s.Name)
	}
	return nil, Blame(p.machine, call, name, ir.Errorf(ir.ErrName, "there is no parameter or state %q: there are %v", name, names))
}

// Set writes a parameter or a state, after the runs that were begun.
func (p *Program) Set(ctx context.Context, name string, t native.Tensor) error {
	return p.SetAll(ctx, map[string]native.Tensor{name: t})
}

// SetAll writes several parameters and states at one time, or none.
func (p *Program) SetAll(ctx context.Context, values map[string]native.Tensor) error {
	if err := p.lock(ctx, "set"); err != nil {
		return err
	}
	defer p.unlock()
	slots := make(map[string]*plan.Slot, len(values))
	for name, t := range values {
		slot, err := p.find("set", name)
		if err != nil {
			return err
		}
		if err := SlotOf(slot, native.State).Accept(t); err != nil {
			return Blame(p.machine, "set", name, err)
		}
		slots[name] = slot
	}
	if !p.machine.Ordered() {
		if err := p.drain(ctx, "set"); err != nil {
			return err
		}
	}
	for name, slot := range slots {
		if err := p.machine.Write(slot, loop.DeviceBytes(slot.DType, values[name].Data)); err != nil {
			return p.fault("set", err)
		}
	}
	return nil
}

// Get waits for all runs. Of a run of a bound entry without outputs that failed, which
// nobody waits for, it returns the error.
func (p *Program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.lock(ctx, "get"); err != nil {
		return native.Tensor{}, err
	}
	defer p.unlock()
	slot, err := p.find("get", name)
	if err != nil {
		return native.Tensor{}, err
	}
	if err := p.settle(ctx); err != nil {
		return native.Tensor{}, err
	}
	return p.read(slot)
}

// GetAll is [Program.Get] for all parameters and states at one time.
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
	for i := range p.plan.Slots {
		slot := &p.plan.Slots[i]
		if !slot.Role.Persistent() {
			continue
		}
		t, err := p.read(slot)
		if err != nil {
			return nil, err
		}
		out[slot.Name] = t
	}
	return out, nil
}

// settle waits for all runs and returns the error of one that nobody waits for.
func (p *Program) settle(ctx context.Context) error {
	if err := p.drain(ctx, "get"); err != nil {
		return err
	}
	if b := p.silent; b != nil {
		return b.taken()
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

// drain waits for all runs and collects what they have left.
func (p *Program) drain(ctx context.Context, call string) error {
	for _, e := range p.entries {
		if err := p.await(ctx, call, func() bool { e.collect(); return !e.busy() }); err != nil {
			return err
		}
	}
	return nil
}

// await waits until something is over, or ctx is done. It lets go of the lock while it
// waits.
func (p *Program) await(ctx context.Context, call string, over func() bool) error {
	for begin := time.Now(); !over(); {
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

// Pause lets others run between two looks at a run that has been waited for so long:
// shortly at first, since a step takes less time than a sleep.
func Pause(waited time.Duration) {
	if waited < time.Millisecond {
		runtime.Gosched()
		return
	}
	time.Sleep(min(waited/16, time.Millisecond))
}

// Close waits for what is under way. What it was to leave can still be waited for. See
// [native.Program].
func (p *Program) Close(ctx context.Context) error {
	if !p.turns.TryLock() {
		if err := p.turns.Lock(ctx); err != nil {
			return p.fault("close", err)
		}
	}
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return nil
	}
	var failed error
	if p.usable("close") == nil {
		if failed = p.drain(ctx, "close"); failed != nil && ctx.Err() != nil {
			return failed
		}
	}
	p.closed = true
	for _, e := range p.entries {
		failed = errors.Join(failed, e.release())
	}
	return p.fault("close", errors.Join(failed, p.machine.Release()))
}
