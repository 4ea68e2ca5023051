package tally_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/sim/tally"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The workgroups of the kernels, and the threads of each.
const (
	groups  = 512
	threads = 256
	warps   = groups * threads / loop.Warp
)

// kernel is a kernel over arrays.
func kernel(body ...loop.Stmt) *loop.Kernel {
	const elements = groups * threads * 64
	return &loop.Kernel{
		Name: "k", Workgroup: [3]int{threads, 1, 1}, Groups: [3]int{groups, 1, 1}, Body: body,
		Arrays: []loop.Array{
			{Name: "from", DType: dtype.F32, Width: 1, Len: elements, Access: loop.Read},
			{Name: "to", DType: dtype.F32, Width: 1, Len: elements, Access: loop.ReadWrite},
			{Name: "shared", DType: dtype.F32, Width: 1, Len: threads * 32, Space: loop.Shared},
			{Name: "rows", DType: dtype.I32, Width: 1, Len: elements, Access: loop.Read},
		},
	}
}

func thread() scalar.Expr { return loop.GlobalID(0, threads, groups) }

func times(x scalar.Expr, n int) scalar.Expr { return scalar.Mul(x, loop.Int(n)) }

func load(array int, at scalar.Expr) scalar.Expr {
	if array == 3 {
		return scalar.LoadAt(array, dtype.I32, at)
	}
	return scalar.LoadAt(array, dtype.F32, at)
}

// row is a loop of a thread over 64 elements, from a start by a step.
func row(start scalar.Expr, step int) []loop.Stmt {
	i := scalar.NewVar("i", dtype.I32, 0, 63)
	acc := scalar.FreeVar("acc", dtype.F32)
	return []loop.Stmt{
		&loop.Var{Name: "acc", Init: scalar.ConstF(dtype.F32, 0)},
		&loop.For{Var: "i", Start: loop.Int(0), End: loop.Int(64), Step: loop.Int(1), Body: []loop.Stmt{
			&loop.Assign{Name: "acc", Value: scalar.Add(acc, load(0, scalar.Add(start, times(i, step))))},
		}},
		&loop.Store{Array: 1, At: thread(), Value: acc},
	}
}

// TestMemoryIsCounted compares sectors, lines and bank conflicts of accesses with those found by hand.
func TestMemoryIsCounted(t *testing.T) {
	local := loop.LocalID(0, threads)
	shared := func(step int) []loop.Stmt {
		return []loop.Stmt{&loop.Store{Array: 2, At: times(local, step), Value: scalar.ConstF(dtype.F32, 1)}}
	}
	copied := func(at scalar.Expr) []loop.Stmt {
		return []loop.Stmt{&loop.Store{Array: 1, At: thread(), Value: load(0, at)}}
	}
	lt := func(n int) scalar.Expr { return scalar.Lt(local, loop.Int(n)) }
	for name, c := range map[string]struct {
		body                   []loop.Stmt
		sectors, missed, lines float64 // of a warp
	}{
		"a copy":                {copied(thread()), 8, 8, 2},
		"a transposition":       {copied(times(thread(), 64)), 32 + 4, 32 + 4, 32 + 1},
		"one element":           {copied(loop.Int(0)), 1 + 4, 0.125 + 4, 1 + 1},                          // that half the sampled warps find near, and all but one of a workgroup
		"rows across lanes":     {row(times(thread(), 64), 1), 64*32 + 4, (32 + 63*32/8) + 4, 64*32 + 1}, // a sector is read again by the seven next iterations
		"columns across lanes":  {row(thread(), groups*threads), 64*4 + 4, 64*4 + 4, 64 + 1},
		"half of the threads":   {[]loop.Stmt{&loop.If{Cond: lt(128), Then: copied(thread())}}, 4, 4, 1},
		"random rows":           {copied(scalar.Add(times(load(3, thread()), 64), loop.Int(1))), 32 + 4 + 4, 32 + 4 + 4, 32 + 2},
		"shared memory":         {shared(1), 0, 0, 1},
		"two threads to a bank": {shared(2), 0, 0, 2},
		"one bank":              {shared(32), 0, 0, 32},
	} {
		k := kernel(c.body...)
		if err := loop.Check(k); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := tally.Of(k)
		for what, x := range map[string][2]float64{"sectors": {got.Sectors, c.sectors}, "missed sectors": {got.Missed, c.missed}, "lines": {got.Lines, c.lines}} {
			if each := x[0] / warps; each < 0.9*x[1] || each > 1.1*x[1]+0.5 {
				t.Errorf("%s: %g %s of a warp, not %g", name, each, what, x[1])
			}
		}
	}
}

