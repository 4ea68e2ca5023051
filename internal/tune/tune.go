// Package tune autotunes schedules: it times the candidates of each fusion group of a
// module on a device and stores the best on disk. Its input is a module and a target, its
// output the schedules for [plan.Target]. Start reading at tune.go, with [Module]; store.go has the file.
//
// Each group with several candidates becomes one plan per candidate, which the device runs.
// The result depends only on the group, the target and the device, so all modules with an
// equal group share it.
package tune

import (
	"context"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
)

// Device times plans.
type Device interface {
	// Time returns the best time of a run of the plan's entry "run".
	Time(ctx context.Context, p *plan.Plan) (time.Duration, error)
}

// Result is the tuning result of a group.
type Result struct {
	Key      sched.Key
	Name     string // name of the group's kernels
	Schedule emit.Schedule
	// Untuned is the time with the default schedule, Tuned that with Schedule.
	Untuned, Tuned time.Duration
}

// minSaving is the share of the untuned time that another schedule must save, above the
// noise of a few percent.
const minSaving = 0.03

// Module tunes the groups of a module with several candidates that the store lacks, and
// returns the results of all. Candidates that the device cannot run are skipped. The errors
// are those of [plan.Choices] and of ctx.
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

// Schedules converts results to the schedules of a target.
func Schedules(results []Result) sched.Tuned {
	out := sched.Tuned{}
	for _, r := range results {
		out[r.Key] = r.Schedule
	}
	return out
}

// Trial is a candidate with its time, or the error of the device.
type Trial struct {
	emit.Ranked
	Took time.Duration
	Err  error
}

// Trials times all candidates of a group in order. The error is that of ctx.
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

// measure returns the best candidate of a group.
func measure(ctx context.Context, c *plan.Choice, pr plan.Printer, d Device) (Result, error) {
	best := Result{Key: c.Key, Schedule: c.Candidates[0].Schedule}
	trials, err := Trials(ctx, c, pr, d)
	for i, t := range trials {
		switch {
		case t.Err != nil:
		case i == 0:
			best.Untuned, best.Tuned = t.Took, t.Took
		case best.Tuned == 0 || float64(t.Took) < (1-minSaving)*float64(best.Tuned):
			best.Schedule, best.Tuned = t.Schedule, t.Took
		}
	}
	return best, err
}

// A trial repeats its work for about the time long, by its estimated cost, to hide launch
// overhead.
const (
	long     = time.Millisecond
	maxTimes = 100
)

func timeOf(ctx context.Context, c *plan.Choice, r emit.Ranked, pr plan.Printer, d Device) (time.Duration, error) {
	times := max(1, min(int(float64(long.Nanoseconds())/max(r.Cost, 1)), maxTimes))
	p, err := c.Trial(r.Schedule, times, pr)
	if err != nil {
		return 0, err
	}
	took, err := d.Time(ctx, p)
	return took / time.Duration(times), err
}
