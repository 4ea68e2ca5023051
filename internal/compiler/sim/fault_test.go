package sim_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The arrays of the planted kernels, 8 elements each.
const (
	in = iota
	out
	vec
	count
	total
	tile
	own
)

const threads, groups = 8, 2

func planted(body ...loop.Stmt) *loop.Kernel {
	array := func(name string, t dtype.DType, width int, space loop.Space, access loop.Access) loop.Array {
		return loop.Array{Name: name, DType: t, Width: width, Len: 8 / width, Space: space, Access: access}
	}
	return &loop.Kernel{
		Name:      "planted",
		Workgroup: [3]int{threads, 1, 1},
		Groups:    [3]int{groups, 1, 1},
		Arrays: []loop.Array{
			in:    array("in", dtype.F32, 1, loop.Storage, loop.Read),
			out:   array("out", dtype.F32, 1, loop.Storage, loop.ReadWrite),
			vec:   array("vec", dtype.F32, 4, loop.Storage, loop.ReadWrite),
			count: array("count", dtype.I32, 1, loop.Storage, loop.Atomic),
			total: array("total", dtype.F32, 1, loop.Storage, loop.Atomic),
			tile:  array("tile", dtype.F32, 1, loop.Shared, loop.Read),
			own:   array("own", dtype.F32, 1, loop.Private, loop.Read),
		},
		Body: body,
	}
}

// ranged returns one more than the variable x, which is said to be from 0 to hi.
func ranged(hi int64) scalar.Expr { return scalar.Add(scalar.NewVar("x", dtype.I32, 0, hi), i32(1)) }

// bindings returns 8 elements for each storage array; in holds 0, 1, 2, ….
func bindings() []sim.Binding {
	bind := func(t dtype.DType, x ...float64) sim.Binding {
		data := kerneltest.Encode(t, x)
		return sim.Binding{Buffer: data, Bytes: len(data)}
	}
	return []sim.Binding{
		bind(dtype.F32, 0, 1, 2, 3, 4, 5, 6, 7),
		bind(dtype.F32, make([]float64, 8)...),
		bind(dtype.F32, make([]float64, 8)...),
		bind(dtype.I32, make([]float64, 8)...),
		bind(dtype.F32, make([]float64, 8)...),
	}
}

func i32(x int64) scalar.Expr   { return scalar.ConstI(dtype.I32, x) }
func f32(x float64) scalar.Expr { return scalar.ConstF(dtype.F32, x) }

func load(array int, at scalar.Expr) scalar.Expr { return scalar.LoadAt(array, dtype.F32, at) }

func store(array int, at, value scalar.Expr) loop.Stmt {
	return &loop.Store{Array: array, At: at, Value: value}
}

func let(name string, e scalar.Expr) loop.Stmt { return &loop.Let{Name: name, Value: e} }

func when(cond scalar.Expr, then ...loop.Stmt) loop.Stmt {
	return &loop.If{Cond: cond, Then: then}
}

var (
	local   = loop.LocalID(0, threads)
	group   = loop.GroupID(0, groups)
	global  = loop.GlobalID(0, threads, groups)
	next    = scalar.Rem(scalar.Add(local, i32(1)), i32(threads))
	barrier = &loop.Barrier{}
	first   = scalar.Eq(group, i32(0))
)

func loadVec(at scalar.Expr) loop.Stmt {
	return &loop.LoadVec{Names: []string{"a", "b", "c", "d"}, Array: vec, At: at}
}

