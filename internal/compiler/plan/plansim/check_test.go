package plansim_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// checked returns rows of x at indices that must be below its length.
func checked(b *ir.Builder, x, index ir.Value) ir.Value {
	return ops.Take(b, x, ops.CheckIndex(b, index, x.Dim(0), "row"), 0, ops.OutsideClip)
}

// checkPrograms update a state and check the input "i", which has to be below 4.
var checkPrograms = []struct {
	name string
	make func(b *ir.Builder)
}{
	{"before the update", func(b *ir.Builder) {
		s, i := b.State("s", ir.F32, ir.N(4)), b.Input("i", ir.I32, ir.N(3))
		b.Output("rows", checked(b, s, i))
		b.SetState("s", ops.Sin(b, s))
	}},
	{"on the way to the update", func(b *ir.Builder) {
		s, i := b.State("s", ir.F32, ir.N(4)), b.Input("i", ir.I32, ir.N(4))
		b.SetState("s", ops.Add(b, s, checked(b, s, i)))
	}},
	{"in rows of the new value", func(b *ir.Builder) {
		s, i := b.State("s", ir.F32, ir.N(4)), b.Input("i", ir.I32, ir.N(3))
		next := ops.Sin(b, s)
		b.SetState("s", next)
		b.Output("rows", checked(b, next, i))
	}},
	{"of indices made from the new value", func(b *ir.Builder) {
		s, i := b.State("s", ir.I32, ir.N(4)), b.Input("i", ir.I32, ir.N(4))
		x := b.Input("x", ir.F32, ir.N(4))
		next := ops.Add(b, s, i)
		b.SetState("s", next)
		b.Output("rows", checked(b, x, next))
	}},
	{"in a loop, the state outside", func(b *ir.Builder) {
		s, i := b.State("s", ir.F32, ir.N(4)), b.Input("i", ir.I32, ir.N(3))
		_, ys := ops.Scan(b, ops.Loop{Consts: []ir.Value{s}, Xs: []ir.Value{i}, Body: func(b *ir.Builder, c, _, x []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{checked(b, c[0], x[0])}
		}})
		b.Output("rows", ys[0])
		b.SetState("s", ops.Sin(b, s))
	}},
	{"in a loop that carries the state", func(b *ir.Builder) {
		s, i := b.State("s", ir.F32, ir.N(4)), b.Input("i", ir.I32, ir.N(3), ir.N(4))
		c, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{s}, Xs: []ir.Value{i}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{checked(b, c[0], x[0])}, nil
		}})
		b.SetState("s", c[0])
	}},
	{"in a loop, indices from the new value", func(b *ir.Builder) {
		s, i := b.State("s", ir.I32, ir.N(3)), b.Input("i", ir.I32, ir.N(3))
		x := b.Input("x", ir.F32, ir.N(4))
		next := ops.Add(b, s, i)
		_, ys := ops.Scan(b, ops.Loop{Consts: []ir.Value{x}, Xs: []ir.Value{next}, Body: func(b *ir.Builder, c, _, x []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{checked(b, c[0], x[0])}
		}})
		b.Output("rows", ys[0])
		b.SetState("s", next)
	}},
}

// TestBadIndexKeepsStates runs each program with good indices, then with
// one bad index, then with good ones again.
func TestBadIndexKeepsStates(t *testing.T) {
	for _, p := range checkPrograms {
		t.Run(p.name, func(t *testing.T) {
			g, err := ir.Build("g", p.make)
			if err != nil {
				t.Fatal(err)
			}
			values := someValues(g)
			clear(values["s"].I)
			s := open(t, g, plan.WebGPU())
			if err := s.Set("s", values["s"]); err != nil {
				t.Fatal(err)
			}
			for _, last := range []int64{1, 4, -1, 1} {
				i := values["i"].I
				i[len(i)-1] = last
				want, wrong := ir.Eval(g, values, ir.EvalOptions{Reference: true})
				_, err := s.Run("run", values)
				if wrong != nil {
					if !errors.Is(err, ir.ErrIndex) || !errors.Is(wrong, ir.ErrIndex) {
						t.Fatalf("index %d: the plan fails with %v, the reference with %v", last, err, wrong)
					}
				} else {
					if err != nil {
						t.Fatalf("index %d: %v", last, err)
					}
					for k, o := range g.Outputs() {
						if o.State {
							values["s"] = want[k]
						}
					}
				}
				got, err := s.Get("s")
				if err != nil {
					t.Fatal(err)
				}
				if diff := compare(got, values["s"], 1e-5); diff != "" {
					t.Errorf("index %d: the state: %s", last, diff)
				}
			}
		})
	}
}

// TestUntakenBranchChecksNothing has invalid indices in the branch that is not taken, outside and
// inside a loop.
func TestUntakenBranchChecksNothing(t *testing.T) {
	good := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.BroadcastTo(b, ops.ReduceSum(b, in[0]), in[1].Shape())}
	}
	rows := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{checked(b, in[0], in[1])} }
	nested := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return ops.Cond(b, ops.Gt(b, ops.ReduceSum(b, in[0]), ops.Const(b, ir.F32, -100)), in, rows, good)
	}
	loop := func(b *ir.Builder, in []ir.Value) []ir.Value {
		_, ys := ops.Scan(b, ops.Loop{Consts: in[:1], Xs: in[1:], Body: func(b *ir.Builder, c, _, x []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{checked(b, c[0], x[0])}
		}})
		return ys
	}
	for name, branch := range map[string]ops.Branch{"by itself": rows, "in a branch": nested, "in a loop": loop} {
		t.Run(name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, i, take := b.Input("x", ir.F32, ir.N(4)), b.Input("i", ir.I32, ir.N(3)), b.Input("take", ir.Bool)
				b.Output("y", ops.Cond(b, take, []ir.Value{x, i}, branch, good)[0])
			})
			s, values := open(t, g, plan.WebGPU()), someValues(g)
			for _, taken := range []int64{0, 1} {
				for _, last := range []int64{1, 7} {
					values["i"].I[2], values["take"].I[0] = last, taken
					want, wrong := ir.Eval(g, values, ir.EvalOptions{Reference: true})
					got, err := s.Run("run", values)
					if errors.Is(err, ir.ErrIndex) != errors.Is(wrong, ir.ErrIndex) {
						t.Fatalf("taken %d, index %d: the plan fails with %v, the reference with %v", taken, last, err, wrong)
					}
					if wrong != nil {
						continue
					}
					if diff := compare(got["y"], want[0], 1e-5); diff != "" {
						t.Errorf("taken %d, index %d: %s", taken, last, diff)
					}
				}
			}
		})
	}
}
