package compiler

import (
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// tuning is a job with its groups that can be scheduled in several ways. The host
// measures these, which takes it many calls.
type tuning struct {
	*job
	groups []*plan.Choice
}

// choices (job) → tuning, its groups: key, name and schedules, the one first that is
// taken where nobody has measured.
func choices(c *wire.Service, r *wire.Request, w *wire.Response) error {
	j, err := readJob(c, r)
	if err != nil {
		return err
	}
	t := &tuning{job: j}
	if t.groups, err = plan.Choices(j.module, j.devices[0].Target); err != nil {
		return err
	}
	w.U32(c.Add(t))
	w.U32(len(t.groups))
	for _, g := range t.groups {
		w.Text(g.Key.String())
		w.Text(g.Name)
		w.U32(len(g.Candidates))
		for _, s := range g.Candidates {
			w.Text(s.String())
		}
	}
	return nil
}

// candidate reads the number of one of a group's schedules.
func candidate(r *wire.Request, g *plan.Choice) (emit.Schedule, error) {
	i := r.U32()
	if i >= len(g.Candidates) {
		return emit.Schedule{}, ir.Errorf(ir.ErrIndex, "unknown schedule %d of %s", i, g.Name)
	}
	return g.Candidates[i].Schedule, r.Err()
}

// trial (tuning, group, schedule) → a plan file whose entry "run" computes the group once.
func trial(t *tuning, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	i := r.U32()
	if i >= len(t.groups) {
		return ir.Errorf(ir.ErrIndex, "unknown group %d", i)
	}
	s, err := candidate(r, t.groups[i])
	if err != nil {
		return err
	}
	p, err := t.groups[i].Trial(s, 1, t.devices[0].Printer)
	if err != nil {
		return err
	}
	return writePlan(w, p)
}

// tuned (tuning, the number of a schedule for each group) → plan file.
func tuned(t *tuning, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	if n := r.U32(); n != len(t.groups) {
		return ir.Shapef("%d schedules given for %d groups", n, len(t.groups))
	}
	chosen := sched.Tuned{}
	var err error
	for _, g := range t.groups {
		if chosen[g.Key], err = candidate(r, g); err != nil {
			return err
		}
	}
	t.devices[0].Target.Schedules = chosen
	return t.compile(w)
}
