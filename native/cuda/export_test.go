//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"math"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// New returns a backend with a separate device.
func New(number int) native.Backend { return newBackend(number) }

// With returns a backend with a new device that computes some products by
// cuBLASLt.
func With(p loop.Products) native.Backend {
	b := newBackend(0)
	b.choice = p
	return b
}

// Long returns a backend with a separate device whose kernels use 64-bit positions in all arrays.
func Long() native.Backend {
	b := newBackend(0)
	b.long = 1
	return b
}

// ByWarps returns a backend with a separate device that multiplies by warps, as devices without
// warp groups do, and without cuBLASLt.
func ByWarps() native.Backend {
	b := newBackend(0)
	b.choice, b.noWgmma = loop.NoProducts, true
	return b
}

// Serial returns a backend with a separate device whose graphs run their steps one after the other.
func Serial(number int) native.Backend {
	b := newBackend(number)
	b.serial = true
	return b
}

// Guarded returns a backend with a separate device that places the arrays of each launch next to
// unmapped memory: at the end of their block, or at its beginning. Arrays are declared shorter than
// they are by some bytes. Kernels compute all products.
func Guarded(behind bool, short int) native.Backend {
	b := newBackend(0)
	b.choice = loop.NoProducts
	b.guarded = func() *guards { return &guards{behind: behind, short: short} }
	return b
}

// Guards reports whether the device of a backend can have guarded memory.
func Guards(b native.Backend) bool {
	d, err := b.(*backend).device()
	return err == nil && d.HasGuards()
}

// Kinds returns how many nodes the graph of a program's first entry has of each kind.
func Kinds(p native.Program) [driver.NodeKinds]int { return p.(*program).entries[0].graph.Kinds }

// PlanName returns the name that a program's plan has for its module.
func PlanName(p native.Program) string { return p.(*program).plan.Name }

// Waits returns, for each of some steps, which of those before it a graph has it wait for.
func Waits(p *plan.Plan, steps []plan.Step) (out [][]int) {
	o := &order{status: p.Status.Buffer}
	for _, s := range unroll(nil, steps, nil) {
		x := ordered{regions: regionsOf(p, s.Step)}
		var waits []int
		waits, x.after = o.next(x.regions)
		o.steps = append(o.steps, x)
		out = append(out, waits)
	}
	return append(out, o.last())
}

// Orders reports whether the steps of a graph are ordered by dependencies.
func Orders(steps []plan.Step) bool { return orders(&plan.Entry{Steps: steps}) }

// Priorities returns the priority of each of some steps in a graph.
func Priorities(p *plan.Plan, steps []plan.Step) []int {
	return prioritiesOf(p, unroll(nil, steps, nil))
}

// Counters returns the iterations of loops in which the steps of a graph run.
func Counters(steps []plan.Step) (out [][]int) {
	for _, s := range unroll(nil, steps, nil) {
		out = append(out, s.counters)
	}
	return out
}

// Constants returns the compiler's options for the constant arrays of each kernel.
func Constants(p *plan.Plan) [][]string { return constants(p) }

// Made returns the parts of what made a program, in their order.
func Made(p native.Program) []native.Timing { return p.(*program).phases }

// Calls returns how many routines of cuBLASLt the first entry of a program calls.
func Calls(p native.Program) int {
	n := 0
	for _, s := range p.(*program).plan.Entries[0].Steps {
		if _, ok := s.(*plan.Call); ok {
			n++
		}
	}
	return n
}

// Replay submits the steps of an entry a number of times, with the inputs that
// the device has, and waits for the last.
func Replay(p native.Program, entry string, times int) error {
	c := p.(*program)
	return c.Do(context.Background(), entry, func(number int) error {
		for range times {
			if err := c.entries[number].replay(); err != nil {
				return err
			}
		}
		return c.stream.Synchronize()
	})
}

// Issue submits the steps of an entry while the device is idle, a number of times,
// and returns the least time that the host took for it.
func Issue(p native.Program, entry string, times int) (time.Duration, error) {
	c := p.(*program)
	least := time.Duration(math.MaxInt64)
	err := c.Do(context.Background(), entry, func(number int) (err error) {
		for i := 0; i < times && err == nil; i++ {
			begun := time.Now()
			err = c.entries[number].replay()
			least = min(least, time.Since(begun))
			if err == nil {
				err = c.stream.Synchronize()
			}
		}
		return err
	})
	return least, err
}

// PlannedBytes returns the size of the buffers of a program's plan.
func PlannedBytes(p native.Program) int {
	n := 0
	for _, b := range p.(*program).plan.Buffers {
		n += b.Bytes
	}
	return n
}

// TakenBytes returns how much of a device's memory is not free.
func TakenBytes(b native.Backend) (int, error) {
	d, err := b.(*backend).device()
	if err != nil {
		return 0, err
	}
	free, total, err := d.MemoryInfo()
	return total - free, err
}

// Launches returns how many kernels a run of the first entry launches.
func Launches(p native.Program) int { return p.(*program).entries[0].spec.Dispatches() }

// Sources returns the texts of a program's kernels.
func Sources(p native.Program) []string {
	var out []string
	for _, k := range p.(*program).plan.Kernels {
		out = append(out, k.Source)
	}
	return out
}

// Misplace makes the kernels of a program use unmapped memory.
func Misplace(p native.Program) error {
	c := p.(*program)
	buffers := c.buffers
	c.buffers = make([]driver.Ptr, len(buffers))
	defer func() { c.buffers = buffers }()
	for i := range c.buffers {
		c.buffers[i] = 1 << 12
	}
	for _, e := range c.entries {
		if err := e.capture(); err != nil {
			return err
		}
	}
	return nil
}

// Stopwatch returns a backend's target and a device that times its plans.
func Stopwatch(b native.Backend) (plan.Target, tune.Device) {
	d, err := b.(*backend).device()
	if err != nil {
		panic(err)
	}
	return targetOf(d, native.Options{}, b.(*backend).choice), stopwatch{d}
}

// CompileKernels compiles the kernels of a plan into the cache of kernels.
func CompileKernels(b native.Backend, p *plan.Plan) error {
	d, err := b.(*backend).device()
	if err != nil {
		return err
	}
	store, options := cubin.Open(), constants(p)
	for i := range p.Kernels {
		if _, err := image(d, store, &p.Kernels[i], options[i]...); err != nil {
			return err
		}
	}
	return nil
}

// Opened returns the device of a backend and what plans are compiled for on it.
func Opened(b native.Backend) (*driver.Device, plan.Target, error) {
	d, err := b.(*backend).device()
	if err != nil {
		return nil, plan.Target{}, err
	}
	return d.Device, targetOf(d, native.Options{}, b.(*backend).choice), nil
}
