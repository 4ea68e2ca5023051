package kerneltest

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// Relay is a warp-specialised kernel: a producer warp copies by tensor maps, and a consumer warp group
// multiplies them, in parts that tests omit or reorder. It multiplies a matrix of
// RelayRows×RelayDepth by one of RelayDepth×RelayColumns, both row-major in bf16, in steps of 64
// along the depth, the last one partial.
type Relay struct {
	// Parts of a step.
	Empty, Copies, Filled       []loop.Stmt
	Full, Multiply, Done, Freed []loop.Stmt
	// Parts after all steps.
	Last, Put, Barrier, Store []loop.Stmt
}

// The sizes of a relay. It has fewer rows and columns than an atom, and a partial step.
const (
	RelayRows    = 56
	RelayDepth   = 168
	RelayColumns = 56

	relayStages = 2
	relayTurns  = 3
	relayStep   = 64 // rows, columns and depth of a step
)

// The arrays, tensor maps and barriers of a relay.
const (
	RelayLeft = iota
	RelayRight
	RelayResult
	RelayLeftTile
	RelayRightTile
	RelaySums

	relayFull  = 0
	relayEmpty = 1
)

// NewRelay returns the kernel in its parts.
func NewRelay() *Relay {
	turn := s.NewVar("turn", dtype.I32, 0, relayTurns-1)
	stage, phase := s.Mod(turn, i32(relayStages)), s.FloorDiv(turn, i32(relayStages))
	tile := s.Mul(stage, i32(relayStep*relayStep))
	atom := loop.MmaShape{Operand: dtype.BF16, N: relayStep}
	copied := func(number, to int, from ...s.Expr) loop.Stmt {
		return &loop.CopyTMA{Map: number, From: from, To: to, ToAt: tile, Mbarrier: relayFull, At: stage}
	}
	r := &Relay{
		Empty: []loop.Stmt{&loop.Await{Mbarrier: relayEmpty, At: stage, Phase: s.Sub(phase, i32(1))}},
		Copies: []loop.Stmt{
			copied(RelayLeft, RelayLeftTile, s.Mul(turn, i32(relayStep)), i32(0)),
			copied(RelayRight, RelayRightTile, i32(0), s.Mul(turn, i32(relayStep))),
		},
		Filled:  []loop.Stmt{&loop.Arrive{Mbarrier: relayFull, At: stage}},
		Full:    []loop.Stmt{&loop.Await{Mbarrier: relayFull, At: stage, Phase: phase}},
		Done:    []loop.Stmt{&loop.MmaWait{}},
		Freed:   []loop.Stmt{&loop.Arrive{Mbarrier: relayEmpty, At: stage}},
		Barrier: []loop.Stmt{barrier()},
	}
	m := &loop.Mma{Shape: atom}
	var sums []string
	for i := range atom.Sums() {
		sums = append(sums, fmt.Sprintf("sum%d", i))
	}
	for k := 0; k < relayStep; k += atom.K() {
		m.Terms = append(m.Terms, loop.MmaTerm{
			Sums: sums,
			A:    loop.Tile{Array: RelayLeftTile, At: tile, K: k},
			B:    loop.Tile{Array: RelayRightTile, At: tile, K: k, Depth: relayStep},
		})
	}
	r.Multiply, r.Last = []loop.Stmt{m}, []loop.Stmt{&loop.MmaWait{Names: sums}}
	r.finish(atom, sums)
	return r
}

// finish adds the epilogue: each thread stores its sums to shared memory, and then half a row
// of results, which other threads have computed.
func (r *Relay) finish(atom loop.MmaShape, sums []string) {
	thread := loop.LocalID(0, loop.WarpGroup)
	row, column := atom.Origin(thread)
	for i, name := range sums {
		down, right := atom.Sum(i)
		at := s.Add(s.Mul(s.Add(row, i32(down)), i32(relayStep)), s.Add(s.Mul(column, i32(2)), i32(right)))
		r.Put = append(r.Put, store(RelaySums, at, s.FreeVar(name, dtype.F32)))
	}
	own, half := s.FloorDiv(thread, i32(2)), s.Mul(s.Mod(thread, i32(2)), i32(RelayColumns/2))
	var stores []loop.Stmt
	for i := range RelayColumns / 2 {
		at := s.Add(half, i32(i))
		stores = append(stores, store(RelayResult, s.Add(s.Mul(own, i32(RelayColumns)), at), s.LoadAt(RelaySums, dtype.F32, s.Add(s.Mul(own, i32(relayStep)), at))))
	}
	r.Store = []loop.Stmt{when(s.Lt(own, i32(RelayRows)), stores...)}
}

