//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// A step waits for the writers of the memory it reads and for the readers and writers of the memory
// it writes, unless another of these waits for them. Codes in the status word may be written in any
// order; a reader sees them all.
func TestStepsWaitForTheirOperands(t *testing.T) {
	const x, y, z, status = 0, 1, 2, 3
	p := &plan.Plan{Status: &plan.Status{Buffer: status}}
	var steps []plan.Step
	step := func(access []loop.Access, bindings ...plan.Binding) {
		p.Kernels = append(p.Kernels, plan.Kernel{Storage: access})
		steps = append(steps, &plan.Dispatch{Kernel: len(p.Kernels) - 1, Bindings: bindings})
	}
	at := func(buffer, offset int) plan.Binding { return plan.Binding{Buffer: buffer, Offset: offset, Bytes: 256} }
	const r, w, a = loop.Read, loop.ReadWrite, loop.Atomic
	step([]loop.Access{w, a}, at(x, 0), at(status, 0))           // 0
	step([]loop.Access{w, a}, at(x, 256), at(status, 0))         // 1: concurrent with it
	step([]loop.Access{r, r, w}, at(x, 0), at(x, 256), at(y, 0)) // 2: reads both
	step([]loop.Access{r, w}, at(x, 0), at(z, 0))                // 3: reads the first
	step([]loop.Access{w}, at(x, 0))                             // 4: over what 2 and 3 read
	step([]loop.Access{r, r}, at(y, 0), at(status, 0))           // 5: 2 comes after 0 and 1
	step([]loop.Access{a}, at(status, 0))                        // 6: after who read the codes
	want := [][]int{nil, nil, {1, 0}, {0}, {3, 2}, {2}, {5}, {4, 6}}
	if got := cuda.Waits(p, steps); !reflect.DeepEqual(got, want) {
		t.Errorf("the steps wait for %v, not %v", got, want)
	}
}

// Steps on adjacent parts of a buffer are independent; those that share a word are ordered.
func TestStepsSharingOneWordKeepTheirOrder(t *testing.T) {
	p := &plan.Plan{Status: &plan.Status{Buffer: 9}, Kernels: []plan.Kernel{{Storage: []loop.Access{loop.ReadWrite}}}}
	write := func(offset, bytes int) plan.Step {
		return &plan.Dispatch{Bindings: []plan.Binding{{Offset: offset, Bytes: bytes}}}
	}
	steps := []plan.Step{write(0, 4), write(0, 4), write(4, 4), write(4, 8), write(8, 4)}
	if got, want := cuda.Waits(p, steps), [][]int{nil, {0}, nil, {2}, {3}, {1, 4}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the steps wait for %v, not %v", got, want)
	}
}

// What a routine writes is written: who reads it waits, and who only reads its operands does not.
func TestStepsWaitForRoutines(t *testing.T) {
	const x, y, work, result = 0, 1, 2, 3
	product := routine.Product{Operand: dtype.F32, Result: dtype.F32, Batch: 1, M: 8, N: 8, K: 8}
	p := &plan.Plan{
		Status:   &plan.Status{Buffer: 9},
		Kernels:  []plan.Kernel{{Storage: []loop.Access{loop.Read}}, {Storage: []loop.Access{loop.ReadWrite}}},
		Routines: []routine.Routine{product},
	}
	bind := func(buffers ...int) (out []plan.Binding) {
		for _, b := range buffers {
			out = append(out, plan.Binding{Buffer: b, Bytes: 256})
		}
		return out
	}
	read := func(buffer int) plan.Step { return &plan.Dispatch{Bindings: bind(buffer)} }
	write := func(buffer int) plan.Step { return &plan.Dispatch{Kernel: 1, Bindings: bind(buffer)} }
	steps := []plan.Step{write(x), &plan.Call{Bindings: bind(x, y, work, result)}, read(x), read(result), write(y)}
	if got, want := cuda.Waits(p, steps), [][]int{nil, {0}, {0}, {1}, {1}, {2, 3, 4}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the steps wait for %v, not %v", got, want)
	}
}

// Collectives keep their order, although they share no memory; an independent kernel waits for
// none.
func TestCollectivesKeepTheirOrder(t *testing.T) {
	sum := routine.Collective{DType: dtype.F32, Unit: 4, Count: 64, Axis: "data", Devices: 2}
	p := &plan.Plan{
		Status:   &plan.Status{Buffer: 9},
		Kernels:  []plan.Kernel{{Storage: []loop.Access{loop.ReadWrite}}},
		Routines: []routine.Routine{sum, routine.DeviceIndex{Axis: "data", Devices: 2}},
	}
	at := func(number int) plan.Binding { return plan.Binding{Buffer: 0, Offset: 256 * number, Bytes: 256} }
	call := func(from, to int) plan.Step { return &plan.Call{Bindings: []plan.Binding{at(from), at(to)}} }
	write := func(number int) plan.Step { return &plan.Dispatch{Bindings: []plan.Binding{at(number)}} }
	index := &plan.Call{Routine: 1, Bindings: []plan.Binding{at(6)}}
	steps := []plan.Step{call(0, 1), write(2), call(3, 4), index, write(1), call(1, 5)}
	if got, want := cuda.Waits(p, steps), [][]int{nil, nil, {0}, nil, {0}, {4, 2}, {1, 3, 5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the steps wait for %v, not %v", got, want)
	}
}

// The second of two kernels starts before the first has ended: it is launched as its programmatic dependent, and
// waits itself.
func TestKernelsStartEarly(t *testing.T) {
	gpu := fake.Install(t, true)
	g, err := ir.Build("chain", func(b *ir.Builder) {
		rows := ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(64, 96)...), 0)
		b.Output("y", ops.Softmax(b, ops.Add(b, rows, ops.ReduceSum(b, ops.Mul(b, rows, rows))), 0))
	})
	must(t, err)
	gpu.Calls(t)
	p := compile(t, cuda.New(0), g)
	_, err = p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Zeros(ir.F32, 64, 96)})
	must(t, err)
	early := 0
	for _, c := range gpu.Calls(t) {
		if c == "cuLaunchKernelEx" {
			early++
		}
	}
	if want := cuda.Launches(p) - 1; early != want || want < 1 {
		t.Errorf("%d kernels start early, not %d", early, want)
	}
}

