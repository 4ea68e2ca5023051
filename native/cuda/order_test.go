//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native/cuda"
)

// A step waits for those that wrote what it reads, and that read or wrote what it writes,
// but not for those that others of them wait for. Codes in the status word may come in any
// order, and are all there for who reads it.
func TestStepsWaitForWhatTheyNeed(t *testing.T) {
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
