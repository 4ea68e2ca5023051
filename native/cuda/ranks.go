//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	joint "github.com/rlx-go/rlx/internal/executor/ranks"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/nccl"
)

// Collectives implements [native.Collectives]: NCCL moves the data.
func (b *backend) Collectives() error { return nccl.Available() }

// ranks holds the resources that a program shares with those of the other ranks of a mesh. A nil one is that of a
// program without collectives.
type ranks struct {
	module *ir.Module
	mesh   *collective.Mesh
	agreed bool
	comms  map[string]*nccl.Comm // by axis
	held   bool
}

// newRanks returns the ranks of a module, nil if it has no collectives of several devices, or an error
// of kind [ir.ErrUnsupported] for collectives that the mesh does not have.
func newRanks(m *ir.Module, mesh *collective.Mesh) (*ranks, error) {
	for _, e := range m.Entries {
		if err := joint.Check(e.Graph, mesh); err != nil {
			return nil, fmt.Errorf("entry %q of module %q: %w", e.Name, m.Name, err)
		}
	}
	if mesh == nil || !joint.InModule(m) {
		return nil, nil
	}
	return &ranks{module: m, mesh: mesh, comms: map[string]*nccl.Comm{}}, nil
}

// settle ends a compilation, in which the other ranks take part: they learn of a failure.
func (r *ranks) settle(ctx context.Context, err error) error {
	switch {
	case r == nil:
		return err
	case !r.agreed:
		if different := joint.Agree(ctx, Name, r.module, r.mesh, nil, err); err == nil {
			err = different
		}
	case err != nil:
		r.mesh.World().Abort(err)
	}
	return err
}

// connect compares the plans of the ranks, and makes the communicators of the axes that the plan uses,
// in the order of the mesh.
func (p *program) connect(ctx context.Context) error {
	r := p.ranks
	if r == nil {
		return nil
	}
	r.agreed = true
	if err := joint.Agree(ctx, Name, r.module, r.mesh, orderOf(p.plan), nil); err != nil {
		return err
	}
	for _, a := range r.mesh.Axes() {
		uses := func(x routine.Routine) bool { return axisOf(x) == a.Name }
		if !slices.ContainsFunc(p.plan.Routines, uses) {
			continue
		}
		c, err := nccl.Of(ctx, r.mesh.Along(a.Name), p.device.Device)
		if err != nil {
			return err
		}
		r.comms[a.Name] = c
	}
	for _, c := range r.comms {
		c.Hold()
	}
	r.held = true
	return p.warmCollectives()
}

// warmCollectives makes every collective of the plan once: NCCL connects the devices at the first
// call, which it cannot do during a capture.
func (p *program) warmCollectives() error {
	done := make([]bool, len(p.calls.list))
	for i, r := range p.plan.Routines {
		done[i] = !isCollective(r)
		if x, ok := r.(routine.Collective); ok {
			c := joint.CallOf(x)
			w, err := p.ranks.comms[x.Axis].Begin(&c, func() bool { return false })
			if err != nil {
				return err
			}
			defer w.End(nil)
		}
	}
	if err := p.calls.warmCalls(done); err != nil {
		return p.ranks.reason(err)
	}
	return p.ranks.reason(p.stream.Synchronize())
}

// reason returns why a communicator is of no use rather than the error that came of it, which may be
// nil.
func (r *ranks) reason(err error) error {
	if ended := r.ended(); ended != nil {
		return ended
	}
	return err
}

// ended returns why no collective can be made any more, and failed why the program is of no use: a rank
// was lost or has failed during a run.
func (r *ranks) ended() error  { return r.first((*nccl.Comm).Err) }
func (r *ranks) failed() error { return r.first((*nccl.Comm).Broken) }

// first returns the first error of the communicators.
func (r *ranks) first(of func(*nccl.Comm) error) error {
	if r == nil {
		return nil
	}
	for _, c := range r.comms {
		if err := of(c); err != nil {
			return err
		}
	}
	return nil
}

// release lets the communicators go, once the graphs are destroyed.
func (r *ranks) release() {
	if r == nil || !r.held {
		return
	}
	r.held = false
	for _, c := range r.comms {
		c.Release()
	}
}