// TestOperationsAreCounted compares instructions with those of a compiler that moves invariants out of loops and shares
// equal expressions.
func TestOperationsAreCounted(t *testing.T) {
	sum := scalar.FreeVar("acc", dtype.F32)
	i := scalar.NewVar("i", dtype.I32, 0, 63)
	loops := func(unroll bool, value scalar.Expr) []loop.Stmt {
		return []loop.Stmt{
			&loop.Var{Name: "acc", Init: scalar.ConstF(dtype.F32, 0)},
			&loop.For{Var: "i", Start: loop.Int(0), End: loop.Int(64), Step: loop.Int(1), Unroll: unroll, Body: []loop.Stmt{
				&loop.Assign{Name: "acc", Value: scalar.Add(sum, value)},
			}},
		}
	}
	x := scalar.NewVar("x", dtype.F32, 1, 0)
	withX := func(body []loop.Stmt) []loop.Stmt {
		return append([]loop.Stmt{&loop.Let{Name: "x", Value: load(0, thread())}}, body...)
	}
	float := func(e scalar.Expr) scalar.Expr { return scalar.Convert(e, dtype.F32) }
	for name, c := range map[string]struct {
		body            []loop.Stmt
		floats, special float64 // of a warp, besides an access and conversions
	}{
		"a sum":         {withX(loops(false, x)), 64, 0},
		"an invariant":  {withX(loops(false, scalar.Exp(x))), 64 + 6, 1},
		"multiply-adds": {withX(loops(false, scalar.Mul(x, float(i)))), 64, 0},
		"functions":     {withX(loops(true, scalar.Exp(scalar.Mul(x, float(i))))), 64 * (1 + 6 + 1), 64},
	} {
		k := kernel(c.body...)
		if err := loop.Check(k); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := tally.Of(k)
		issued, special := (got.Issued-got.Int)/warps-1, got.Special/warps
		if issued < 0.95*c.floats || issued > 1.05*c.floats+0.5 || special != c.special {
			t.Errorf("%s: %g instructions and %g approximations of a warp, not %g and %g", name, issued, special, c.floats, c.special)
		}
	}
}

// TestProductsAreCounted counts the padding of tiles, whose rate is that of their columns.
func TestProductsAreCounted(t *testing.T) {
	var sums []string
	body := []loop.Stmt{}
	shape := loop.MmaShape{Operand: dtype.BF16, N: 64}
	for i := range shape.Sums() {
		name := "d" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		sums = append(sums, name)
		body = append(body, &loop.Var{Name: name, Init: scalar.ConstF(dtype.F32, 0)})
	}
	k := kernel(append(body, &loop.Mma{Shape: shape, Terms: []loop.MmaTerm{{Sums: sums, First: true, A: loop.Tile{Array: 2, At: loop.Int(0)}, B: loop.Tile{Array: 2, At: loop.Int(0)}}}})...)
	k.Arrays[2].DType = dtype.BF16
	want := 2. * 64 * 64 * 16 * groups * threads / loop.WarpGroup
	if got := tally.Of(k).Products; got != [3]float64{0, 0, want} {
		t.Errorf("%v operations of matrix units, not %v", got, want)
	}
}
