package loop_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A kernel of one workgroup doubles 64 numbers, one in each thread.
func Example() {
	i := loop.GlobalID(0, 64, 1)
	x := scalar.LoadAt(0, dtype.F32, i)
	k := &loop.Kernel{
		Name: "double", Workgroup: [3]int{64, 1, 1}, Groups: [3]int{1, 1, 1},
		Arrays: []loop.Array{
			{Name: "x", DType: dtype.F32, Width: 1, Len: 64, Access: loop.Read},
			{Name: "y", DType: dtype.F32, Width: 1, Len: 64, Access: loop.ReadWrite},
		},
		Body: []loop.Stmt{&loop.Store{Array: 1, At: i, Value: scalar.Add(x, x)}},
	}
	fmt.Println(loop.Check(k), k.Threads())
	// Output: <nil> 64
}
