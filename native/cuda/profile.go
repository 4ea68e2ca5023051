//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native"
)

// Profile implements [native.Profiler]. It enqueues the steps one by one with a timing event
// after each.
func (p *program) Profile(ctx context.Context, name string, runs int) ([]native.Timing, error) {
	var out []native.Timing
	err := p.Do(ctx, name, func(entry int) (err error) {
		out, err = p.profile(ctx, p.entries[entry], runs)
		return err
	})
	return out, err
}

// profile is [program.Profile] of an entry.
func (p *program) profile(ctx context.Context, e *entry, runs int) ([]native.Timing, error) {
	if runs < 1 {
		return nil, ir.Attrf("runs is %d; it must be 1 or greater", runs)
	}
	if e.spec.Dispatches() > maxGraph {
		return nil, ir.Errorf(ir.ErrUnsupported, "the entry has too many launches to profile; the limit is %d", maxGraph)
	}
	f := &profile{e: e, runs: runs, total: map[plan.Step]*native.Timing{}}
	var err error
	for i := 0; i < runs && err == nil; i++ {
		if err = ctx.Err(); err == nil {
			err = f.run()
		}
	}
	if err = errors.Join(err, f.release()); err != nil {
		return nil, err
	}
	return f.timings(), nil
}

// profile accumulates the timings of an entry.
type profile struct {
	e     *entry
	runs  int
	marks []*driver.Event // one before the steps and one after each
	steps []plan.Step     // of the run
	total map[plan.Step]*native.Timing
}

// run runs the entry once and adds the times of its steps.
func (f *profile) run() error {
	f.steps = f.steps[:0]
	r := recorder{entry: f.e, stream: f.e.p.stream, after: f.mark}
	err := f.mark(nil)
	if err == nil {
		err = r.record()
	}
	if err == nil {
		err = r.stream.Synchronize()
	}
	if err != nil {
		return err
	}
	for i, s := range f.steps[1:] {
		took, err := f.marks[i+1].Since(f.marks[i])
		if err != nil {
			return err
		}
		if f.total[s] == nil {
			f.total[s] = f.e.p.described(s)
		}
		f.total[s].Time += took
		f.total[s].Launches++
	}
	return nil
}

// mark records an event after a step. Loops are timed by their steps.
func (f *profile) mark(s plan.Step) error {
	switch s.(type) {
	case *plan.Repeat, *plan.While:
		return nil
	}
	f.steps = append(f.steps, s)
	if len(f.marks) < len(f.steps) {
		m, err := f.e.p.device.NewMark()
		if err != nil {
			return err
		}
		f.marks = append(f.marks, m)
	}
	return f.e.p.stream.Record(f.marks[len(f.steps)-1])
}

func (f *profile) release() error {
	var failed error
	for _, m := range f.marks {
		failed = errors.Join(failed, m.Destroy())
	}
	return failed
}

// timings sums the steps of each kernel and routine.
func (f *profile) timings() []native.Timing {
	type key struct {
		kind byte
		of   int
	}
	joined := map[key]*native.Timing{}
	for s, t := range f.total {
		var k key
		switch s := s.(type) {
		case *plan.Dispatch:
			k = key{'k', s.Kernel}
		case *plan.Call:
			k = key{'r', s.Routine}
		}
		sum := joined[k]
		if sum == nil {
			sum = &native.Timing{Name: t.Name}
			joined[k] = sum
		}
		sum.Time += t.Time
		sum.Launches += t.Launches
		sum.Bytes += t.Bytes * int64(t.Launches)
		sum.Operations += t.Operations * float64(t.Launches)
	}
	out := make([]native.Timing, 0, len(joined))
	for _, t := range joined {
		t.Time /= time.Duration(f.runs)
		t.Launches /= f.runs
		t.Bytes /= int64(f.runs)
		t.Operations /= float64(f.runs)
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b native.Timing) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// described returns the name of a step with the bytes and operations of one launch.
func (p *program) described(s plan.Step) *native.Timing {
	t := &native.Timing{Name: "copy"}
	bound := func(bindings []plan.Binding) {
		for _, b := range bindings {
			t.Bytes += int64(b.Bytes)
		}
	}
	switch s := s.(type) {
	case *plan.Dispatch:
		t.Name = p.plan.Kernels[s.Kernel].Name
		bound(s.Bindings)
	case *plan.Call:
		bound(s.Bindings)
		t.Name = p.plan.Routines[s.Routine].Name()
		switch x := p.plan.Routines[s.Routine].(type) {
		case routine.Factor:
			t.Bytes -= int64(x.Workspace)
			t.Name = fmt.Sprintf("%s %s %d×%d×%d %s", t.Name, x.Op, x.Batch, x.Rows, x.Cols, x.DType)
		case routine.Product:
			t.Bytes -= int64(x.Workspace)
			t.Operations = 2 * float64(x.Batch) * float64(x.M) * float64(x.N) * float64(x.K)
			lies := func(l routine.Layout) string { return map[bool]string{true: "t", false: "n"}[l.Transposed] }
			t.Name = fmt.Sprintf("%s %d×%d×%d×%d_%s%s %s", t.Name, x.Batch, x.M, x.N, x.K, lies(x.Left), lies(x.Right), x.Operand)
		}
	case *plan.Copy:
		t.Bytes = 2 * int64(s.Bytes)
	}
	return t
}
