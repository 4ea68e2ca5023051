package native

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rlx-go/rlx/ir"
)

// Profiler is a [Program] that can time the kernels of an entry.
type Profiler interface {
	Program
	// Profile runs an entry a number of times with the inputs on the device and
	// returns the time of each kernel, library routine and kind of copy, longest
	// first. States change as with any run. Launches are timed one by one and do not
	// overlap, so the total exceeds a run by about one launch overhead per launch.
	// Errors are of the kinds of [Program.Run], and of kind [ir.ErrAttr] for runs < 1.
	Profile(ctx context.Context, entry string, runs int) ([]Timing, error)
}

// Timing is the cost of a kernel, a library routine or copies in a run of an entry.
type Timing struct {
	// Name is the kernel's, the routine's, or "copy".
	Name string
	// Launches is the number of launches in a run.
	Launches int
	// Time is the total time of the launches of a run, averaged over the runs.
	Time time.Duration
	// Bytes is the total size of the launches' buffers, an upper bound of their
	// memory traffic.
	Bytes int64
	// Operations counts the multiplications and additions of routines. It is 0 for
	// kernels.
	Operations float64
}

// WriteTimings prints a table with a line for each timing: share of the total, time,
// launches, GB/s, TFLOP/s if known, name. The last line has the totals.
func WriteTimings(w io.Writer, timings []Timing) error {
	if w == nil {
		return ir.Attrf("w is nil: it must be a writer")
	}
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
