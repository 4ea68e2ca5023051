package loop_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestCheckNamesFaultsOfRoles(t *testing.T) {
	roles := func(k *loop.Kernel) []loop.Role { return k.Body[0].(*loop.Roles).List }
	fetch := func(k *loop.Kernel) []loop.Stmt { return roles(k)[1].Body[0].(*loop.For).Body }
	copied := func(k *loop.Kernel) *loop.CopyTMA { return fetch(k)[1].(*loop.CopyTMA) }
	append1 := func(k *loop.Kernel, role int, s loop.Stmt) { roles(k)[role].Body = append(roles(k)[role].Body, s) }
	for _, c := range []struct {
		name  string
		spoil func(k *loop.Kernel)
		want  string
	}{
		{"half a warp", func(k *loop.Kernel) { roles(k)[1].Threads = 16 }, "a role of 16 threads must have whole warps"},
		{"too few threads", func(k *loop.Kernel) { k.Workgroup[0] += 32 }, "the roles have 160 threads; the workgroup is [192 1 1]"},
		{"a workgroup of two axes", func(k *loop.Kernel) { k.Workgroup = [3]int{80, 2, 1} }, "the roles have 160 threads; the workgroup is [80 2 1]"},
		{"roles in a branch", func(k *loop.Kernel) {
			k.Body = []loop.Stmt{&loop.If{Cond: scalar.Lt(loop.GroupID(0, 1), i32(1)), Then: k.Body}}
		}, "roles must be at the top level"},
		{"roles in a role", func(k *loop.Kernel) { append1(k, 1, &loop.Roles{}) }, "roles must be at the top level"},
		{"a warp group that begins within one", func(k *loop.Kernel) {
			list := roles(k)
			list[0], list[1] = list[1], list[0]
		}, "warp group at thread 32; it must be a multiple of 128"},
		{"thread numbers of another role", func(k *loop.Kernel) {
			append1(k, 1, &loop.Let{Name: "x", Value: loop.LocalID(0, loop.WarpGroup)})
		}, "local_x has range 0 to 127; it must be 128 to 159"},
		{"a barrier for some threads of a role", func(k *loop.Kernel) {
			append1(k, 0, &loop.If{Cond: scalar.Lt(loop.LocalID(0, loop.WarpGroup), i32(64)), Then: []loop.Stmt{&loop.Barrier{}}})
		}, "divergent control flow; it must be uniform"},
		{"what roles have changed, as if all had", func(k *loop.Kernel) {
			k.Body = append([]loop.Stmt{&loop.Var{Name: "x", Init: i32(0)}}, k.Body...)
			list := k.Body[1].(*loop.Roles).List
			list[0].Body = append(list[0].Body, &loop.Assign{Name: "x", Value: i32(1)})
			k.Body = append(k.Body, &loop.If{Cond: scalar.Lt(scalar.FreeVar("x", dtype.I32), i32(1)), Then: []loop.Stmt{&loop.Barrier{}}})
		}, "divergent control flow; it must be uniform"},
		{"an arrival without a role", func(k *loop.Kernel) { k.Body = append(k.Body, &loop.Arrive{At: i32(0)}) }, "mbarrier outside of a role"},
		{"a barrier that there is not", func(k *loop.Kernel) { append1(k, 0, &loop.Arrive{Mbarrier: 2, At: i32(0)}) }, "unknown mbarrier 2"},
		{"a barrier that threads name differently", func(k *loop.Kernel) {
			append1(k, 0, &loop.Arrive{At: loop.LocalID(0, loop.WarpGroup)})
		}, "divergent index of an mbarrier; it must be uniform"},
		{"barriers for no warp", func(k *loop.Kernel) { k.Mbarriers[0].Warps = 0 }, "mbarrier full: length 2 and 0 warps must be positive"},
		{"two barriers of one name", func(k *loop.Kernel) { k.Mbarriers[1].Name = "full" }, `invalid mbarrier name "full"`},
		{"an array with a barrier's name", func(k *loop.Kernel) { k.Arrays[0].Name = "full" }, "array full is declared twice"},
		{"a variable with a barrier's name", func(k *loop.Kernel) { append1(k, 0, &loop.Let{Name: "full", Value: i32(0)}) }, "full is already an mbarrier"},
		{"copies by several warps", func(k *loop.Kernel) {
			append1(k, 0, &loop.CopyTMA{Map: 0, From: []scalar.Expr{i32(0), i32(0)}, To: 3, ToAt: i32(0), At: i32(0)})
		}, "128 threads copy by a tensor map; one warp must"},
		{"a copy of no tensor map", func(k *loop.Kernel) { copied(k).Map = 2 }, "unknown tensor map 2"},
		{"a copy from one place", func(k *loop.Kernel) { copied(k).From = copied(k).From[:1] }, "1 positions and 0 offsets given for a tensor map of 2 axes"},
		{"a copy to storage", func(k *loop.Kernel) { copied(k).To = kerneltest.RelayResult }, "copy from left of bf16 to result; it must be to shared memory of its type"},
		{"a tensor map of shared memory", func(k *loop.Kernel) { k.TensorMaps[0].Array = kerneltest.RelayLeftTile }, "must be storage of width 1"},
		{"a tensor map of what atomics change", func(k *loop.Kernel) {
			k.Arrays[kerneltest.RelayLeft].DType, k.Arrays[kerneltest.RelayLeft].Access = dtype.U32, loop.Atomic
		}, "must be storage of width 1"},
		{"a tensor map beyond its array", func(k *loop.Kernel) { k.TensorMaps[0].Dims[1]++ }, "ends beyond the 9408 elements"},
		{"rows at odd places", func(k *loop.Kernel) { k.TensorMaps[0].Strides[0] = 12 }, "12 elements apart"},
		{"a tensor map at an odd place", func(k *loop.Kernel) { k.TensorMaps[0].First = 4 }, "begins at element 4"},
		{"a row of another length", func(k *loop.Kernel) { k.TensorMaps[0].Size[0] = 32 }, "32 elements of bf16 along the first axis, not of 64"},
		{"a copy that is too long", func(k *loop.Kernel) { k.TensorMaps[0].Size[1] = 257 }, "copies of [64 257] elements of a tensor map"},
		{"a tensor map of one axis", func(k *loop.Kernel) { k.TensorMaps[0].Dims = k.TensorMaps[0].Dims[:1] }, "1 axes with 1 strides"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kerneltest.NewRelay().Kernel()
			c.spoil(k)
			refuses(t, k, c.want)
		})
	}
}

// Roles need a target that has them; mbarriers count as shared memory.
func TestTargetsWithoutRolesRefuseThem(t *testing.T) {
	k := kerneltest.NewRelay().Kernel()
	caps := loop.Caps{Dialect: dtype.CUDA, Limits: loop.DefaultLimits(), Mma: true, MmaBytes: k.SharedBytes()}
	if err := caps.Check(k); err == nil || !strings.Contains(err.Error(), "no warp specialisation") {
		t.Errorf("error %v without roles", err)
	}
	caps.TensorMaps = true
	if err := caps.Check(k); err != nil {
		t.Error(err)
	}
	caps.MmaBytes--
	if err := caps.Check(k); err == nil || !strings.Contains(err.Error(), "shared memory") {
		t.Errorf("error %v with a byte too few", err)
	}
}