// Loads of arrays that a step of the run writes must stay behind the wait for it: the compiler would
// move those of a restricted pointer.
func TestWrittenArraysAreNotConstant(t *testing.T) {
	const weights, x, y = 0, 1, 2
	const r, w = loop.Read, loop.ReadWrite
	at := func(buffer, offset int) plan.Binding { return plan.Binding{Buffer: buffer, Offset: offset, Bytes: 256} }
	waits := plan.Kernel{Storage: []loop.Access{r, r, w}, Source: "griddepcontrol.wait"}
	p := &plan.Plan{Kernels: []plan.Kernel{waits, waits, {Storage: waits.Storage}}}
	p.Entries = []plan.Entry{{Steps: []plan.Step{
		&plan.Dispatch{Kernel: 0, Bindings: []plan.Binding{at(weights, 0), at(x, 0), at(y, 0)}},
		&plan.Dispatch{Kernel: 1, Bindings: []plan.Binding{at(weights, 0), at(y, 128), at(x, 256)}},
		&plan.Dispatch{Kernel: 2, Bindings: []plan.Binding{at(weights, 0), at(weights, 0), at(y, 512)}},
	}}}
	want := [][]string{{cudacpp.Constant(0), cudacpp.Constant(1)}, {cudacpp.Constant(0)}, nil}
	if got := cuda.Constants(p); !reflect.DeepEqual(got, want) {
		t.Errorf("the constant arrays are %q, not %q", got, want)
	}
}

// Collectives go before all other steps, and those after the last large one last.
func TestCollectivesHavePriority(t *testing.T) {
	sum := func(elements int) routine.Routine {
		return routine.Collective{Op: routine.AllReduce, Axis: "data", Devices: 2, DType: dtype.F32, Count: elements, Unit: 4}
	}
	p := &plan.Plan{Routines: []routine.Routine{sum(1 << 18), sum(1)}}
	call := func(r, bytes int) plan.Step {
		return &plan.Call{Routine: r, Bindings: []plan.Binding{{Bytes: bytes}, {Bytes: bytes}}}
	}
	kernel := &plan.Dispatch{}
	if got, want := cuda.Priorities(p, []plan.Step{kernel, call(0, 1<<20), kernel, call(0, 1<<20), kernel, call(1, 4), kernel}), []int{-2, -5, -2, -5, 0, -5, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("the priorities are %v, not %v", got, want)
	}
	if got := cuda.Priorities(p, []plan.Step{kernel, call(1, 4), kernel}); got != nil {
		t.Errorf("a graph without a large collective has the priorities %v", got)
	}
}

// The steps of a large model with divided parameters are ordered, so that its collectives overlap with kernels.
func TestGraphsOfLargeModelsAreOrdered(t *testing.T) {
	steps := make([]plan.Step, 5000) // of a decoder of 80 layers
	for i := range steps {
		steps[i] = &plan.Dispatch{}
	}
	if !cuda.Orders(steps) {
		t.Errorf("a graph of %d steps is not ordered", len(steps))
	}
	if steps[0] = (&plan.Dispatch{Grid: &plan.GridAddress{}}); cuda.Orders(steps) {
		t.Error("a graph with a condition is ordered")
	}
	if cuda.Orders([]plan.Step{&plan.Repeat{Count: plan.MaxOrdered + 1, Steps: steps[1:2]}}) {
		t.Error("a graph of more steps than the limit is ordered")
	}
	if cuda.Orders([]plan.Step{&plan.While{Steps: steps[1:2]}}) {
		t.Error("a graph with a loop of unknown trip count is ordered")
	}
}

// Iterations of two loops that share no memory are independent: each waits for the one before in its own loop, whose odd
// iterations have other operands, and a step behind the loops for the last of both.
func TestLoopsRunConcurrently(t *testing.T) {
	const a, b, x, y = 0, 1, 2, 3
	p := &plan.Plan{Status: &plan.Status{Buffer: 9}, Kernels: []plan.Kernel{{Storage: []loop.Access{loop.Read, loop.ReadWrite}}}}
	step := func(from, to int) []plan.Step {
		return []plan.Step{&plan.Dispatch{Bindings: []plan.Binding{{Buffer: from, Bytes: 256}, {Buffer: to, Bytes: 256}}}}
	}
	steps := []plan.Step{
		&plan.Repeat{Count: 3, Steps: step(a, b), Odd: step(b, a)},
		&plan.Repeat{Count: 2, Steps: []plan.Step{&plan.Repeat{Count: 2, Steps: step(x, y)}}},
		step(b, x)[0],
	}
	if got, want := cuda.Waits(p, steps), [][]int{nil, {0}, {1}, nil, {3}, {4}, {5}, {6, 2}, {7}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the steps wait for %v, not %v", got, want)
	}
	if got, want := cuda.Counters(steps), [][]int{{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {1, 1}, nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("the iterations are %v, not %v", got, want)
	}
}
