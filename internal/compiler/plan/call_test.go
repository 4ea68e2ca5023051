package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
)

// calling is the plan of package plantest with an entry that calls a product of 2×2
// matrices: of inputs, into temporary memory.
func calling() *plan.Plan {
	p := plantest.Linear()
	square := routine.Layout{Row: 2}
	p.Routines = []routine.Routine{routine.Product{
		Operand: dtype.F32, Result: dtype.F32, Batch: 1, M: 2, N: 2, K: 2, Left: square, Right: square, Out: square, Workspace: 64,
	}}
	p.Entries = append(p.Entries, plan.Entry{Name: "multiply", Steps: []plan.Step{&plan.Call{Bindings: []plan.Binding{
		{Buffer: 1, Bytes: 16}, {Buffer: 1, Bytes: 16}, {Buffer: 3, Bytes: 64}, {Buffer: 3, Offset: 256, Bytes: 16},
	}}}})
	return p
}

func callOf(p *plan.Plan) *plan.Call { return p.Entries[len(p.Entries)-1].Steps[0].(*plan.Call) }

// callCases are changes of that plan, as those of [refused].
var callCases = []planCase{
	{"nothing", func(*plan.Plan) {}, 0, "", false},
	{"a routine that is not there", func(p *plan.Plan) { callOf(p).Routine = 1 }, 41, "no routine 1", false},
	{"a missing window", func(p *plan.Plan) { c := callOf(p); c.Bindings = c.Bindings[1:] }, 41, "3 windows for 4", false},
	{"a window that is too small", func(p *plan.Plan) { callOf(p).Bindings[1].Bytes = 12 }, 41, "12 bytes for an array of 16", false},
	{"a window outside", func(p *plan.Plan) { callOf(p).Bindings[0].Buffer = 9 }, 14, "no buffer 9", false},
	{"a window off the grid", func(p *plan.Plan) { callOf(p).Bindings[0].Offset = 16 }, 14, "multiple of 256", false},
	{"a product in an input", func(p *plan.Plan) { callOf(p).Bindings[3].Buffer = 1 }, 35, "a write to", false},
	{"a product in its workspace", func(p *plan.Plan) { callOf(p).Bindings[3].Offset = 0 }, 42, "windows 2 and 3 overlap", false},
	{"a hole", func(p *plan.Plan) { p.Routines[0] = nil }, 8, "missing", true},
}

func TestRulesOfCalls(t *testing.T) { rulesHold(t, calling, callCases) }

// rulesHold validates a plan with each of some changes.
func rulesHold(t *testing.T, made func() *plan.Plan, cases []planCase) {
	t.Helper()
	for _, c := range cases {
		p := made()
		c.change(p)
		err := plan.Validate(p)
		var format *plan.FormatError
		switch {
		case c.rule == 0 && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.rule != 0 && (!errors.As(err, &format) || format.Rule != c.rule || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: got %v, want rule %d with %q", c.what, err, c.rule, c.text)
		}
	}
}

func TestPlansWithCallsInFiles(t *testing.T) {
	b := readBack(t, calling())
	at := strings.Index(string(b), "product")
	b[at] = 'P'
	if _, err := plan.Decode(seal(b)); !errors.Is(err, plan.ErrVersion) || !strings.Contains(err.Error(), `"Product"`) {
		t.Errorf("a routine of another name: %v", err)
	}
	b[at] = 'p'
	section := strings.Index(string(b), "ROUT")
	b[section], b[section+4] = 'X', 0
	if _, err := plan.Decode(seal(b)); !errors.Is(err, plan.ErrVersion) || !strings.Contains(err.Error(), "kind 5") {
		t.Errorf("a call without routines: %v", err)
	}
}

// Under a condition everything is a kernel, which can be held back.
func TestRoutinesAreNotConditional(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(8, 8)...)
		below := func(b *ir.Builder, _, c []ir.Value) ir.Value {
			return ops.Lt(b, ops.ReduceSum(b, c[0]), ops.Const(b, ir.F32, 1e6))
		}
		out := ops.WhileLoop(b, ops.While{Carries: []ir.Value{ops.MatMul(b, x, x)}, MaxSteps: 3, Cond: below, Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
			return []ir.Value{ops.MatMul(b, c[0], c[0])}
		}})
		b.Output("y", out[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	target := plan.WebGPU()
	target.Products, target.ProductBytes = loop.AllProducts, 256
	p, err := plan.Compile(m, target, plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	var inside, outside int
	var count func(steps []plan.Step, n *int)
	count = func(steps []plan.Step, n *int) {
		for _, s := range steps {
			switch s := s.(type) {
			case *plan.Call:
				*n++
			case *plan.Repeat:
				count(s.Steps, &inside)
			}
		}
	}
	if count(p.Entries[0].Steps, &outside); outside != 1 || inside != 0 {
		t.Errorf("%d calls in the loop and %d before it, not 0 and 1", inside, outside)
	}
}
