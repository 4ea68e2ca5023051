package native

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Profiler is a [Program] that can tell where the time of an entry goes.
type Profiler interface {
	Program
	// Profile runs an entry a number of times with the inputs that the device has
	// and returns what each kernel, routine and kind of copy takes of a run, the
	// longest first. States change as with any run. Launches are timed one by one
	// and not overlapped, so that the whole is somewhat longer than a run: by about
	// a launch for each. Errors are of the kinds of [Program.Run], and of kind
	// [ir.ErrAttr] for less than one run.
	Profile(ctx context.Context, entry string, runs int) ([]Timing, error)
}

// Timing is what a kernel, a routine of a library or copies take in a run of an
// entry.
type Timing struct {
	// Name is the kernel's, what a routine computes, or "copy".
	Name string
	// Launches is how often it is started in a run.
	Launches int
	// Time is that of all launches of a run, the mean over the runs.
	Time time.Duration
	// Bytes is what all launches may read and write: the size of what they are
	// bound to. A kernel that reads a part of it moves less.
	Bytes int64
	// Operations is the multiplications and additions of routines, 0 for kernels,
	// which are not counted.
	Operations float64
}

// WriteTimings prints a table, a line each: part of the whole, time, launches, bytes
// bound in a nanosecond, operations in a picosecond where they are known, name. Below
// it are sums.
func WriteTimings(w io.Writer, timings []Timing) error {
	var whole time.Duration
	launches := 0
	for _, t := range timings {
		whole += t.Time
		launches += t.Launches
	}
	_, err := fmt.Fprintf(w, "%6s %10s %8s %8s %8s  %s\n", "part", "µs", "launches", "GB/s", "TFLOP/s", "name")
	for _, t := range timings {
		if err != nil {
			return err
		}
		ns := max(float64(t.Time), 1)
		rate := ""
		if t.Operations > 0 {
			rate = fmt.Sprintf("%.1f", t.Operations/ns/1e3)
		}
		_, err = fmt.Fprintf(w, "%5.1f%% %10.1f %8d %8.0f %8s  %s\n", 100*ns/max(float64(whole), 1), ns/1e3, t.Launches, float64(t.Bytes)/ns, rate, t.Name)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "%6s %10.1f %8d\n", "all", float64(whole)/1e3, launches)
	}
	return err
}
