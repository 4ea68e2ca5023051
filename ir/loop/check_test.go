package loop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestCheckAcceptsGoodKernels(t *testing.T) {
	for _, c := range kerneltest.Cases() {
		if err := loop.Check(c.Kernel); err != nil {
			t.Error(err)
		}
		if err := loop.DefaultLimits().Check(c.Kernel); err != nil {
			t.Error(err)
		}
	}
}

// The arrays of the broken kernels.
const (
	in = iota
	out
	vec
	words
	tile
	own
)

func kernelOf(body ...loop.Stmt) *loop.Kernel {
	array := func(name string, t dtype.DType, width int, space loop.Space, access loop.Access) loop.Array {
		return loop.Array{Name: name, DType: t, Width: width, Len: 4, Space: space, Access: access}
	}
	return &loop.Kernel{
		Name:      "broken",
		Workgroup: [3]int{8, 1, 1},
		Groups:    [3]int{2, 1, 1},
		Arrays: []loop.Array{
			in:    array("in", dtype.F32, 1, loop.Storage, loop.Read),
			out:   array("out", dtype.F32, 1, loop.Storage, loop.ReadWrite),
			vec:   array("vec", dtype.F32, 4, loop.Storage, loop.ReadWrite),
			words: array("words", dtype.U32, 1, loop.Storage, loop.Atomic),
			tile:  array("tile", dtype.F32, 1, loop.Shared, loop.Read),
			own:   array("own", dtype.I32, 1, loop.Private, loop.Read),
		},
		Scalars: []dtype.DType{dtype.F32, dtype.Invalid},
		Body:    body,
	}
}

func i32(x int64) scalar.Expr              { return scalar.ConstI(dtype.I32, x) }
func f32(x float64) scalar.Expr            { return scalar.ConstF(dtype.F32, x) }
func iv(name string) scalar.Expr           { return scalar.FreeVar(name, dtype.I32) }
func load(array int, at int64) scalar.Expr { return scalar.LoadAt(array, dtype.F32, i32(at)) }

