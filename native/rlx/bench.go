package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/native"
)

var benchCommand = command{
	name: "bench", args: "FILE", short: "measure how long an entry takes, and its kernels",
	long: `Runs an entry again and again, and prints the time to compile it, the least, the median and the
ninetieth percentile of the times of runs, the rate of its products, and where a device can say, the
time of each kernel. Inputs and outputs are copied with each run. FILE may also be a plan, as for
"rlx run"; the time to compile is then the one to open it.`,
	define: func(f *flag.FlagSet) runner {
		o := openFlags(f)
		asJSON, in := jsonFlag(f), inputsFlag(f)
		whole := f.Duration("time", 2*time.Second, "`DURATION` of the measurement")
		return func(ctx context.Context, std stdio, args []string) error {
			if *whole <= 0 {
				return usagef("-time is %v: it must be more than 0", *whole)
			}
			w, inputs, err := o.openWithInputs(ctx, args, in, std)
			if err != nil {
				return err
			}
			defer w.session.Close(context.WithoutCancel(ctx))
			t, err := timeRuns(ctx, w.program, w.entry, inputs, *whole)
			if err != nil {
				return err
			}
			b := benchJSON{
				Device: w.session.Device().Name, Entry: w.entry, Compile: millis(w.compile), Runs: t.runs,
				Min: millis(t.least), Median: millis(t.median), P90: millis(t.p90), Memory: w.program.Memory(),
			}
			if w.module != nil {
				if e, err := entryOf(w.module, w.entry); err == nil {
					b.Operations = workload.Of(e.Graph).Operations
					b.TFLOPs = b.Operations / max(float64(t.median), 1) / 1e3
				}
			}
			if p, ok := w.program.Program.(native.Profiler); ok {
				if b.profile, err = p.Profile(ctx, w.entry, 3); err != nil {
					return err
				}
			}
			return b.write(std.out, *asJSON)
		}
	},
}

// benchJSON is the output of "bench". Times are in milliseconds.
type benchJSON struct {
	Device     string       `json:"device"`
	Entry      string       `json:"entry"`
	Compile    float64      `json:"compileMs"`
	Runs       int          `json:"runs"`
	Min        float64      `json:"minMs"`
	Median     float64      `json:"medianMs"`
	P90        float64      `json:"p90Ms"`
	Memory     int64        `json:"memory"`     // bytes on the device
	Operations float64      `json:"operations"` // multiplications and additions of products in a run
	TFLOPs     float64      `json:"tflops"`     // of products, by the median
	GBs        float64      `json:"gbs,omitempty"`
	Kernels    []kernelJSON `json:"kernels,omitempty"`
	profile    []native.Timing
}

type kernelJSON struct {
	Name     string  `json:"name"`
	Launches int     `json:"launches"`
	Micros   float64 `json:"us"`
	GBs      float64 `json:"gbs"`
}

func (b *benchJSON) write(w io.Writer, asJSON bool) error {
	var bytes int64
	for _, t := range b.profile {
		bytes += t.Bytes
		b.Kernels = append(b.Kernels, kernelJSON{t.Name, t.Launches, float64(t.Time) / 1e3, float64(t.Bytes) / max(float64(t.Time), 1)})
	}
	if b.Median > 0 {
		b.GBs = float64(bytes) / (1e6 * b.Median)
	}
	if asJSON {
		return writeJSON(w, b)
	}
	fmt.Fprintf(w, "entry %q on %s: compiled in %.4g ms, holds %s\n", b.Entry, b.Device, b.Compile, bytesText(b.Memory))
	fmt.Fprintf(w, "%d runs: min %.4g ms, median %.4g ms, 90%% within %.4g ms\n", b.Runs, b.Min, b.Median, b.P90)
	if b.Operations > 0 {
		fmt.Fprintf(w, "products: %.4g GFLOP, %.3g TFLOP/s\n", b.Operations/1e9, b.TFLOPs)
	}
	if b.GBs > 0 {
		fmt.Fprintf(w, "memory: at most %s moved, %.3g GB/s\n", bytesText(bytes), b.GBs)
	}
	if len(b.profile) == 0 {
		fmt.Fprintln(w, "the device times no kernels")
		return nil
	}
	fmt.Fprintln(w)
	return native.WriteTimings(w, b.profile)
}

// timing are the times of runs of an entry.
type timing struct {
	runs               int
	least, median, p90 time.Duration
}

// timeRuns runs an entry until the given time is over, at least three times and once before. The
// inputs are copied to the device with each run, and the outputs back.
func timeRuns(ctx context.Context, p *rlx.Program, entry string, in rlx.Inputs, whole time.Duration) (timing, error) {
	times, err := tune.Runs(whole, func() error {
		if _, err := p.Call(ctx, entry, in); err != nil {
			return err
		}
		return p.Sync(ctx)
	})
	if err != nil {
		return timing{}, err
	}
	return timing{len(times), times[0], times[len(times)/2], times[len(times)*9/10]}, nil
}
