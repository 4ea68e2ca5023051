package plansim_test

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// numbersLike fills an array with numbers without order; integers are below a
// bound, and from -1 on.
func numbersLike(a *ir.Array, bound int) *ir.Array {
	seed := uint64(a.Len())
	for i := range a.Len() {
		seed = seed*6364136223846793005 + 1442695040888963407
		if a.F != nil {
			a.F[i] = float64(int32(seed>>32)) / (1 << 31)
		} else {
			a.I[i] = int64(seed>>33)%int64(bound+1) - 1
		}
	}
	a.Round()
	return a
}

// apart is a graph with its inputs, its maximum number of dispatches, and the maximum bytes that
// these may read and write in all.
type apart struct {
	build               func(b *ir.Builder)
	bound               int // of integers
	dispatches          int
	readMax, writtenMax int
}

const kib = 1 << 10

var rowsOf = ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}

func scatterOf(op func(b *ir.Builder, x, i, u ir.Value, a ops.ScatterAttrs) ir.Value, d ir.DType, rows, width, n int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		x, i, u := b.Input("x", d, ir.Dims(rows, width)...), b.Input("i", ir.I32, ir.Dims(n, 1)...), b.Input("u", d, ir.Dims(n, width)...)
		b.Output("y", op(b, x, i, u, rowsOf))
	}
}

// inAnyOrder adds updates where they may be added in any order.
func inAnyOrder(rows, width, n int) func(b *ir.Builder) {
	return scatterOf(func(b *ir.Builder, x, i, u ir.Value, a ops.ScatterAttrs) ir.Value {
		a.Unordered = true
		return ops.ScatterAdd(b, x, i, u, a)
	}, ir.F32, rows, width, n)
}

// changed is a scatter into a state.
func changed(rows, width, n int, op func(b *ir.Builder, x, i, u ir.Value, a ops.ScatterAttrs) ir.Value) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.Dims(rows, width)...)
		i, u := b.Input("i", ir.I32, ir.Dims(n, 1)...), b.Input("u", ir.F32, ir.Dims(n, width)...)
		b.SetState("x", op(b, x, i, u, rowsOf))
	}
}

// updated writes one row of a state at a place that is data.
func updated(b *ir.Builder) {
	x := b.State("x", ir.F32, ir.Dims(1024, 128)...)
	b.SetState("x", ops.DynamicUpdateSlice(b, x, b.Input("u", ir.F32, ir.Dims(1, 128)...), b.Input("at", ir.I32, ir.N(2))))
}

func sorted(d ir.DType, axis int, dims ...int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		b.Output("y", ops.ArgSort(b, b.Input("x", d, ir.Dims(dims...)...), ops.SortAttrs{Axis: axis}))
	}
}

// aparts are sizes that the samples of ops do not reach. The memory bounds are the traffic of the
// present schedules, and a little more.
var aparts = map[string]apart{
	// 77 KB of table written once and each row once more, 24 KB of updates read.
	"add, updates that a workgroup sorts":       {scatterOf(ops.ScatterAdd, ir.F32, 301, 64, 100), 301, 4, 196 * kib, 110 * kib},
	"add, few rows":                             {scatterOf(ops.ScatterAdd, ir.F32, 3, 5, 2000), 2, 4, 230 * kib, 32 * kib},
	"add, all in one row":                       {scatterOf(ops.ScatterAdd, ir.F32, 2, 3, 1500), 0, 4, 120 * kib, 20 * kib},
	"add, updates that several workgroups sort": {scatterOf(ops.ScatterAdd, ir.F32, 200, 2, 9000), 200, 9, 0, 0},
	"mul, few rows":                             {scatterOf(ops.ScatterMul, ir.F32, 40, 3, 130), 40, 4, 0, 0},
	"mul of integers":                           {scatterOf(ops.ScatterMul, ir.I32, 40, 3, 130), 40, 4, 0, 0},
	"min":                                       {scatterOf(ops.ScatterMin, ir.F32, 40, 3, 900), 40, 4, 0, 0},
	"max":                                       {scatterOf(ops.ScatterMax, ir.F32, 40, 3, 900), 40, 4, 0, 0},
	"set by votes":                              {scatterOf(ops.Scatter, ir.F32, 40, 3, 900), 40, 4, 44 * kib, 20 * kib},
	"add of integers at once":                   {scatterOf(ops.ScatterAdd, ir.I32, 40, 3, 900), 40, 2, 44 * kib, 12 * kib},
	"min of integers at once":                   {scatterOf(ops.ScatterMin, ir.U32, 40, 3, 900), 40, 2, 44 * kib, 12 * kib},
	// The index, the update and the operand's element are read once per element, unless exchanges
	// would conflict.
	"add in any order":           {inAnyOrder(301, 64, 100), 301, 2, 180 * kib, 110 * kib},
	"add in any order, few rows": {inAnyOrder(3, 5, 2000), 2, 4, 230 * kib, 32 * kib},
	// A state of 512 KB in which one row of 512 B changes.
	"one row of a state":          {changed(1024, 128, 1, ops.Scatter), 1024, 1, 2 * kib, kib},
	"a row of a state updated":    {updated, 900, 1, 2 * kib, kib},
	"added to one of a state":     {changed(1024, 128, 1, ops.ScatterAdd), 1024, 1, 3 * kib, kib},
	"few rows of a state":         {changed(1024, 16, 9, ops.ScatterAdd), 5, 1, 16 * kib, kib},
	"many rows of a state":        {changed(1024, 4, 70, ops.ScatterAdd), 5, 3, 16 * kib, 4 * kib},
	"state of many rows by votes": {changed(1024, 4, 70, ops.Scatter), 5, 3, 8 * kib, 6 * kib},
	"sort rows in a workgroup":    {sorted(ir.F32, 1, 3, 2000), 0, 1, 24 * kib, 24 * kib},
	"sort short rows":             {sorted(ir.F32, 1, 700, 3), 0, 1, 12 * kib, 10 * kib},
	"sort longer rows":            {sorted(ir.F32, 1, 2, 9000), 0, 24, 0, 0},
	"sort columns":                {sorted(ir.I32, 0, 4500, 2), 2000, 24, 0, 0},
	"sort small integers":         {sorted(ir.Bool, 0, 5000), 1, 3, 0, 0},
}

