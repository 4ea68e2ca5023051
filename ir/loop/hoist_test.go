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

func TestHoistMovesInvariants(t *testing.T) {
	n, k, x := scalar.FreeVar("n", dtype.I32), scalar.FreeVar("k", dtype.I32), scalar.FreeVar("x", dtype.I32)
	mixed := func(v scalar.Expr) scalar.Expr { return scalar.Add(scalar.Mul(v, i32(3)), i32(1)) }
	turns := func(body ...loop.Stmt) loop.Stmt {
		return &loop.For{Var: "k", Start: i32(0), End: i32(4), Step: i32(1), Body: body}
	}
	store := func(value scalar.Expr) loop.Stmt { return &loop.Store{Array: 0, At: k, Value: value} }
	for _, c := range []struct {
		name, want string
		body       []loop.Stmt
	}{
		{"a part of an expression, once", "let steady1", []loop.Stmt{turns(store(scalar.Min(mixed(n), k)), store(scalar.Max(mixed(n), k)))}},
		{"a definition", "let y", []loop.Stmt{turns(&loop.Let{Name: "y", Value: mixed(n)}, store(scalar.FreeVar("y", dtype.I32)))}},
		{"out of a branch", "let steady1", []loop.Stmt{turns(&loop.If{Cond: scalar.Lt(k, i32(2)), Then: []loop.Stmt{store(mixed(n))}})}},
		{"not a load", "for k", []loop.Stmt{turns(store(mixed(scalar.LoadAt(0, dtype.I32, i32(0)))))}},
		{"not what an assignment changes", "for k", []loop.Stmt{turns(store(mixed(x)), &loop.Assign{Name: "x", Value: mixed(x)})}},
		{"not what hangs on the count", "for k", []loop.Stmt{turns(&loop.Let{Name: "y", Value: mixed(k)}, store(mixed(scalar.FreeVar("y", dtype.I32))))}},
		{"not a single operation", "for k", []loop.Stmt{turns(store(scalar.Add(n, i32(1))))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := []loop.Stmt{&loop.Let{Name: "n", Value: loop.LocalID(0, 2)}, &loop.Var{Name: "x", Init: i32(2)}}
			before := fourIntegers(append(head, c.body...))
			after := fourIntegers(loop.Hoist(before.Body))
			if line := strings.Split(after.String(), "\n")[4]; !strings.HasPrefix(line, c.want) {
				t.Errorf("before the loop comes %q, want %q", line, c.want)
			}
			if strings.Contains(after.String(), "steady2") {
				t.Errorf("one expression is held twice:\n%s", after)
			}
			if a, b := result(t, before), result(t, after); string(a) != string(b) {
				t.Errorf("%v, want %v:\n%s", b, a, after)
			}
		})
	}
}

// TestHoistKeepsConstantsInAddresses has a loop over lanes: load instructions add a constant
// offset for free, and the rest is a common subexpression.
func TestHoistKeepsConstantsInAddresses(t *testing.T) {
	n, k := scalar.FreeVar("n", dtype.I32), scalar.FreeVar("k", dtype.I32)
	place := func(c int64) scalar.Expr { return scalar.Add(scalar.Mul(n, i32(3)), i32(c)) }
	body := []loop.Stmt{
		&loop.Let{Name: "n", Value: loop.LocalID(0, 2)},
		&loop.For{Var: "k", Start: i32(0), End: i32(4), Step: i32(1), Lanes: true, Body: []loop.Stmt{
			&loop.Store{Array: 0, At: k, Value: scalar.Add(scalar.Mul(k, place(1)), scalar.Mul(k, place(2)))},
		}},
	}
	text := fourIntegers(loop.Hoist(body)).String()
	// 3n + 1 and 3n + 2 share one multiplication and have constant offsets.
	if strings.Contains(text, "steady") {
		t.Errorf("a sum with a constant is held:\n%s", text)
	}
}

// fourIntegers is a kernel of one thread that writes four integers.
func fourIntegers(body []loop.Stmt) *loop.Kernel {
	out := loop.Array{Name: "out", DType: dtype.I32, Width: 1, Len: 4, Access: loop.ReadWrite}
	return &loop.Kernel{Name: "loop", Arrays: []loop.Array{out}, Workgroup: [3]int{1, 1, 1}, Groups: [3]int{1, 1, 1}, Body: body}
}

// result runs a kernel on the integers from 5 and returns its result.
func result(t *testing.T, k *loop.Kernel) []byte {
	t.Helper()
	before := make([]float64, k.Arrays[0].Len)
	for i := range before {
		before[i] = float64(5 + i)
	}
	data := kerneltest.Encode(dtype.I32, before)
	l := sim.Launch{Arrays: []sim.Binding{{Buffer: data, Bytes: len(data)}}}
	if err := sim.Run(k, l, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	return data
}
