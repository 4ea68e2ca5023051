package wgsl_test

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func ExamplePrint() {
	i := scalar.NewVar("i", dtype.I32, 0, 127)
	x := scalar.LoadAt(0, dtype.F32, i)
	k := &loop.Kernel{
		Name: "scale",
		Arrays: []loop.Array{
			{Name: "x", DType: dtype.F32, Width: 1, Len: 100, Access: loop.Read},
			{Name: "y", DType: dtype.F32, Width: 1, Len: 100, Access: loop.ReadWrite},
		},
		Workgroup: [3]int{64, 1, 1},
		Groups:    [3]int{2, 1, 1},
		Body: []loop.Stmt{
			&loop.Let{Name: "i", Value: loop.GlobalID(0, 64, 2)},
			&loop.If{Cond: scalar.Lt(i, scalar.ConstI(dtype.I32, 100)), Then: []loop.Stmt{
				&loop.Store{Array: 1, At: i, Value: scalar.Mul(x, scalar.ConstF(dtype.F32, 2))},
			}},
		},
	}
	source, err := wgsl.Print(k)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(source)
	// Output:
	// // scale
	// @group(0) @binding(0) var<storage, read> x: array<f32, 100>;
	// @group(0) @binding(1) var<storage, read_write> y: array<f32, 100>;
	//
	// @compute @workgroup_size(64)
	// fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
	//   let group_x = i32(group_id.x);
	//   let local_x = i32(local_id.x);
	//   let i = group_x * 64 + local_x;
	//   if (i < 100) {
	//     y[i] = x[i] * 2.0;
	//   }
	// }
}