// runningSum is a sum along an axis.
func runningSum(a ops.CumSumAttrs, dims ...int) func(b *ir.Builder) {
	return func(b *ir.Builder) { b.Output("y", ops.CumSum(b, b.Input("x", ir.F32, ir.Dims(dims...)...), a)) }
}

// recurrence is a linear recurrence with factors below 1.
func recurrence(a ops.CumSumAttrs, dims ...int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(dims...)...), b.Input("y", ir.F32, ir.Dims(dims...)...)
		b.Output("h", ops.LinearRecurrence(b, x, y, a))
	}
}

// runnings are sizes at which scans are split, or take several tiles. Each element is read once, or
// twice in split rows, and written once; threads past the end of a row read its last element again.
var runnings = map[string]apart{
	"rows of a tile":             {runningSum(ops.CumSumAttrs{Axis: 1}, 130, 500), 0, 1, 272 * kib, 255 * kib},
	"rows of some elements":      {runningSum(ops.CumSumAttrs{Axis: 1}, 300, 5), 0, 1, 16 * kib, 6 * kib},
	"rows of several tiles":      {runningSum(ops.CumSumAttrs{Axis: 1, Reverse: true}, 2, 6000), 0, 1, 64 * kib, 48 * kib},
	"rows that are cut":          {runningSum(ops.CumSumAttrs{Axis: 1, Exclusive: true}, 2, 9001), 0, 2, 161 * kib, 72 * kib},
	"one row":                    {runningSum(ops.CumSumAttrs{Reverse: true}, 40000), 0, 2, 321 * kib, 158 * kib},
	"columns":                    {runningSum(ops.CumSumAttrs{}, 50, 33), 0, 1, 7 * kib, 7 * kib},
	"columns that are cut":       {runningSum(ops.CumSumAttrs{Reverse: true}, 1000, 9), 0, 1, 36 * kib, 36 * kib},
	"few columns":                {runningSum(ops.CumSumAttrs{Exclusive: true}, 3000, 3), 0, 1, 50 * kib, 36 * kib},
	"recurrence in rows":         {recurrence(ops.CumSumAttrs{Axis: 1}, 3, 700), 0, 1, 32 * kib, 9 * kib},
	"recurrence that is cut":     {recurrence(ops.CumSumAttrs{Axis: 1, Reverse: true}, 1, 24000), 0, 2, 385 * kib, 94 * kib},
	"recurrence down columns":    {recurrence(ops.CumSumAttrs{Exclusive: true}, 70, 40), 0, 1, 23 * kib, 12 * kib},
	"recurrence in many columns": {recurrence(ops.CumSumAttrs{}, 640, 40), 0, 1, 201 * kib, 101 * kib},
}

// TestScansOfManyValuesFitBindings scans two values with their factors: with the partial results of
// chunks they exceed the bindings of a kernel.
func TestScansOfManyValuesFitBindings(t *testing.T) {
	apart{build: func(b *ir.Builder) {
		var in []ir.Value
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			in = append(in, ops.Tanh(b, b.Input(name, ir.F32, ir.N(9000))))
		}
		b.Output("h", ops.LinearRecurrences(b, halved(b, in[:4]), in[4:], ops.CumSumAttrs{})[0])
	}, dispatches: 2}.check(t, plan.WebGPU())
}

