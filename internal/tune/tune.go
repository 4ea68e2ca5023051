// Package tune finds by measuring which schedules of a module's groups are the fastest
// on a device, and keeps them on disk, so that a group is measured once on a machine.
//
// Each group that has a choice becomes plans of its own, one for each candidate, which
// the device runs. So what is found depends on the group, the target and the device
// alone, and serves every module that has an equal group.
package tune

import (
	"context"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
)

// Device runs plans to measure them.
type Device interface {
	// Time returns how long a run of a plan's entry "run" takes at best.
	Time(ctx context.Context, p *plan.Plan) (time.Duration, error)
}

// Result is what was found for a group.
type Result struct {
	Key      sched.Key
	Name     string // of the group's kernels
	Schedule sched.Schedule
	// Untuned is the time of what would have been taken without measuring, Tuned that of
	// Schedule, each for one time.
	Untuned, Tuned time.Duration
}

// worthwhile is how much of the untuned time another schedule must save to be taken:
// times vary by some hundredths from run to run.
const worthwhile = 0.03

// Module measures the groups of a module that have a choice and that the store does not
// know, and returns what is the best for all of them. Candidates that the device cannot
// run are passed over. The errors are those of [plan.Choices], and that of ctx.
func Module(ctx context.Context, m *ir.Module, t plan.Target, pr plan.Printer, d Device, s *Store) ([]Result, error) {
	choices, err := plan.Choices(m, t)
	if err != nil {
		return nil, err
	}
	var out []Result
	for _, c := range choices {
		r, known := s.Get(c.Key)
		if !known {
			if r, err = measure(ctx, c, pr, d); err != nil {
				return nil, err
			}
			s.Put(r)
		}
		r.Name = c.Name
		out = append(out, r)
	}
	return out, nil
}

// Schedules returns what was found as a target takes it.
func Schedules(results []Result) sched.Tuned {
	out := sched.Tuned{}
	for _, r := range results {
		out[r.Key] = r.Schedule
	}
	return out
}

// Trial is a candidate with the time that it took, or why the device did not run it.
type Trial struct {
	sched.Ranked
	Took time.Duration
	Err  error
}

// Trials times all candidates of a group, in their order. The error is that of ctx.
func Trials(ctx context.Context, c *plan.Choice, pr plan.Printer, d Device) ([]Trial, error) {
	out := make([]Trial, len(c.Candidates))
	for i, r := range c.Candidates {
		took, err := timeOf(ctx, c, r, pr, d)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out[i] = Trial{r, took, err}
	}
	return out, nil
}

// measure finds the best candidate of a group.
func measure(ctx context.Context, c *plan.Choice, pr plan.Printer, d Device) (Result, error) {
	best := Result{Key: c.Key, Schedule: c.Candidates[0].Schedule}
	trials, err := Trials(ctx, c, pr, d)
	for i, t := range trials {
		switch {
		case t.Err != nil:
		case i == 0:
			best.Untuned, best.Tuned = t.Took, t.Took
		case best.Tuned == 0 || float64(t.Took) < (1-worthwhile)*float64(best.Tuned):
			best.Schedule, best.Tuned = t.Schedule, t.Took
		}
	}
	return best, err
}

// A trial does its work as often as takes about long, by its cost, so that what the host
// does is little of it.
const (
	long      = time.Millisecond
	mostTimes = 100
)

func timeOf(ctx context.Context, c *plan.Choice, r sched.Ranked, pr plan.Printer, d Device) (time.Duration, error) {
	times := max(1, min(int(float64(long.Nanoseconds())/max(r.Cost, 1)), mostTimes))
	p, err := c.Trial(r.Schedule, times, pr)
	if err != nil {
		return 0, err
	}
	took, err := d.Time(ctx, p)
	return took / time.Duration(times), err
}
