package rlx

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// unset tracks the parameters of a program without a value, so that no entry computes with the
// zeros in their memory.
type unset struct {
	*missing
	reads map[string][]string // by entry, the parameters that it reads
	sets  map[string][]string // by entry, the parameters and states that it updates
}

// missing holds the parameters without a value of programs that share them.
type missing struct {
	mu     sync.Mutex
	params map[string]bool
}

// unsetParams returns the parameters of a module without a value: all except those of with, the
// program that it shares memory with, if any.
func unsetParams(m *ir.Module, with *Program) *unset {
	u := &unset{missing: &missing{params: map[string]bool{}}, reads: map[string][]string{}, sets: map[string][]string{}}
	known := map[string]bool{}
	if with != nil {
		u.missing = with.unset.missing
		for _, s := range with.Persistent() {
			known[s.Name] = true
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range m.Entries {
		read := e.Graph.ReadPorts()
		for _, p := range e.Graph.Ports() {
			if p.Kind == ir.ParamPort {
				if !known[p.Name] {
					u.params[p.Name] = true
				}
				if read[p.Name] {
					u.reads[e.Name] = append(u.reads[e.Name], p.Name)
				}
			}
			if e.Graph.Updates(p.Name) {
				u.sets[e.Name] = append(u.sets[e.Name], p.Name)
			}
		}
	}
	return u
}

// check returns an error of kind [ir.ErrName] if an entry reads a parameter without a value.
func (u *unset) check(entry string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.params) == 0 {
		return nil
	}
	names := slices.DeleteFunc(slices.Clone(u.reads[entry]), func(name string) bool { return !u.params[name] })
	if len(names) == 0 {
		return nil
	}
	return ir.Errorf(ir.ErrName, "entry %q reads parameters without a value: %s; set or load them; rlx.InitialParams draws initial ones", entry, formatNames(names))
}

// markGiven records that parameters have a value.
func (u *missing) markGiven(names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		delete(u.params, name)
	}
}

// Run starts an entry: see [native.Program.Run]. The error is of kind [ir.ErrName] if the entry
// reads a parameter without a value. A parameter gets its value from [Program.Set], [Program.Load]
// or a run of an entry that updates it.
func (p *Program) Run(ctx context.Context, entry string, in map[string]Tensor) (native.Run, error) {
	if err := p.given(ctx, "run"); err != nil {
		return nil, err
	}
	if p.unset == nil {
		return p.Program.Run(ctx, entry, in)
	}
	if err := p.unset.check(entry); err != nil {
		return nil, err
	}
	r, err := p.Program.Run(ctx, entry, in)
	if err == nil {
		p.unset.markGiven(p.unset.sets[entry])
	}
	return r, err
}

// Set writes one parameter or state: see [native.Program.Set].
func (p *Program) Set(ctx context.Context, name string, t Tensor) error {
	if err := p.given(ctx, "set"); err != nil {
		return err
	}
	return p.set(func() error { return p.Program.Set(ctx, name, t) }, name)
}

// SetAll writes several parameters and states: see [native.Program.SetAll].
func (p *Program) SetAll(ctx context.Context, values map[string]Tensor) error {
	if err := p.given(ctx, "set"); err != nil {
		return err
	}
	return p.set(func() error { return p.Program.SetAll(ctx, values) }, slices.Collect(maps.Keys(values))...)
}

func (p *Program) set(write func() error, names ...string) error {
	if err := write(); err != nil || p.unset == nil {
		return err
	}
	p.unset.markGiven(names)
	return nil
}

// Bind prepares an entry for repeated runs on fixed host memory: see [native.Program.Bind]. The
// first Start checks for parameters without a value, as [Program.Run] does.
func (p *Program) Bind(ctx context.Context, entry string, in, out map[string]Tensor) (native.Bound, error) {
	if err := p.given(ctx, "bind"); err != nil {
		return nil, err
	}
	b, err := p.Program.Bind(ctx, entry, in, out)
	if err != nil || p.unset == nil {
		return b, err
	}
	return &checkedBound{Bound: b, unset: p.unset, entry: entry}, nil
}

// checkedBound checks for parameters without a value until one Start has succeeded; after that they
// keep a value.
type checkedBound struct {
	native.Bound
	unset   *unset
	entry   string
	started bool
}

// Start starts a run: see [native.Bound.Start].
func (b *checkedBound) Start(ctx context.Context) error {
	if b.started {
		return b.Bound.Start(ctx)
	}
	if err := b.unset.check(b.entry); err != nil {
		return err
	}
	err := b.Bound.Start(ctx)
	if b.started = err == nil; b.started {
		b.unset.markGiven(b.unset.sets[b.entry])
	}
	return err
}