// halved makes values less than half, so that scans of two stay small.
func halved(b *ir.Builder, in []ir.Value) []ir.Value {
	out := make([]ir.Value, len(in))
	for i, x := range in {
		out[i] = ops.Mul(b, x, ops.ConstLike(b, x, 0.4))
	}
	return out
}

func TestScansOfAllSizes(t *testing.T) {
	for name, c := range runnings {
		t.Run(name, func(t *testing.T) { c.check(t, plan.WebGPU()) })
	}
	list := devices
	if testing.Short() {
		list = list[:2]
	}
	for _, d := range list {
		if d.name == "small bindings" {
			continue // the inputs do not fit
		}
		t.Run(d.name, func(t *testing.T) {
			target := plan.WebGPU()
			d.change(&target.Limits)
			for name, c := range runnings {
				t.Run(name, func(t *testing.T) { c.check(t, target) })
			}
		})
	}
}

func TestScattersAndSortsOfAllSizes(t *testing.T) {
	for name, c := range aparts {
		t.Run(name, func(t *testing.T) { c.check(t, plan.WebGPU()) })
	}
}

// TestSumsInAnyOrder are taken by atomics on targets where that is faster, and are the same
// but for rounding.
func TestSumsInAnyOrder(t *testing.T) {
	for name, c := range map[string]struct {
		rows, updates int
		atomic        map[loop.AtomicFloats]bool
	}{
		"many rows": {301, 300, map[loop.AtomicFloats]bool{loop.ExchangedFloats: true, loop.NativeFloats: true}},
		"few rows":  {3, 2000, map[loop.AtomicFloats]bool{loop.NativeFloats: true}},
	} {
		for _, how := range []loop.AtomicFloats{loop.NoAtomicFloats, loop.ExchangedFloats, loop.NativeFloats} {
			target := plan.WebGPU()
			target.AtomicFloats = how
			dispatches := 4 // the operand, a sort, its rows and what joins them
			if c.atomic[how] {
				dispatches = 2
			}
			t.Run(fmt.Sprintf("%s, %d", name, how), func(t *testing.T) {
				apart{build: inAnyOrder(c.rows, 4, c.updates), bound: c.rows, dispatches: dispatches}.check(t, target)
			})
		}
	}
}

func TestScattersAndSortsOnOtherDevices(t *testing.T) {
	list := devices
	if testing.Short() {
		list = list[:2]
	}
	for _, d := range list {
		if d.name == "small bindings" {
			continue // the inputs do not fit
		}
		t.Run(d.name, func(t *testing.T) {
			target := plan.WebGPU()
			d.change(&target.Limits)
			for name, c := range aparts {
				t.Run(name, func(t *testing.T) { c.check(t, target) })
			}
		})
	}
}

// TestScattersBySeveralColumns has threads combine two or four columns, as they do on CUDA where they fill the device:
// here one of three threads.
func TestScattersBySeveralColumns(t *testing.T) {
	target := schedtest.Hopper()
	target.Device = hardware.H200()
	target.Device.Processors, target.Device.Threads = 1, 4
	cases := map[string]apart{
		"vectors, few rows":       {scatterOf(ops.ScatterAdd, ir.F32, 5, 8, 1001), 5, 4, 0, 0},
		"vectors of bf16":         {scatterOf(ops.ScatterAdd, ir.BF16, 40, 4, 130), 40, 4, 0, 0},
		"vectors, all in one row": {scatterOf(ops.ScatterMax, ir.F32, 2, 12, 1500), 0, 4, 0, 0},
	}
	for _, name := range []string{"add, updates that a workgroup sorts", "add, updates that several workgroups sort", "many rows of a state"} {
		cases[name] = aparts[name]
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.check(t, target) })
	}
}

