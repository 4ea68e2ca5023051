//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir"
)

// tuned returns the fastest schedules of a module on a device, measured or from the store.
func tuned(ctx context.Context, d *device, m *ir.Module, t plan.Target) (sched.Tuned, error) {
	store := tune.Open(fmt.Sprintf("%s, driver %d, NVRTC %s", d.Name, d.Library().Version, d.Compiler.Version))
	results, err := tune.Module(ctx, m, t, printerOf(t), stopwatch{d}, store)
	if err != nil {
		return nil, err
	}
	_ = store.Save() // a cache that cannot be written to costs time only
	return tune.Schedules(results), nil
}

// stopwatch times plans on a device.
type stopwatch struct{ d *device }

// runs is the number of timed runs, after one warm-up run; the best counts.
const runs = 3

// Time returns the best time of a run of the plan.
func (w stopwatch) Time(ctx context.Context, made *plan.Plan) (best time.Duration, err error) {
	p := &program{name: Name, device: w.d}
	if err := p.open(ctx, made); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	err = p.Do(ctx, "run", func(number int) error {
		for i := range runs + 1 {
			start := time.Now()
			if err := errors.Join(p.entries[number].replay(), p.stream.Synchronize()); err != nil {
				return err
			}
			if took := time.Since(start); i == 1 || i > 1 && took < best {
				best = took
			}
		}
		return ctx.Err()
	})
	return best, err
}