// isCollective reports whether a routine moves data between ranks.
func isCollective(r routine.Routine) bool {
	_, ok := r.(routine.Collective)
	return ok
}

// axisOf returns the mesh axis of a routine, "" if it has none.
func axisOf(r routine.Routine) string {
	switch r := r.(type) {
	case routine.Collective:
		return r.Axis
	case routine.DeviceIndex:
		return r.Axis
	}
	return ""
}

// prepare prepares a routine that needs the ranks. It uses their communicators once they are made.
func (r *ranks) prepare(of routine.Routine) (call, error) {
	if r == nil {
		return nil, ir.Errorf(ir.ErrUnsupported, "routine %q of a program without ranks", of.Name())
	}
	if x, ok := of.(routine.DeviceIndex); ok {
		rank := uint32(r.mesh.Along(x.Axis).Rank())
		return func(on *driver.Stream, arrays []driver.Ptr) error { return on.Fill(arrays[0], rank, 1) }, nil
	}
	x := of.(routine.Collective)
	lib, err := driver.LoadNCCL()
	if err == nil {
		err = lib.Reduces(x)
	}
	return func(on *driver.Stream, arrays []driver.Ptr) error {
		return r.comms[x.Axis].Run(on, x, arrays[0], arrays[1])
	}, err
}

// orderOf returns the collectives of a plan in the order in which every rank must make them.
func orderOf(p *plan.Plan) (out []string) {
	for _, e := range p.Entries {
		out = append(out, "entry "+e.Name)
		for s := range plan.Each(e.Steps) {
			switch s := s.(type) {
			case *plan.Call:
				if r := p.Routines[s.Routine]; isCollective(r) {
					out = append(out, fmt.Sprint(r.Name(), r.Words()))
				}
			case *plan.Repeat:
				out = append(out, fmt.Sprint("repeat ", s.Count))
			}
		}
	}
	return out
}

// maxRecorded bounds the collectives of a run that are recorded, as many as a group keeps.
const maxRecorded = 64

// exchange is a collective of an entry, for the record of its group.
type exchange struct {
	axis string
	call collective.Call
}

// exchangesOf returns the last collectives of a run of an entry.
func exchangesOf(p *plan.Plan, e *plan.Entry) (out []exchange) {
	var walk func(steps []plan.Step)
	walk = func(steps []plan.Step) {
		for _, s := range steps {
			switch s := s.(type) {
			case *plan.Call:
				if r, ok := p.Routines[s.Routine].(routine.Collective); ok {
					c := joint.CallOf(r)
					c.Entry = e.Name
					out = append(out, exchange{r.Axis, c})
				}
			case *plan.Repeat:
				for i := range s.Count {
					walk(s.Iteration(i))
				}
			}
		}
		out = out[max(0, len(out)-maxRecorded):]
	}
	walk(e.Steps)
	return out
}

// begin records the collectives of a run that is enqueued now.
func (s *stage) begin() error {
	e := s.e
	if len(e.exchanges) == 0 {
		return nil
	}
	e.runs++
	for i := range e.exchanges {
		x := &e.exchanges[i]
		x.call.Step = e.runs
		w, err := e.p.ranks.comms[x.axis].Begin(&x.call, s.isDone)
		if err != nil {
			return err
		}
		s.work = append(s.work, w)
	}
	return nil
}

// isDone reports whether the device has finished the run, for the watch of a communicator.
func (s *stage) isDone() bool {
	if !s.begun.Load() {
		return false
	}
	done, err := s.event.Done()
	return done || err != nil
}

// end ends the collectives of the run, and returns the error of a rank that was lost meanwhile: what
// the run has computed is then of no use.
func (s *stage) end(err error) error {
	if err == nil && len(s.work) > 0 {
		err = s.e.p.ranks.failed()
	}
	for _, w := range s.work {
		w.End(err)
	}
	s.work = nil
	return err
}

// errBefore is why the other ranks end if this one fails before a collective.
var errBefore = errors.New("the run failed on this rank")