func storeVec(at scalar.Expr) loop.Stmt {
	return &loop.StoreVec{Array: vec, At: at, Values: []scalar.Expr{f32(1), f32(2), f32(3), f32(4)}}
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		k    *loop.Kernel
		want sim.Fault // Kernel and, where nil matters, Other are filled in below
	}{
		{
			"a load past the end", planted(let("x", load(in, global))),
			sim.Fault{Kind: sim.OutOfBounds, Group: [3]int{1, 0, 0}, Thread: 0, Array: "in", Index: 8, Stmt: "let x"},
		},
		{
			"a load before the start", planted(let("x", load(in, scalar.Sub(local, i32(2))))),
			sim.Fault{Kind: sim.OutOfBounds, Array: "in", Index: -2, Stmt: "let x"},
		},
		{
			"a load past the end in one side of a select", planted(let("x", scalar.Select(scalar.Lt(global, i32(8)), load(in, global), f32(0)))),
			sim.Fault{Kind: sim.OutOfBounds, Group: [3]int{1, 0, 0}, Array: "in", Index: 8, Stmt: "let x"},
		},
		{
			"a store past the end", planted(when(first, store(out, scalar.Mul(local, i32(2)), f32(0)))),
			sim.Fault{Kind: sim.OutOfBounds, Thread: 4, Array: "out", Index: 8, Stmt: "if > store out"},
		},
		{
			"a vector load past the end", planted(loadVec(local)),
			sim.Fault{Kind: sim.OutOfBounds, Thread: 2, Array: "vec", Index: 2, Stmt: "load vec"},
		},
		{
			"a vector store past the end", planted(when(first, storeVec(local))),
			sim.Fault{Kind: sim.OutOfBounds, Thread: 2, Array: "vec", Index: 2, Stmt: "if > store vec"},
		},
		{
			"a shared store past the end", planted(store(tile, scalar.Add(local, i32(1)), f32(0))),
			sim.Fault{Kind: sim.OutOfBounds, Thread: 7, Array: "tile", Index: 8, Stmt: "store tile"},
		},
		{
			"a private store past the end", planted(store(own, scalar.Add(local, i32(5)), f32(0))),
			sim.Fault{Kind: sim.OutOfBounds, Thread: 3, Array: "own", Index: 8, Stmt: "store own"},
		},
		{
			"an atomic past the end", planted(&loop.AtomicOp{Op: scalar.OpAdd, Array: count, At: global, Value: i32(1)}),
			sim.Fault{Kind: sim.OutOfBounds, Group: [3]int{1, 0, 0}, Array: "count", Index: 8, Stmt: "atomic count"},
		},
		{
			"an atomic of floats past the end", planted(&loop.AtomicOp{Op: scalar.OpAdd, Array: total, At: global, Value: f32(1)}),
			sim.Fault{Kind: sim.OutOfBounds, Group: [3]int{1, 0, 0}, Array: "total", Index: 8, Stmt: "atomic total"},
		},
		{
			"a plain element stored by all that add to an atomic one", planted(
				&loop.AtomicOp{Op: scalar.OpAdd, Array: total, At: i32(0), Value: f32(1), Old: "before"},
				store(out, i32(0), scalar.FreeVar("before", dtype.F32))),
			sim.Fault{Kind: sim.Race, Thread: 1, Array: "out", Index: 0, Stmt: "store out"},
		},

		{
			"a shared element read after another thread's write", planted(store(tile, local, f32(0)), let("x", load(tile, next))),
			sim.Fault{Kind: sim.Race, Thread: 0, Array: "tile", Index: 1, Other: 1, Stmt: "let x"},
		},
		{
			"a shared element written after another thread's read", planted(
				store(tile, local, f32(0)), barrier, let("x", load(tile, next)), store(tile, local, f32(1))),
			sim.Fault{Kind: sim.Race, Thread: 0, Array: "tile", Index: 0, Other: 7, Stmt: "store tile"},
		},
		{
			"a shared element written after a read by several", planted(
				store(tile, local, f32(0)), barrier, let("x", load(tile, i32(3))), when(scalar.Eq(local, i32(3)), store(tile, local, f32(1)))),
			sim.Fault{Kind: sim.Race, Thread: 3, Array: "tile", Index: 3, Other: -1, Stmt: "if > store tile"},
		},
		{
			"a shared element written by two threads", planted(store(tile, scalar.Div(local, i32(2)), f32(0))),
			sim.Fault{Kind: sim.Race, Thread: 1, Array: "tile", Index: 0, Other: 0, Stmt: "store tile"},
		},
		{
			"a race from one turn of a loop to the next", planted(
				store(tile, local, f32(0)),
				&loop.For{Var: "k", Start: i32(0), End: i32(2), Step: i32(1), Body: []loop.Stmt{
					barrier, let("x", load(tile, next)), when(scalar.Ge(scalar.FreeVar("k", dtype.I32), i32(1)), store(tile, local, f32(1))),
				}}),
			sim.Fault{Kind: sim.Race, Thread: 0, Array: "tile", Index: 0, Other: 7, Stmt: "for k > if > store tile"},
		},
		{
			"a storage element shared by threads", planted(when(first, store(out, local, f32(0)), let("x", load(out, next)))),
			sim.Fault{Kind: sim.Race, Thread: 0, Array: "out", Index: 1, Other: 1, Stmt: "if > let x"},
		},
		{
			"a vector shared by threads", planted(when(first, storeVec(scalar.Div(local, i32(4))))),
			sim.Fault{Kind: sim.Race, Thread: 1, Array: "vec", Index: 0, Other: 0, Stmt: "if > store vec"},
		},

		{
			"an element written by two workgroups", planted(when(scalar.Eq(local, i32(0)), store(out, i32(5), f32(0)))),
			sim.Fault{Kind: sim.GroupRace, Group: [3]int{1, 0, 0}, Array: "out", Index: 5, Other: 0, Stmt: "if > store out"},
		},
		{
			"an element read after another workgroup's write", planted(
				when(scalar.And(first, scalar.Eq(local, i32(0))), store(out, i32(5), f32(0))),
				when(scalar.Not(first), let("x", load(out, i32(5))))),
			sim.Fault{Kind: sim.GroupRace, Group: [3]int{1, 0, 0}, Array: "out", Index: 5, Other: 0, Stmt: "if > let x"},
		},
		{
			"an element written after another workgroup's read", planted(
				when(first, let("x", load(out, i32(5)))),
				when(scalar.And(scalar.Not(first), scalar.Eq(local, i32(0))), store(out, i32(5), f32(0)))),
			sim.Fault{Kind: sim.GroupRace, Group: [3]int{1, 0, 0}, Array: "out", Index: 5, Other: 0, Stmt: "if > store out"},
		},

		{
			"shared memory read before it is written", planted(let("x", load(tile, local))),
			sim.Fault{Kind: sim.Uninitialised, Array: "tile", Index: 0, Stmt: "let x"},
		},
		{
			"shared memory of the workgroup before", planted(when(first, store(tile, local, f32(0))), barrier, let("x", load(tile, local))),
			sim.Fault{Kind: sim.Uninitialised, Group: [3]int{1, 0, 0}, Array: "tile", Index: 0, Stmt: "let x"},
		},
		{
			"private memory read before it is written", planted(store(own, local, f32(0)), let("x", load(own, i32(2)))),
			sim.Fault{Kind: sim.Uninitialised, Array: "own", Index: 2, Stmt: "let x"},
		},

		{
			"a division by zero", planted(let("x", scalar.Rem(i32(7), scalar.Sub(local, i32(3))))),
			sim.Fault{Kind: sim.ZeroDivisor, Thread: 3, Stmt: "let x"},
		},
		{
			"a variable outside its stated range", planted(let("x", local), let("y", ranged(5))),
			sim.Fault{Kind: sim.OutOfRange, Thread: 6, Array: "x", Index: 6, Stmt: "let y"},
		},
		{
			"a variable outside the narrower of two ranges", planted(let("x", local), let("y", ranged(7)), let("z", ranged(5))),
			sim.Fault{Kind: sim.OutOfRange, Thread: 6, Array: "x", Index: 6, Stmt: "let z"},
		},
		{
			"a variable outside a range that other threads checked", planted(
				let("x", local), when(scalar.Lt(local, i32(6)), let("y", ranged(5))), let("z", ranged(5))),
			sim.Fault{Kind: sim.OutOfRange, Thread: 6, Array: "x", Index: 6, Stmt: "let z"},
		},
		{
			"a variable outside its range after an assignment", planted(
				&loop.Var{Name: "x", Init: local}, let("y", ranged(7)), &loop.Assign{Name: "x", Value: scalar.Add(local, i32(1))}, let("z", ranged(7))),
			sim.Fault{Kind: sim.OutOfRange, Thread: 7, Array: "x", Index: 8, Stmt: "let z"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := sim.Run(c.k, sim.Launch{Arrays: bindings()}, sim.Options{})
			var f *sim.Fault
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want a fault", err)
			}
			c.want.Kernel = "planted"
			if *f != c.want {
				t.Errorf("fault %+v,\nwant  %+v", *f, c.want)
			}
		})
	}
}

