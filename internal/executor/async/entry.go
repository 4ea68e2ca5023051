package async

import (
	"context"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/native"
)

// entry is one way to run a program, with the runs under way.
type entry struct {
	p      *Program
	number int
	spec   *plan.Entry
	inputs int           // how many slots are inputs and scalars
	slots  []native.Slot // these, then outputs
	checks bool
	stages []place
	next   int // of stages, in turn
}

// place is where a run under way has its stage, which is made when it is first needed.
type place struct {
	stage Stage
	user  user // nil where no run is under way
}

// user is who wants a run. Its methods are called with the program locked.
type user interface {
	// put writes the inputs.
	put(s Stage)
	// take is told that the run is over, with its stage or an error.
	take(s Stage, err error)
}

func newEntry(p *Program, number int) *entry {
	spec := &p.plan.Entries[number]
	return &entry{
		p: p, number: number, spec: spec,
		inputs: len(spec.Inputs) + len(spec.Scalars), slots: p.Slots(spec.Name),
		checks: Checks(p.plan, spec), stages: make([]place, p.machine.InFlight(number)),
	}
}

// start asks for a run with the inputs of a user, whose outputs of the given places are
// read. It waits for nothing but a free stage.
func (e *entry) start(ctx context.Context, u user, reads []int) error {
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
	u.put(at.stage)
	e.p.runs++
	if err := at.stage.Begin(reads); err != nil {
		e.p.runs--
		return e.p.fault(e.spec.Name, err)
	}
	at.user = u
	if e.p.machine.Led(e.number) {
		e.p.led = e
	}
	return nil
}

// free returns the next place, after the run that has it is over, and one that the host
// leads to its end.
func (e *entry) free(ctx context.Context) (*place, error) {
	for {
		at := &e.stages[e.next]
		over := func() bool { e.collect(); return at.user == nil }
		if led := e.p.led; led != nil && led.busy() {
			over = func() bool { led.collect(); return !led.busy() }
		} else if at.user == nil {
			break
		}
		if err := e.p.await(ctx, e.spec.Name, over); err != nil {
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

// collect gives the stages of runs that are over to their users, the oldest first.
func (e *entry) collect() {
	for i := range e.stages {
		at := &e.stages[(e.next+i)%len(e.stages)]
		if at.user == nil {
			continue
		}
		over, err := at.stage.Over()
		if !over && err == nil {
			return
		}
		if err == nil && e.checks {
			err = e.failed(at.stage.Status())
		}
		u := at.user
		at.user = nil
		u.take(at.stage, e.p.fault(e.spec.Name, err))
	}
}

// busy reports whether a run is under way.
func (e *entry) busy() bool {
	return slices.ContainsFunc(e.stages, func(at place) bool { return at.user != nil })
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