// Kernel returns the roles with their parts in order as a kernel.
func (r *Relay) Kernel() *loop.Kernel {
	shared := func(name string, t dtype.DType, n int) loop.Array {
		return loop.Array{Name: name, DType: t, Width: 1, Len: n, Space: loop.Shared}
	}
	turns := func(parts ...[]loop.Stmt) loop.Stmt {
		f := &loop.For{Var: "turn", Start: i32(0), End: i32(relayTurns), Step: i32(1)}
		for _, part := range parts {
			f.Body = append(f.Body, part...)
		}
		return f
	}
	var multiply []loop.Stmt
	for i := range (loop.MmaShape{Operand: dtype.BF16, N: relayStep}).Sums() {
		multiply = append(multiply, &loop.Var{Name: fmt.Sprintf("sum%d", i), Init: f32(0)})
	}
	multiply = append(multiply, turns(r.Full, r.Multiply, r.Done, r.Freed))
	for _, part := range [][]loop.Stmt{r.Last, r.Put, r.Barrier, r.Store} {
		multiply = append(multiply, part...)
	}
	stage := relayStages * relayStep * relayStep
	return &loop.Kernel{
		Name: "relay", Workgroup: [3]int{loop.WarpGroup + loop.Warp, 1, 1}, Groups: [3]int{1, 1, 1},
		Arrays: []loop.Array{
			RelayLeft: input("left", dtype.BF16, RelayRows*RelayDepth), RelayRight: input("right", dtype.BF16, RelayDepth*RelayColumns),
			RelayResult:   output("result", dtype.F32, RelayRows*RelayColumns),
			RelayLeftTile: shared("left_tile", dtype.BF16, stage), RelayRightTile: shared("right_tile", dtype.BF16, stage),
			RelaySums: shared("sums", dtype.F32, relayStep*relayStep),
		},
		TensorMaps: []loop.TensorMap{
			RelayLeft:  {Array: RelayLeft, Dims: []int{RelayDepth, RelayRows}, Strides: []int{RelayDepth}, Size: []int{relayStep, relayStep}},
			RelayRight: {Array: RelayRight, Dims: []int{RelayColumns, RelayDepth}, Strides: []int{RelayColumns}, Size: []int{relayStep, relayStep}},
		},
		Mbarriers: []loop.Mbarrier{
			relayFull:  {Name: "full", Len: relayStages, Warps: 1},
			relayEmpty: {Name: "empty", Len: relayStages, Warps: loop.WarpGroup / loop.Warp},
		},
		Body: []loop.Stmt{&loop.Roles{List: []loop.Role{
			{Threads: loop.WarpGroup, Body: multiply},
			{Threads: loop.Warp, Body: []loop.Stmt{turns(r.Empty, r.Copies, r.Filled)}},
		}}},
	}
}

// Case returns the kernel with operands that use all their digits, and their product.
func (r *Relay) Case() *Case {
	a := mapped(floats(11, RelayRows*RelayDepth), dtype.BF16.Round)
	b := mapped(floats(12, RelayDepth*RelayColumns), dtype.BF16.Round)
	want := zeros(RelayRows * RelayColumns)
	for i := range want {
		for k := range RelayDepth {
			want[i] += a[i/RelayColumns*RelayDepth+k] * b[k*RelayColumns+i%RelayColumns]
		}
	}
	return &Case{
		Kernel: r.Kernel(), Arrays: [][]float64{a, b, zeros(len(want))}, Want: [][]float64{nil, nil, want},
		Tolerance: math.Ldexp(1, -16),
	}
}

// Relays returns the warp-specialised kernels.
func Relays() []*Case { return []*Case{NewRelay().Case()} }
