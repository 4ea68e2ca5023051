package sim_test

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Each thread passes its number to its neighbour through workgroup memory, but
// the barrier between is missing.
func ExampleRun() {
	thread := loop.LocalID(0, 8)
	neighbour := scalar.Rem(scalar.Add(thread, scalar.ConstI(dtype.I32, 1)), scalar.ConstI(dtype.I32, 8))
	k := &loop.Kernel{
		Name:      "pass_on",
		Arrays:    []loop.Array{{Name: "tile", DType: dtype.I32, Width: 1, Len: 8, Space: loop.Shared}},
		Workgroup: [3]int{8, 1, 1},
		Groups:    [3]int{1, 1, 1},
		Body: []loop.Stmt{
			&loop.Store{Array: 0, At: thread, Value: thread},
			&loop.Let{Name: "got", Value: scalar.LoadAt(0, dtype.I32, neighbour)},
		},
	}
	fmt.Println(sim.Run(k, sim.Launch{}, sim.Options{}))
	// Output: kernel pass_on: race between threads: tile[1], thread 0 of group [0 0 0] against 1, in let got
}