// Threads may access elements that others accessed before a barrier, and all may read the same
// element.
func TestRaceFreeKernelsPass(t *testing.T) {
	for _, c := range []struct {
		name string
		k    *loop.Kernel
	}{
		{"exchange over a barrier", planted(store(tile, local, f32(0)), barrier, let("x", load(tile, next)), barrier, store(tile, local, f32(1)))},
		{"exchange in storage over a barrier", planted(when(first, store(out, local, f32(0))), barrier, when(first, let("x", load(out, next))))},
		{"own elements again and again", planted(when(first, store(out, local, f32(0)), store(out, local, load(out, local))))},
		{"all read one element", planted(let("x", load(in, i32(3))))},
		{"all add to one element", planted(&loop.AtomicOp{Op: scalar.OpAdd, Array: count, At: i32(0), Value: i32(1)})},
		{"all add to one float", planted(&loop.AtomicOp{Op: scalar.OpAdd, Array: total, At: i32(0), Value: f32(1)})},
	} {
		if err := sim.Run(c.k, sim.Launch{Arrays: bindings()}, sim.Options{}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestEveryMissingBarrierIsFound(t *testing.T) {
	for _, c := range kerneltest.Cases() {
		if c.Kernel.Name != "softmax_row" && c.Kernel.Name != "matmul_32" {
			continue
		}
		for i, n := 0, len(barriers(c.Kernel)); i < n; i++ {
			fresh := kernelNamed(c.Kernel.Name)
			*barriers(fresh.Kernel)[i] = &loop.If{Cond: scalar.ConstBool(false)}
			err := sim.Run(fresh.Kernel, launch(fresh), sim.Options{})
			var f *sim.Fault
			if !errors.As(err, &f) || f.Kind != sim.Race {
				t.Errorf("%s without barrier %d: %v", c.Kernel.Name, i, err)
			}
		}
	}
}

func kernelNamed(name string) *kerneltest.Case {
	for _, c := range kerneltest.Cases() {
		if c.Kernel.Name == name {
			return c
		}
	}
	return nil
}

// barriers returns the positions of the barriers of a kernel.
func barriers(k *loop.Kernel) []*loop.Stmt {
	var out []*loop.Stmt
	var walk func(body []loop.Stmt)
	walk = func(body []loop.Stmt) {
		for i, s := range body {
			switch s := s.(type) {
			case *loop.Barrier:
				out = append(out, &body[i])
			case *loop.For:
				walk(s.Body)
			case *loop.If:
				walk(s.Then)
				walk(s.Else)
			}
		}
	}
	walk(k.Body)
	return out
}

// An operation in place is valid if each thread accesses only its own elements, and a race
// otherwise, although the arrays differ.
func TestArraysThatShareMemoryRace(t *testing.T) {
	same := bindings()
	same[out] = same[in]
	own := planted(when(first, store(out, local, load(in, local))))
	if err := sim.Run(own, sim.Launch{Arrays: same}, sim.Options{}); err != nil {
		t.Error(err)
	}
	var f *sim.Fault
	shifted := planted(when(first, store(out, local, load(in, next))))
	if err := sim.Run(shifted, sim.Launch{Arrays: same}, sim.Options{}); !errors.As(err, &f) || f.Kind != sim.Race {
		t.Errorf("error %v, want a race", err)
	}
	apart := make([]byte, 64)
	windows := bindings()
	windows[in] = sim.Binding{Buffer: apart, Bytes: 32}
	windows[out] = sim.Binding{Buffer: apart, Offset: 32, Bytes: 32}
	if err := sim.Run(shifted, sim.Launch{Arrays: windows}, sim.Options{}); err != nil {
		t.Errorf("windows that do not overlap: %v", err)
	}
}

func TestLaunchesThatDoNotFitAreRefused(t *testing.T) {
	k := planted(let("x", load(in, local)))
	short := bindings()
	short[in].Bytes = 28
	outside := bindings()
	outside[in].Offset = 4
	for name, l := range map[string]sim.Launch{
		"a missing array":             {Arrays: bindings()[:3]},
		"a window that is too short":  {Arrays: short},
		"a window outside its buffer": {Arrays: outside},
	} {
		var e *sim.LaunchError
		if err := sim.Run(k, l, sim.Options{}); !errors.As(err, &e) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	c := kernelNamed("subgroup_sum")
	var e *sim.LaunchError
	for _, size := range []int{2, 12, 128} {
		if err := sim.Run(c.Kernel, launch(c), sim.Options{Subgroup: size}); !errors.As(err, &e) {
			t.Errorf("subgroups of %d: error %v", size, err)
		}
	}
	c = kernelNamed("scale_tail")
	l := launch(c)
	l.Scalars = nil
	if err := sim.Run(c.Kernel, l, sim.Options{}); !errors.As(err, &e) {
		t.Errorf("a missing scalar: error %v", err)
	}
}
