package sched_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// run compiles a graph, runs it once in the simulator on random inputs, and compares every
// output with the reference implementation. It returns the names of the kernels and routines in
// launch order.
func run(t *testing.T, g *ir.Graph) []string {
	t.Helper()
	return runOn(t, g, plan.WebGPU(), 0)
}

// runOn is run for a target. If bound is not 0, inputs are integers of smaller absolute value.
func runOn(t *testing.T, g *ir.Graph, target plan.Target, whole int) []string {
	t.Helper()
	tolerance := func(d ir.DType) float64 {
		if whole == 0 && d.IsFloat() && d.Size() == 2 {
			return irtest.LooseToleranceFor(d).Rel // weights and results are rounded
		}
		return 1e-4
	}
	return runWithin(t, g, target, whole, tolerance)
}

// runWithin is runOn with a tolerance for each type.
func runWithin(t *testing.T, g *ir.Graph, target plan.Target, whole int, tolerance func(d ir.DType) float64) []string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	inputs := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			if a.F[i] = rng.NormFloat64(); whole > 0 {
				a.F[i] = float64(rng.IntN(2*whole-1) - whole + 1)
			}
		}
		for i := range a.I {
			a.I[i] = rng.Int64N(3)
		}
		a.Round()
		inputs[p.Name] = a
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plansim.Open(m, target)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Ports() {
		if p.Kind != ir.InputPort {
			if err := s.Set(p.Name, inputs[p.Name]); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := s.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		a := got[o.Name]
		if o.State {
			if a, err = s.Get(o.Name); err != nil {
				t.Fatal(err)
			}
		}
		most := tolerance(a.DType)
		for j := range want[i].Len() {
			x, y := a.Float(j), want[i].Float(j)
			if math.Abs(x-y) > most*math.Max(1, math.Abs(y)) {
				t.Fatalf("%s: element %d is %v, not %v", o.Name, j, x, y)
			}
		}
	}
	var names []string
	var count func(steps []plan.Step)
	count = func(steps []plan.Step) {
		for _, step := range steps {
			switch step := step.(type) {
			case *plan.Dispatch:
				names = append(names, s.Plan().Kernels[step.Kernel].Name)
			case *plan.Call:
				names = append(names, "call "+s.Plan().Routines[step.Routine].Name())
			case *plan.Repeat:
				count(step.Steps)
			}
		}
	}
	count(s.Plan().Entries[0].Steps)
	return names
}

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("g", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// kernelsOf returns the kernels of a graph on a target.
func kernelsOf(t *testing.T, g *ir.Graph, target plan.Target) (kernels []*loop.Kernel) {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	_, printed, err := plan.CompileKernels(m, target, plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range printed {
		kernels = append(kernels, k.Kernel)
	}
	return kernels
}

func TestContractionsInEveryTile(t *testing.T) {
	shapes := []struct{ m, n, k, parts int }{{130, 70, 33, 1}, {130, 70, 53, 3}, {128, 128, 16, 1}, {5, 200, 9, 1}, {64, 64, 1, 1}, {20, 20, 96, 2}}
	for i := range sched.TileSchedules(1) {
		for _, s := range shapes {
			for layout, behind := range map[string]func(*ir.Builder, ir.Value) ir.Value{"nn": ops.Relu, "tn": ops.Gelu, "nt": ops.Relu, "tt": ops.Gelu} {
				t.Run(fmt.Sprintf("tile %d, %dx%dx%d/%d %s", i, s.m, s.n, s.k, s.parts, layout), func(t *testing.T) {
					g := build(t, func(b *ir.Builder) { matmulBias(b, s.m, s.n, s.k, layout, behind) })
					names := runOn(t, g, contractionsBy(t, g, plan.WebGPU(), sched.TileSchedules(s.parts)[i]), 0)
					if want := min(s.parts, 2); len(names) != want {
						t.Errorf("kernels %v, want %d", names, want)
					}
				})
			}
		}
	}
}

// TestSampleContractionsInEveryTile also covers batches, groups, strides, dilations and axes in
// all orders.
func TestSampleContractionsInEveryTile(t *testing.T) {
	for _, op := range []ir.Op{ops.OpDotGeneral, ops.OpConvGeneral} {
		d, _ := ir.Lookup(op)
		for _, s := range d.Samples() {
			if s.In[0].DType != ir.F32 {
				continue
			}
			g := build(t, func(b *ir.Builder) {
				x, y := b.Port(ir.InputPort, "x", s.In[0].Type()), b.Port(ir.InputPort, "y", s.In[1].Type())
				z := b.Add1(op, s.Attrs, x, y)
				b.Output("z", ops.Sub(b, ops.ConstLike(b, z, 2), z))
			})
			for i, tile := range sched.TileSchedules(1) {
				t.Run(fmt.Sprintf("%s %s tile %d", op, s.Name, i), func(t *testing.T) {
					runOn(t, g, contractionsBy(t, g, plan.WebGPU(), tile), 0)
				})
			}
			t.Run(fmt.Sprintf("%s %s as a reduction", op, s.Name), func(t *testing.T) {
				runOn(t, g, asReductions(t, g, plan.WebGPU()), 0)
			})
		}
	}
}

// matmulBias is a matrix product with a bias and a function. Either operand may be stored
// transposed. The epilogue of relu is stored from registers, that of gelu through workgroup
// memory.
func matmulBias(b *ir.Builder, m, n, k int, layout string, behind func(*ir.Builder, ir.Value) ir.Value) {
	dims := func(t byte, r, c int) []ir.Dim {
		if t == 't' {
			r, c = c, r
		}
		return ir.Dims(r, c)
	}
	x := b.Input("x", ir.F32, dims(layout[0], m, k)...)
	y := b.Input("y", ir.F32, dims(layout[1], k, n)...)
	if layout[0] == 't' {
		x = ops.Transpose(b, x, 1, 0)
	}
	if layout[1] == 't' {
		y = ops.Transpose(b, y, 1, 0)
	}
	bias := b.Param("bias", ir.F32, ir.N(n))
	b.Output("z", behind(b, ops.Add(b, ops.MatMul(b, x, y), bias)))
}

func TestWhatFusesIntoHowManyKernels(t *testing.T) {
	x := func(b *ir.Builder, dims ...int) ir.Value { return b.Input("x", ir.F32, ir.Dims(dims...)...) }
	cases := []struct {
		name    string
		kernels int
		f       func(b *ir.Builder)
	}{
		{"softmax of rows", 1, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, x(b, 70, 300), -1)) }},
		{"softmax of short rows", 1, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, x(b, 130, 10), -1)) }},
		{"softmax of columns", 1, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, x(b, 50, 70), 0)) }},
		{"log softmax of one long row", 1, func(b *ir.Builder) { b.Output("y", ops.LogSoftmax(b, x(b, 4000), 0)) }},
		{"elementwise chain", 1, func(b *ir.Builder) {
			v := x(b, 300)
			b.Output("y", ops.Tanh(b, ops.Mul(b, ops.Add(b, v, v), ops.Exp(b, v))))
		}},
		{"transpose of a sum", 1, func(b *ir.Builder) {
			v := x(b, 30, 20)
			b.Output("y", ops.Transpose(b, ops.Add(b, v, v), 1, 0))
		}},
		{"what needs two elements of an exponential at once", 2, func(b *ir.Builder) {
			e := ops.Exp(b, x(b, 30, 30))
			b.Output("y", ops.Sub(b, ops.Transpose(b, e, 1, 0), e))
		}},
		{"sum of everything", 2, func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, x(b, 100, 1000))) }},
		{"sum over the first axis", 1, func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, x(b, 40, 70), 0)) }},
		{"two sums of the rows of a square", 1, func(b *ir.Builder) {
			v := x(b, 70, 70)
			b.Output("sum", ops.ReduceSum(b, v, 1))
			b.Output("squares", ops.ReduceSum(b, ops.Mul(b, v, v), 1))
		}},
		{"sums of the rows and of the columns of a square", 2, func(b *ir.Builder) {
			v := x(b, 70, 70)
			b.Output("rows", ops.ReduceSum(b, v, 1))
			b.Output("columns", ops.ReduceSum(b, v, 0))
		}},
		{"max pool", 1, func(b *ir.Builder) {
			b.Output("y", ops.MaxPool(b, x(b, 2, 9, 9, 3), ops.PoolAttrs{Sizes: []int{2, 2}}))
		}},
		{"states swapped", 2, func(b *ir.Builder) {
			p, q := b.State("p", ir.F32, ir.N(5)), b.State("q", ir.F32, ir.N(5))
			b.SetState("p", q)
			b.SetState("q", p)
		}},
		{"state read out of place", 2, func(b *ir.Builder) {
			p := b.State("p", ir.F32, ir.N(300))
			b.SetState("p", ops.Add(b, ops.Reverse(b, p, 0), p))
		}},
		{"state that is only written", 1, func(b *ir.Builder) {
			b.State("p", ir.F32, ir.N(70), ir.N(30))
			b.SetState("p", ops.Softmax(b, x(b, 70, 30), -1))
		}},
		{"state in place", 1, func(b *ir.Builder) {
			p := b.State("p", ir.F32, ir.N(300))
			b.SetState("p", ops.Add(b, x(b, 300), p))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if names := run(t, build(t, c.f)); len(names) != c.kernels {
				t.Errorf("kernels %v, want %d", names, c.kernels)
			}
		})
	}
}

