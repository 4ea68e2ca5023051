package rlx

import (
	"context"
	"slices"

	"github.com/rlx-go/rlx/internal/executor/fair"
	"github.com/rlx-go/rlx/internal/executor/pending"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// mover synchronises the parameters and states of programs with separate memory: before a run it
// copies newer values from another program. Devices that implement [native.Sharer] need none.
type mover struct {
	base   native.Program
	order  fair.Lock // runs and reads are serialised
	newest native.Program
	has    map[native.Program]bool // program with the newest values
}

func newMover(base native.Program) *mover {
	return &mover{base: base, newest: base, has: map[native.Program]bool{base: true}}
}

// update copies the newest values to a program. The mover is locked.
func (m *mover) update(ctx context.Context, p native.Program) error {
	if m.has[p] {
		return nil
	}
	if !m.has[m.base] {
		values, err := m.newest.GetAll(ctx)
		if err == nil {
			err = m.base.SetAll(ctx, values)
		}
		if err != nil {
			return err
		}
		m.has[m.base] = true
	}
	if p == m.base {
		return nil
	}
	values, err := m.base.GetAll(ctx)
	if err != nil {
		return err
	}
	own := map[string]Tensor{}
	for _, s := range p.Persistent() {
		own[s.Name] = values[s.Name]
	}
	if err := p.SetAll(ctx, own); err != nil {
		return err
	}
	m.has[p] = true
	return nil
}

// changed records that only one program has the newest values. The mover is locked.
func (m *mover) changed(p native.Program) {
	m.newest = p
	clear(m.has)
	m.has[p] = true
}

// do calls f with a program that has the newest values; writes says that f changes them.
func (m *mover) do(ctx context.Context, p native.Program, writes bool, f func() error) error {
	if err := m.order.Lock(ctx); err != nil {
		return err
	}
	defer m.order.Unlock()
	if err := m.update(ctx, p); err != nil {
		return err
	}
	err := f()
	if err == nil && writes {
		m.changed(p)
	}
	return err
}

// forget removes a program that is about to be closed.
func (m *mover) forget(ctx context.Context, p native.Program) error {
	return m.do(ctx, m.base, false, func() error {
		if m.newest == p {
			m.newest = m.base
		}
		delete(m.has, p)
		return nil
	})
}

// writes reports whether a graph changes a parameter or a state.
func writes(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { return o.State })
}

// run starts an entry of a program after the runs before.
func (m *mover) run(ctx context.Context, p native.Program, entry string, changes bool, in map[string]Tensor) native.Run {
	turn := m.order.Join(false)
	ended := func(err error) error { return err }
	return pending.Go(ended, func() (map[string]Tensor, error) {
		if err := turn.Wait(ctx); err != nil {
			return nil, err
		}
		defer turn.Release()
		if err := m.update(ctx, p); err != nil {
			return nil, err
		}
		started, err := p.Run(ctx, entry, in)
		if err != nil {
			return nil, err
		}
		out, err := started.Wait(context.WithoutCancel(ctx))
		if err == nil && changes {
			m.changed(p)
		}
		return out, err
	})
}
