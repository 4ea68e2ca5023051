package loop_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestHoistNamesCommonBases has four accesses or more that differ from n·8 + x by constants,
// where n is 1 and x is 2.
func TestHoistNamesCommonBases(t *testing.T) {
	n, x, k := scalar.FreeVar("n", dtype.I32), scalar.FreeVar("x", dtype.I32), scalar.FreeVar("k", dtype.I32)
	place := scalar.Add(scalar.Mul(n, i32(8)), x)
	at := func(place scalar.Expr, offsets ...int64) (list []loop.Stmt) {
		for _, c := range offsets {
			list = append(list, &loop.Store{Array: 0, At: scalar.Add(place, i32(c)), Value: i32(c)})
		}
		return list
	}
	load := func(offset int64) scalar.Expr { return scalar.LoadAt(0, dtype.I32, scalar.Add(place, i32(offset))) }
	far := func(offset int64) scalar.Expr { return scalar.LoadAt(0, dtype.I32, scalar.Mod(load(offset), i32(16))) }
	when := func(then ...loop.Stmt) loop.Stmt { return &loop.If{Cond: scalar.Lt(x, i32(3)), Then: then} }
	turns := func(f loop.For, body ...loop.Stmt) loop.Stmt {
		f.Var, f.Start, f.End, f.Step, f.Body = "k", i32(0), i32(2), i32(1), body
		return &f
	}
	change := &loop.Assign{Name: "x", Value: scalar.Add(x, i32(1))}
	for _, c := range []struct {
		name string
		body []loop.Stmt
		want string // "" where nothing has a name
	}{
		{"side by side", at(place, 0, 1, 2, 5), "\nlet base1 = add(mul(n:i32, 8:i32), x:i32)\nstore out[base1:i32"},
		{"backward too", at(place, -3, -2, -1, 0), "\nlet base1 = add(mul(n:i32, 8:i32), x:i32)\nstore out[add(base1:i32"},
		{"too few", at(place, 0, 1, 2), ""},
		{"nothing to compute", at(x, 0, 1, 2, 3), ""},
		{"constants", at(i32(4), 0, 1, 2, 3), ""},
		{"not what memory holds", at(scalar.Add(scalar.LoadAt(0, dtype.I32, i32(0)), scalar.Mul(n, i32(2))), 0, 1, 2, 3), ""},
		{"what is read", []loop.Stmt{&loop.Let{Name: "k", Value: scalar.Add(scalar.Mul(load(0), load(1)), scalar.Min(load(2), load(3)))}, &loop.Store{Array: 0, At: x, Value: k}}, "\nlet base1 = add(mul(n:i32, 8:i32), x:i32)\nlet k = add(mul(load.i32(0, base1"},
		{"what conditions read", []loop.Stmt{&loop.If{Cond: scalar.Lt(load(0), load(1)), Then: at(place, 2, 3)}}, ""},
		{"where an index is read", at(scalar.Mod(load(0), i32(3)), 0, 1, 2, 3), "\nstore out[mod(load.i32(0, base1"},
		{"where what is read is", []loop.Stmt{&loop.Store{Array: 0, At: x, Value: scalar.Add(scalar.Mul(far(0), far(1)), scalar.Min(far(2), far(3)))}}, "load.i32(0, mod(load.i32(0, base1"},
		{"under conditions alone", []loop.Stmt{when(at(place, 0, 1)...), when(at(place, 2, 3)...)}, ""},
		{"under conditions too", append(at(place, 0), when(at(place, 1, 2)...), when(at(place, 3)...)), "\nlet base1 = add(mul(n:i32, 8:i32), x:i32)\nstore"},
		{"under a condition first", append([]loop.Stmt{when(at(place, 0)...)}, at(place, 1, 2, 3, 4)...), "\nlet base1 = add(mul(n:i32, 8:i32), x:i32)\nstore"},
		{"under one, of its own", []loop.Stmt{
			when(append([]loop.Stmt{&loop.Let{Name: "k", Value: x}}, at(scalar.Add(scalar.Mul(n, i32(8)), k), 0, 1, 2, 3)...)...),
		}, "\n  let base1 = add(mul(n:i32, 8:i32), k:i32)\n  store"},
		{"around a change", append(at(place, 0, 1), append([]loop.Stmt{change}, at(place, 2, 3)...)...), ""},
		{"around a change in a loop", append(at(place, 0, 1), append([]loop.Stmt{turns(loop.For{}, change)}, at(place, 2, 3)...)...), ""},
		{"before a change", append(at(place, 0, 1, 2, 3), change), "\nlet base1"},
		{"behind a change", append([]loop.Stmt{change}, at(place, 0, 1, 2, 3)...), "assign x = add(x:i32, 1:i32)\nlet base1"},
		{"in a loop, in each turn", []loop.Stmt{turns(loop.For{}, append(at(scalar.Add(place, k), 0, 1, 2, 3), change)...)}, "\n  let base1 = add(add(mul(n:i32, 8:i32), x:i32), k:i32)"},
		{"in a loop, before it", []loop.Stmt{turns(loop.For{}, at(place, 0, 1, 2, 3)...)}, "\nlet base1 = add(mul(n:i32, 8:i32), x:i32)\nfor k"},
		{"not in a loop that is written out", []loop.Stmt{turns(loop.For{Unroll: true}, at(scalar.Add(scalar.Mul(k, i32(4)), k), 0, 1, 2, 3)...)}, ""},
		{"nor in one over lanes", []loop.Stmt{turns(loop.For{Lanes: true}, at(scalar.Add(place, k), 0, 1, 2, 3)...)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := []loop.Stmt{&loop.Let{Name: "n", Value: i32(1)}, &loop.Var{Name: "x", Init: i32(2)}}
			before := fourIntegers(append(head, c.body...))
			before.Arrays[0].Len = 16
			after := *before
			after.Body = loop.Hoist(before.Body)
			text := after.String()
			if named := strings.Contains(text, "base1"); named != (c.want != "") || !strings.Contains(text, c.want) || strings.Contains(text, "base2") {
				t.Errorf("want %q in\n%s", c.want, text)
			}
			if a, b := result(t, before), result(t, &after); !bytes.Equal(a, b) {
				t.Errorf("%v, want %v:\n%s", b, a, text)
			}
		})
	}
}