func TestCheckNamesTheFault(t *testing.T) {
	store := func(array int, at, value scalar.Expr) loop.Stmt {
		return &loop.Store{Array: array, At: at, Value: value}
	}
	let := func(name string, e scalar.Expr) loop.Stmt { return &loop.Let{Name: name, Value: e} }
	when := func(cond scalar.Expr, then ...loop.Stmt) loop.Stmt {
		return &loop.If{Cond: cond, Then: then}
	}
	turns := func(end scalar.Expr, body ...loop.Stmt) *loop.For {
		return &loop.For{Var: "k", Start: i32(0), End: end, Step: i32(1), Body: body}
	}
	local := loop.LocalID(0, 8)
	barrier := &loop.Barrier{}
	for _, c := range []struct {
		name string
		k    *loop.Kernel
		want string
	}{
		{"a name of capitals", func() *loop.Kernel { k := kernelOf(); k.Name = "Broken"; return k }(), "lower-case"},
		{"an empty grid", func() *loop.Kernel { k := kernelOf(); k.Groups[1] = 0; return k }(), "the workgroup is [8 1 1] and the grid [2 0 1]; sizes must be positive"},
		{"an empty array", func() *loop.Kernel { k := kernelOf(); k.Arrays[tile].Len = 0; return k }(), "length 0"},
		{"a width of three", func() *loop.Kernel { k := kernelOf(); k.Arrays[vec].Width = 3; return k }(), "width 3"},
		{"two arrays of one name", func() *loop.Kernel { k := kernelOf(); k.Arrays[in].Name = "out"; return k }(), "array out is declared twice"},
		{"atomic halves", func() *loop.Kernel { k := kernelOf(); k.Arrays[words].DType = dtype.F16; return k }(), "atomic"},
		{"atomic f64", func() *loop.Kernel { k := kernelOf(); k.Arrays[words].DType = dtype.F64; return k }(), "atomic"},
		{"a name of a built-in variable", kernelOf(let("local_x", i32(0))), "invalid variable name"},
		{"a name that ends in an underscore", kernelOf(let("a_", i32(0))), "invalid variable name"},
		{"a name used before it is defined", kernelOf(store(out, iv("i"), f32(0)), let("i", i32(0))), "store out: unknown variable i"},
		{"a name used outside its block", kernelOf(when(scalar.ConstBool(true), let("i", i32(0))), store(out, iv("i"), f32(0))), "unknown variable i"},
		{"a name defined twice", kernelOf(let("i", i32(0)), turns(i32(2), let("i", i32(1)))), "for k > let i: i is already a variable"},
		{"a name of an array", kernelOf(let("out", i32(0))), "out is already an array"},
		{"an assignment to a let", kernelOf(let("i", i32(0)), &loop.Assign{Name: "i", Value: i32(1)}), "i is not a Var"},
		{"an assignment of another type", kernelOf(&loop.Var{Name: "i", Init: i32(0)}, &loop.Assign{Name: "i", Value: f32(1)}), "the value is f32; it must be i32"},
		{"a use at another type", kernelOf(let("i", f32(0)), store(out, iv("i"), f32(0))), "i is i32 here; it is defined as f32"},
		{"an index that is no i32", kernelOf(store(out, scalar.ConstI(dtype.U32, 0), f32(0))), "the index is u32"},
		{"a load at an index that is no i32", kernelOf(let("x", scalar.LoadAt(in, dtype.F32, scalar.ConstI(dtype.U32, 0)))), "the index of in is u32"},
		{"an index of 64 bits into workgroup memory", kernelOf(store(tile, scalar.ConstI(dtype.I64, 0), f32(0))), "the index of tile is i64; it must be i32"},
		{"a bound that is no i32", kernelOf(turns(scalar.ConstI(dtype.U32, 3))), "a bound is u32; it must be i32"},
		{"an assignment of an i32 to a position of 64 bits", kernelOf(&loop.Var{Name: "i", Init: scalar.ConstI(dtype.I64, 0)}, &loop.Assign{Name: "i", Value: i32(1)}), "the value is i32; it must be i64"},
		{"a value of another type", kernelOf(store(out, i32(0), i32(0))), "the value is i32; it must be f32"},
		{"a load of another type", kernelOf(let("x", scalar.LoadAt(in, dtype.I32, i32(0)))), "a load of i32 reads array in of f32"},
		{"a load from no array", kernelOf(let("x", load(9, 0))), "unknown array 9"},
		{"a store to what is only read", kernelOf(store(in, i32(0), f32(0))), "array in is read only"},
		{"a plain access to vectors", kernelOf(store(vec, i32(0), f32(0))), "array vec has width 4; the access has 1"},
		{"a load of half a vector", kernelOf(&loop.LoadVec{Names: []string{"a", "b"}, Array: vec, At: i32(0)}), "array vec has width 4; the access has 2"},
		{"a plain store to an atomic", kernelOf(store(words, i32(0), scalar.ConstI(dtype.U32, 0))), "array words is atomic; it needs atomic operations"},
		{"an atomic on a plain array", kernelOf(&loop.AtomicOp{Op: scalar.OpAdd, Array: out, At: i32(0), Value: f32(0)}), "not atomic"},
		{"an atomic product", kernelOf(&loop.AtomicOp{Op: scalar.OpMul, Array: words, At: i32(0), Value: scalar.ConstI(dtype.U32, 0)}), "unknown atomic operation mul"},
		{"an atomic maximum of floats", func() *loop.Kernel {
			k := kernelOf(&loop.AtomicOp{Op: scalar.OpMax, Array: words, At: i32(0), Value: f32(0)})
			k.Arrays[words].DType = dtype.F32
			return k
		}(), "unknown atomic operation max on f32"},
		{"an operand of a body", kernelOf(let("x", scalar.Arg(0, dtype.F32))), "operand %0 is not allowed in a kernel"},
		{"a step that may be zero", kernelOf(&loop.For{Var: "k", Start: i32(0), End: i32(3), Step: local}), "the step of the loop must be a positive constant"},
		{"an unrolled loop of unknown length", kernelOf(func() loop.Stmt { f := turns(local); f.Unroll = true; return f }()), "the bounds of an unrolled loop must be constant"},
		{"a range that a built-in exceeds", kernelOf(store(out, loop.LocalID(0, 4), f32(0))), "local_x has range 0 to 3; it must be 0 to 7"},
		{"an undeclared counter", kernelOf(let("x", loop.Counter(0))), "unknown counter counter0: the kernel has 0"},
		{"an undeclared scalar", kernelOf(let("x", loop.RunScalar(1, dtype.F32))), "unknown scalar scalar1"},
		{"a scalar of another type", kernelOf(let("x", loop.RunScalar(0, dtype.I32))), "scalar0 is i32; it must be f32"},
		{"a check without status words", func() *loop.Kernel {
			k := kernelOf(let("x", scalar.Check(local, scalar.Lt(local, i32(4)), 1)))
			k.Arrays[words].Len = 3
			return k
		}(), "a checked index needs 4 atomic u32 as last storage array"},
		{"subgroups of no stated size", kernelOf(&loop.Subgroup{Op: scalar.OpAdd, Name: "x", Value: f32(0)}), "the kernel has no subgroup sizes"},
		{"a barrier for some threads", kernelOf(when(scalar.Lt(local, i32(4)), barrier)), "if > barrier: divergent control flow; it must be uniform"},
		{"a barrier in a loop of thread's length", kernelOf(turns(local, barrier)), "divergent control flow; it must be uniform"},
		{"a barrier under a loaded condition", kernelOf(when(scalar.Lt(load(out, 0), f32(4)), barrier)), "divergent control flow; it must be uniform"},
		{"a barrier under a shared condition", kernelOf(when(scalar.Lt(load(tile, 0), f32(4)), barrier)), "divergent control flow; it must be uniform"},
		{"a barrier under a variable that later varies", kernelOf(
			&loop.Var{Name: "v", Init: i32(0)},
			turns(i32(3), when(scalar.Lt(iv("v"), i32(2)), barrier), &loop.Assign{Name: "v", Value: local}),
		), "divergent control flow; it must be uniform"},
		{"a barrier under a variable assigned by some", kernelOf(
			&loop.Var{Name: "v", Init: i32(0)},
			when(scalar.Lt(local, i32(4)), &loop.Assign{Name: "v", Value: i32(1)}),
			when(scalar.Lt(iv("v"), i32(1)), barrier),
		), "divergent control flow; it must be uniform"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuses(t, c.k, c.want)
		})
	}
}