// TestContractionsInParts covers split-K in batches, in a loop's body, and into a state that is
// updated in place.
func TestContractionsInParts(t *testing.T) {
	for name, f := range map[string]func(b *ir.Builder){
		"batches": func(b *ir.Builder) {
			x, y := b.Input("x", ir.F32, ir.Dims(2, 5, 70)...), b.Input("y", ir.F32, ir.Dims(2, 70, 6)...)
			b.Output("z", ops.Tanh(b, ops.MatMul(b, x, y)))
		},
		"a loop": func(b *ir.Builder) {
			w := b.Input("w", ir.F32, ir.Dims(48, 48)...)
			carries, ys := ops.Scan(b, ops.Loop{
				Consts: []ir.Value{w}, Carries: []ir.Value{b.Input("h", ir.F32, ir.Dims(4, 48)...)},
				Xs: []ir.Value{b.Input("x", ir.F32, ir.Dims(3, 4, 48)...)},
				Body: func(b *ir.Builder, w, h, x []ir.Value) (next, ys []ir.Value) {
					after := ops.Tanh(b, ops.Add(b, ops.MatMul(b, h[0], w[0]), x[0]))
					return []ir.Value{after}, []ir.Value{ops.MatMul(b, x[0], w[0])}
				},
			})
			b.Output("h_out", carries[0])
			b.Output("ys", ys[0])
		},
		"a state": func(b *ir.Builder) {
			s := b.State("s", ir.F32, ir.Dims(7, 9)...)
			x, y := b.Input("x", ir.F32, ir.Dims(7, 65)...), b.Input("y", ir.F32, ir.Dims(65, 9)...)
			b.SetState("s", ops.Add(b, s, ops.MatMul(b, x, y)))
		},
	} {
		for i, tile := range sched.TileSchedules(3) {
			t.Run(fmt.Sprintf("%s, tile %d", name, i), func(t *testing.T) {
				g := build(t, f)
				names := runOn(t, g, contractionsBy(t, g, plan.WebGPU(), tile), 0)
				if !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "_parts") }) {
					t.Errorf("no kernel for parts among %v", names)
				}
			})
		}
	}
}

