package sim

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// loop.Check refuses barriers in divergent control flow; these kernels bypass it, to test the
// simulator's own check.
func TestDivergentBarriersAreFound(t *testing.T) {
	local := loop.LocalID(0, 8)
	i32 := func(x int64) scalar.Expr { return scalar.ConstI(dtype.I32, x) }
	barrier := []loop.Stmt{&loop.Barrier{}}
	half := scalar.Lt(local, i32(4))
	for _, c := range []struct {
		name   string
		s      loop.Stmt
		thread int
	}{
		{"a barrier for some", &loop.If{Cond: half, Then: barrier}, 4},
		{"two barriers, each for some", &loop.If{Cond: half, Then: barrier, Else: barrier}, 4},
		{"a barrier that the first threads leave out", &loop.If{Cond: half, Else: barrier}, 0},
		{"a loop that threads leave one by one", &loop.For{Var: "k", Start: local, End: i32(9), Step: i32(1), Body: barrier}, 7},
		{"a subgroup operation for some", &loop.If{Cond: half, Then: []loop.Stmt{
			&loop.Subgroup{Op: scalar.OpAdd, Name: "x", Value: local},
		}}, 4},
	} {
		k := &loop.Kernel{Name: "divergent", Workgroup: [3]int{8, 1, 1}, Groups: [3]int{1, 1, 1}, Subgroup: [2]int{4, 8}, Body: []loop.Stmt{c.s}}
		if loop.Check(k) == nil {
			t.Errorf("%s: loop.Check lets it pass", c.name)
		}
		p, err := prepareUnchecked(k)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := p.Run(Launch{}, Options{}).(*Fault)
		if !ok || f.Kind != DivergentBarrier || f.Thread != c.thread {
			t.Errorf("%s: %v", c.name, f)
		}
	}
}

// The fast paths must agree with scalar.Apply.
func TestFastStepsEqualTheDefinition(t *testing.T) {
	ints := []int64{0, 1, 2, 3, 7, 31, 32, 255, 1 << 15, 1<<31 - 1, -1, -2, -8, -1 << 31, 1 << 31, 1<<32 - 1}
	floats := []float64{0, 0.5, 1, -1, 3, 1e-40, 1e30, -2e38, 3e38, 0.1, 16777217}
	types := []dtype.DType{dtype.I32, dtype.U32, dtype.I64, dtype.U64, dtype.F32, dtype.F64, dtype.F16, dtype.Bool}
	for _, typ := range types {
		for op := scalar.OpNeg; op <= scalar.OpDot4; op++ {
			args := make([]scalar.Expr, op.Arity())
			for i := range args {
				args[i] = scalar.FreeVar(string(rune('a'+i)), typ)
				if op == scalar.OpSelect && i == 0 {
					args[i] = scalar.FreeVar("a", dtype.Bool)
				}
			}
			e, err := scalar.Catch(func() scalar.Expr { return scalar.New(op, args...) })
			if err != nil || e.Op != op || e.Type.IsComplex() {
				continue
			}
			n := len(ints) * len(ints)
			var cols [3]column
			var active []int32
			for i := range cols {
				cols[i] = newColumn(typ, n)
				if op == scalar.OpSelect && i == 0 {
					cols[i] = newColumn(dtype.Bool, n)
				}
			}
			for t := range n {
				active = append(active, int32(t))
				pick := [3]int{t % len(ints), t / len(ints), (t + 5) % len(ints)}
				for i, p := range pick {
					v := scalar.Value{I: typ.Wrap(ints[p]), F: typ.Round(floats[p%len(floats)])}
					if op == scalar.OpSelect && i == 0 {
						v.I &= 1
					}
					cols[i].set(int32(t), v)
				}
			}
			got, want := newColumn(e.Type, n), newColumn(e.Type, n)
			var fast executor
			switch {
			case typ.IsFloat():
				fast = floatStep(e, cols, got)
			case typ.IsInteger() && typ != dtype.U64:
				fast = intStep(e, cols, got)
			}
			if fast == nil {
				continue
			}
			fast(active)
			applyStep(e, cols, want)(active)
			for _, th := range active {
				g, w := got.value(th), want.value(th)
				if g != w && !(g.F != g.F && w.F != w.F) {
					t.Fatalf("%s of %s for %v, %v: %v, not %v", op, typ, cols[0].value(th), cols[1].value(th), g, w)
				}
			}
		}
	}
}