func TestCheckAllowsBarriersThatAllThreadsReach(t *testing.T) {
	group := loop.GroupID(0, 2)
	constant := scalar.LoadAt(in, dtype.F32, group)
	k := kernelOf(
		&loop.Var{Name: "v", Init: i32(0)},
		&loop.For{Var: "k", Start: group, End: i32(3), Step: i32(1), Body: []loop.Stmt{
			&loop.If{Cond: scalar.Lt(constant, loop.RunScalar(0, dtype.F32)), Then: []loop.Stmt{&loop.Barrier{}}},
			&loop.Assign{Name: "v", Value: scalar.Add(iv("v"), iv("k"))},
		}},
		&loop.If{Cond: scalar.Lt(iv("v"), i32(5)), Else: []loop.Stmt{&loop.Barrier{}}},
	)
	if err := loop.Check(k); err != nil {
		t.Error(err)
	}
}

func TestLimitErrorsNameTheLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(k *loop.Kernel)
		want   string
	}{
		{"storage arrays", func(k *loop.Kernel) {
			for range 5 {
				k.Arrays = append(k.Arrays, k.Arrays[in])
			}
		}, "9 storage arrays"},
		{"a large array", func(k *loop.Kernel) { k.Arrays[in].Len = 1 << 26 }, "array in has 268435456 bytes; the limit is 134217728"},
		{"shared memory", func(k *loop.Kernel) { k.Arrays[tile].Len = 4097 }, "16388 bytes of shared"},
		{"private memory", func(k *loop.Kernel) { k.Arrays[own].Len = 2049 }, "8196 bytes of private"},
		{"threads", func(k *loop.Kernel) { k.Workgroup = [3]int{32, 16, 1} }, "512 threads"},
		{"depth", func(k *loop.Kernel) { k.Workgroup = [3]int{1, 1, 128} }, "128 threads along z"},
		{"workgroups", func(k *loop.Kernel) { k.Groups[2] = 65536 }, "65536 workgroups"},
	} {
		k := kernelOf()
		c.change(k)
		if err := loop.DefaultLimits().Check(k); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// refuses expects Check to return a *CheckError with a text.
func refuses(t *testing.T, k *loop.Kernel, want string) {
	t.Helper()
	err := loop.Check(k)
	var ce *loop.CheckError
	if !errors.As(err, &ce) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