// TestPartsAreAddedUpByVectors has enough results for the smallest device to add up split-K
// parts four results at a time, with a bias along the rows. More than maxPartials parts are
// reduced instead, and so are those with a bias for each row, which has no vectors.
func TestPartsAreAddedUpByVectors(t *testing.T) {
	target := plan.WebGPU()
	target.Multiprocessors = 1
	for _, c := range []struct {
		name  string
		parts int
		bias  []int // the axis of the results that it lies along
		by    string
	}{
		{"few parts", 3, []int{1}, "contract_"},
		{"some parts", 11, []int{1}, "contract_"},
		{"many parts", 17, []int{1}, "reduce_"},
		{"a bias of each row", 3, []int{0}, "reduce_"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				x, y := b.Input("x", ir.F32, ir.Dims(36, 136)...), b.Input("y", ir.F32, ir.Dims(136, 32)...)
				z := ops.MatMul(b, x, y)
				bias := b.Input("bias", ir.F32, z.Dim(c.bias[0]))
				b.Output("z", ops.Tanh(b, ops.Add(b, z, ops.BroadcastInDim(b, bias, z.Shape(), c.bias))))
			})
			names := runOn(t, g, contractionsBy(t, g, target, sched.TileSchedules(c.parts)[2]), 0)
			if len(names) != 2 || !strings.HasPrefix(names[1], c.by) || !strings.HasSuffix(names[0], "_parts") {
				t.Errorf("kernels %v, of which the second one should be %s...", names, c.by)
			}
		})
	}
}
