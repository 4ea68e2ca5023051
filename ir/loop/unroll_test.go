package loop_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestUnrolledKernelsDoTheSame(t *testing.T) {
	for _, c := range kerneltest.Cases() {
		before := c.Kernel.String()
		k := loop.Unroll(c.Kernel)
		if c.Kernel.String() != before {
			t.Errorf("%s: Unroll changed its argument", k.Name)
		}
		if strings.Contains(k.String(), "unroll") || strings.Contains(k.Name, "matmul") && strings.Contains(k.String(), "private") {
			t.Errorf("%s: still has unrolled loops or private arrays:\n%s", k.Name, k)
		}
		l := sim.Launch{Scalars: c.Scalars, Counters: c.Counters}
		for i, a := range c.Storage() {
			data := kerneltest.Encode(a.DType, c.Arrays[i])
			l.Arrays = append(l.Arrays, sim.Binding{Buffer: data, Bytes: len(data)})
		}
		if err := sim.Run(k, l, sim.Options{ZeroDivisors: true}); err != nil {
			t.Fatal(err)
		}
		var got [][]float64
		for i, a := range c.Storage() {
			got = append(got, kerneltest.Decode(a.DType, l.Arrays[i].Buffer))
		}
		if err := c.Compare(got); err != nil {
			t.Error(err)
		}
	}
}

func TestUnrollPlacesRegisters(t *testing.T) {
	own := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(0, dtype.F32, at) }
	store := func(array int, at, value scalar.Expr) loop.Stmt {
		return &loop.Store{Array: array, At: at, Value: value}
	}
	turns := func(unroll bool, body ...loop.Stmt) loop.Stmt {
		return &loop.For{Var: "k", Start: i32(0), End: i32(2), Step: i32(1), Unroll: unroll, Body: body}
	}
	whole := scalar.ConstBool(true)
	for _, c := range []struct {
		name string
		body []loop.Stmt
		want string
	}{
		{"at the first store", []loop.Stmt{
			turns(true, store(0, iv("k"), f32(1))),
			store(1, i32(0), scalar.Add(own(i32(0)), own(i32(1)))),
		}, `
var own_0 = 1:f32
var own_1 = 1:f32
store out[0:i32] = add(own_0:f32, own_1:f32)
`},
		{"in the loop that has all uses", []loop.Stmt{
			turns(false, store(0, i32(0), f32(1)), store(1, i32(0), own(i32(0)))),
		}, `
for k = 0:i32 below 2:i32 step 1:i32
  var own_0 = 1:f32
  store out[0:i32] = own_0:f32
`},
		{"before a loop that carries it", []loop.Stmt{
			turns(false, store(1, i32(0), own(i32(0))), store(0, i32(0), f32(1))),
		}, `
var own_0 = 0:f32
for k = 0:i32 below 2:i32 step 1:i32
  store out[0:i32] = own_0:f32
  own_0 = 1:f32
`},
		{"before a branch that stores first", []loop.Stmt{
			&loop.If{Cond: whole, Then: []loop.Stmt{store(0, i32(0), f32(1))}},
			store(1, i32(0), own(i32(0))),
		}, `
var own_0 = 0:f32
if true
  own_0 = 1:f32
store out[0:i32] = own_0:f32
`},
		{"not where an index varies", []loop.Stmt{
			turns(false, store(0, iv("k"), f32(1))),
		}, `
for k = 0:i32 below 2:i32 step 1:i32
  store own[k:i32] = 1:f32
`},
		{"with names of turns for what a body defines", []loop.Stmt{
			turns(true, &loop.Let{Name: "x", Value: iv("k")}, inner(&loop.Let{Name: "y", Value: scalar.Add(iv("x"), iv("j"))})),
		}, `
let x_0 = 0:i32
let y_0_0 = x_0:i32
let y_0_1 = add(x_0:i32, 1:i32)
let x_1 = 1:i32
let y_1_0 = x_1:i32
let y_1_1 = add(x_1:i32, 1:i32)
`},
	} {
		k := kernelOf(c.body...)
		k.Arrays = []loop.Array{
			{Name: "own", DType: dtype.F32, Width: 1, Len: 2, Space: loop.Private},
			{Name: "out", DType: dtype.F32, Width: 1, Len: 2, Access: loop.ReadWrite},
		}
		if err := loop.Check(k); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(loop.Unroll(k).String(), "assign ", "")
		_, got, _ := strings.Cut(text, "storage read_write\n")
		_, got, _ = strings.Cut(got, "\n")
		if got != c.want[1:] {
			t.Errorf("%s:\n%swant:%s", c.name, got, c.want)
		}
	}
}

// inner is a nested unrolled loop.
func inner(body ...loop.Stmt) loop.Stmt {
	return &loop.For{Var: "j", Start: i32(0), End: i32(2), Step: i32(1), Unroll: true, Body: body}
}