// TestScattersAndSortsInLoops has them change a carry in place, read a slice
// of a loop's operands, and return one.
func TestScattersAndSortsInLoops(t *testing.T) {
	for name, make := range map[string]func(b *ir.Builder, x, u ir.Value) []ir.Value{
		"carry": func(b *ir.Builder, x, u ir.Value) []ir.Value {
			return scan(b, ops.Loop{Carries: []ir.Value{x}, Xs: []ir.Value{u}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
				order := ops.ExpandDims(b, ops.ArgSort(b, x[0], ops.SortAttrs{}), -1)
				return []ir.Value{ops.Scatter(b, c[0], order, x[0], rowsOf)}, []ir.Value{ops.ReduceSum(b, c[0])}
			}})
		},
		"stacked": func(b *ir.Builder, x, u ir.Value) []ir.Value {
			return scan(b, ops.Loop{Consts: []ir.Value{x}, Xs: []ir.Value{u}, Body: func(b *ir.Builder, consts, _, x []ir.Value) (next, ys []ir.Value) {
				i := ops.Reshape(b, ops.Convert(b, ops.Mul(b, x[0], ops.ConstLike(b, x[0], 20)), ir.I32), ir.N(80), ir.N(1))
				return nil, []ir.Value{ops.ScatterAdd(b, consts[0], i, x[0], rowsOf), ops.Sort(b, ops.SortAttrs{}, x[0])[0]}
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				for i, v := range make(b, b.Input("x", ir.F32, ir.N(80)), b.Input("u", ir.F32, ir.N(3), ir.N(80))) {
					b.Output("y"+strconv.Itoa(i), v)
				}
			})
			checkTwoRuns(t, g, someValues(g), plan.WebGPU())
		})
	}
}

// TestBadIndexKeepsEmbedding trains the rows that indices name, once
// with one outside.
func TestBadIndexKeepsEmbedding(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.Dims(50, 3)...)
		i := ops.CheckIndex(b, b.Input("i", ir.I32, ir.N(100)), ir.N(50), "row")
		b.SetState("x", ops.ScatterAdd(b, x, ops.ExpandDims(b, i, -1), b.Input("u", ir.F32, ir.Dims(100, 3)...), rowsOf))
	})
	s := open(t, g, plan.WebGPU())
	inputs := map[string]*ir.Array{"i": ir.NewArray(ir.I32, 100), "u": numbersLike(ir.NewArray(ir.F32, 100, 3), 0)}
	inputs["i"].I[70] = 50
	if _, err := s.Run("run", inputs); !errors.Is(err, ir.ErrIndex) {
		t.Fatalf("error %v, want one of kind %q", err, ir.ErrIndex)
	}
	after, err := s.Get("x")
	if err != nil {
		t.Fatal(err)
	}
	if diff := compare(after, ir.NewArray(ir.F32, 50, 3), 0); diff != "" {
		t.Errorf("the state has changed: %s", diff)
	}
}

// check compares two runs with the reference implementation, and their cost with its bounds.
func (c apart) check(t *testing.T, target plan.Target) {
	g, err := ir.Build("g", c.build)
	if err != nil {
		t.Fatal(err)
	}
	inputs, states := map[string]*ir.Array{}, map[string]*ir.Array{}
	s := open(t, g, target)
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := numbersLike(ir.NewArray(p.Value.DType(), dims...), c.bound)
		if p.Value.DType() == ir.Bool {
			for i := range a.I {
				a.I[i] &= 1
			}
		}
		if p.Kind == ir.InputPort {
			inputs[p.Name] = a
			continue
		}
		states[p.Name] = a
		if err := s.Set(p.Name, a); err != nil {
			t.Fatal(err)
		}
	}
	counts := &sim.Counts{}
	s.Options.Counts = counts
	got, err := s.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ir.Array{}
	for _, from := range []map[string]*ir.Array{inputs, states} {
		maps.Copy(all, from)
	}
	want, err := ir.Eval(g, all, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		y := got[o.Name]
		if o.State {
			if y, err = s.Get(o.Name); err != nil {
				t.Fatal(err)
			}
		}
		if diff := compare(y, want[i], 1e-4); diff != "" {
			t.Errorf("%s: %s", o.Name, diff)
		}
	}
	if target.Limits != loop.DefaultLimits() {
		return
	}
	if n := dispatches(s.Plan().Entries[0].Steps); n != c.dispatches {
		t.Errorf("%d dispatches, not %d", n, c.dispatches)
	}
	if c.readMax > 0 && (counts.Read > c.readMax || counts.Written > c.writtenMax) {
		t.Errorf("%d bytes read and %d written, more than %d and %d", counts.Read, counts.Written, c.readMax, c.writtenMax)
	}
}

// dispatches counts the dispatches of a run.
func dispatches(steps []plan.Step) int {
	n := 0
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			n++
		case *plan.Repeat:
			n += s.Count * dispatches(s.Steps)
		}
	}
	return n
}

// TestScansOfEqualOperandsAreDistinguished has two scans that
// differ in nothing but their graphs.
func TestScansOfEqualOperandsAreDistinguished(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(9))
		for name, op := range map[string]func(b *ir.Builder, x, y ir.Value) ir.Value{"sum": ops.Add, "largest": ops.Max} {
			b.Output(name, ops.AssociativeScan(b, ops.AssociativeAttrs{}, []ir.Value{x}, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
				return []ir.Value{op(b, x[0], y[0])}
			})[0])
		}
	})
	checkTwoRuns(t, g, someValues(g), plan.WebGPU())
}
