package async

import (
	"context"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/native"
)

// entry is an entry of a program with a ring of stages for the runs in flight.
type entry struct {
	p      *Program
	number int
	spec   *plan.Entry
	inputs int           // number of inputs and scalars
	slots  []native.Slot // inputs, scalars, outputs
	checks bool
	stages []ringSlot
	next   int // index of the next stage to use
}

// ringSlot holds a stage, made on first use, and the run that uses it.
type ringSlot struct {
	stage Stage
	run   run // nil if no run is in flight
}

// run is a run in flight. Its methods are called with the program locked.
type run interface {
	// writeInputs copies the inputs to the stage.
	writeInputs(s Stage)
	// readOutputs copies the outputs of the finished run from its stage, or records err.
	readOutputs(s Stage, err error)
}

func newEntry(p *Program, number int) *entry {
	spec := &p.plan.Entries[number]
	return &entry{
		p: p, number: number, spec: spec,
		inputs: len(spec.Inputs) + len(spec.Scalars), slots: p.Slots(spec.Name),
		checks: Checks(p.plan, spec), stages: make([]ringSlot, p.machine.InFlight(number)),
	}
}

// start begins a run that fetches the outputs reads. It waits only for a free stage.
func (e *entry) start(ctx context.Context, r run, reads []int) error {
	if err := e.p.usable(e.spec.Name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return e.p.fault(e.spec.Name, err)
	}
	at, err := e.free(ctx)
	if err != nil {
		return err
	}
	r.writeInputs(at.stage)
	e.p.runs++
	if err := at.stage.Begin(reads); err != nil {
		e.p.runs--
		return e.p.fault(e.spec.Name, err)
	}
	at.run = r
	if e.p.machine.HostDriven(e.number) {
		e.p.hostDriven = e
	}
	return nil
}

// free returns the next slot of the ring, after its run and any host-driven run are done.
func (e *entry) free(ctx context.Context) (*ringSlot, error) {
	for {
		at := &e.stages[e.next]
		done := func() bool { e.collect(); return at.run == nil }
		if driven := e.p.hostDriven; driven != nil && driven.busy() {
			done = func() bool { driven.collect(); return !driven.busy() }
		} else if at.run == nil {
			break
		}
		if err := e.p.await(ctx, e.spec.Name, done); err != nil {
			return nil, err
		}
	}
	at := &e.stages[e.next]
	if at.stage == nil {
		s, err := e.p.machine.NewStage(e.number)
		if err != nil {
			return nil, e.p.fault(e.spec.Name, err)
		}
		at.stage = s
	}
	e.next = (e.next + 1) % len(e.stages)
	return at, nil
}

// collect finishes the runs that are done, oldest first.
func (e *entry) collect() {
	for i := range e.stages {
		at := &e.stages[(e.next+i)%len(e.stages)]
		if at.run == nil {
			continue
		}
		done, err := at.stage.Done()
		if !done && err == nil {
			return
		}
		if err == nil && e.checks {
			err = e.statusError(at.stage.Status())
		}
		r := at.run
		at.run = nil
		r.readOutputs(at.stage, e.p.fault(e.spec.Name, err))
	}
}

// busy reports whether a run is in flight.
func (e *entry) busy() bool {
	return slices.ContainsFunc(e.stages, func(at ringSlot) bool { return at.run != nil })
}

func (e *entry) release() error {
	var failed error
	for i := range e.stages {
		if s := e.stages[i].stage; s != nil {
			failed = errors.Join(failed, s.Release())
			e.stages[i].stage = nil
		}
	}
	return failed
}
