//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native/cuda"
)

// A step waits for those that wrote what it reads, and that read or wrote what it writes,
// but not for those that others of them wait for. Codes in the status word may come in any
// order, and are all there for who reads it.
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
	step([]loop.Access{w, a}, at(x, 256), at(status, 0))         // 1: beside it
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
