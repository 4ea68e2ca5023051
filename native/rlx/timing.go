package main

import (
	"context"
	"slices"
	"time"

	"github.com/rlx-go/rlx"
)

// timing are the times of runs of an entry.
type timing struct {
	runs               int
	least, median, p90 time.Duration
}

// timeRuns runs an entry until the given time is over, at least three times and once before. The
// inputs are copied to the device with each run, and the outputs back.
func timeRuns(ctx context.Context, p *rlx.Program, entry string, in rlx.Inputs, whole time.Duration) (timing, error) {
	var times []time.Duration
	for begin := time.Now(); len(times) < 4 || time.Since(begin) < whole; {
		start := time.Now()
		if _, err := p.Call(ctx, entry, in); err != nil {
			return timing{}, err
		}
		if err := p.Sync(ctx); err != nil {
			return timing{}, err
		}
		times = append(times, time.Since(start))
	}
	times = times[1:]
	slices.Sort(times)
	return timing{len(times), times[0], times[len(times)/2], times[len(times)*9/10]}, nil
}
