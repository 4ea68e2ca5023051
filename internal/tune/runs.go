package tune

import (
	"slices"
	"time"
)

// Runs calls run until the given time is over, at least four times, and returns the sorted times of all
// calls but the first, which compiles or fills caches. It ends at the first error.
func Runs(whole time.Duration, run func() error) ([]time.Duration, error) {
	var times []time.Duration
	for begin := time.Now(); len(times) < 4 || time.Since(begin) < whole; {
		start := time.Now()
		if err := run(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	times = times[1:]
	slices.Sort(times)
	return times, nil
}
