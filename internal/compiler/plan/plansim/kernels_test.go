package plansim_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest/ownop"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// run compiles a graph of one entry for the simulator and runs it.
func runGraph(t *testing.T, inputs map[string]*ir.Array, f func(b *ir.Builder)) (*plansim.Program, map[string]*ir.Array) {
	t.Helper()
	g := schedtest.Build(t, f)
	s := opened(t, plan.WebGPU(), g)
	out, err := s.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

// An operand or result of such an op may be a literal, be computed where it is read,
// be a slice of a loop, or be a state: its kernels have whole arrays only.
func TestOpKernelsHaveDenseOperands(t *testing.T) {
	x := ir.Floats(ir.F32, []float64{1, 2, 6, 1, 0, 5, 4, 4, 4}, 3, 3)
	s, out := runGraph(t, map[string]*ir.Array{"x": x}, func(b *ir.Builder) {
		in := b.Input("x", ir.F32, ir.Dims(3, 3)...)
		state := b.State("sum", ir.F32, ir.N(3))
		carries, ys := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{state}, Xs: []ir.Value{in},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				y := ownop.Centered(b, xs[0])
				return []ir.Value{ownop.Centered(b, ops.Add(b, carries[0], ops.Exp(b, y)))}, []ir.Value{y}
			},
		})
		b.SetState("sum", ownop.Centered(b, carries[0]))
		b.Output("rows", ys[0])
		b.Output("literal", ownop.Centered(b, ops.Ones(b, ir.F32, ir.N(3))))
		b.Output("computed", ownop.Centered(b, ops.Mul(b, in, in)))
	})
	want := map[string][]float64{
		"rows":     {-2, -1, 3, -1, -2, 3, 0, 0, 0},
		"literal":  {0, 0, 0},
		"computed": {1 - 115./9, 4 - 115./9, 36 - 115./9, 1 - 115./9, -115. / 9, 25 - 115./9, 16 - 115./9, 16 - 115./9, 16 - 115./9},
	}
	for name, w := range want {
		for i := range w {
			if got := out[name].F[i]; !(math.Abs(got-w[i]) <= 1e-5) {
				t.Errorf("%s: element %d is %g, not %g", name, i, got, w[i])
			}
		}
	}
	sum, err := s.Get("sum")
	if err != nil {
		t.Fatal(err)
	}
	e := math.Exp
	first := []float64{e(-2) + e(-1), e(-1) + e(-2), 2 * e(3)}
	mean := (first[0] + first[1] + first[2]) / 3
	for i := range first {
		if w := first[i] - mean; !(math.Abs(sum.F[i]-w) <= 1e-4) {
			t.Errorf("the state's element %d is %g, not %g", i, sum.F[i], w)
		}
	}
}

// Equal nodes share their kernels, as those of equal layers do.
func TestKernelsOfEqualNodesAreOnce(t *testing.T) {
	s, _ := runGraph(t, map[string]*ir.Array{"x": ir.NewArray(ir.F32, 2, 700)}, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 700)...)
		for range 5 {
			x = ownop.Centered(b, x)
		}
		b.Output("y", x)
	})
	if n := len(s.Plan().Kernels); n != 2 {
		t.Errorf("five equal nodes have %d kernels, not 2", n)
	}
	if n := launchesOf(s.Plan().Entries[0].Steps); n != 10 {
		t.Errorf("five nodes of two kernels are %d launches", n)
	}
}

// fitted registers an op with the kernels that f derives from a correct one.
func fitted(t *testing.T, name ir.Op, f func(a *ir.Algorithm)) error {
	t.Helper()
	d, _ := ir.Lookup(ownop.Op)
	own := *d
	own.Op, own.Samples = name, nil
	own.Lower = &ir.KernelsLowering{Kernels: func(n *ir.Node, caps loop.Caps) *ir.Algorithm {
		a := d.Lower.(*ir.KernelsLowering).Kernels(n, caps)
		f(a)
		return a
	}}
	if err := ir.Register(&own); err != nil {
		t.Fatal(err)
	}
	g := schedtest.Build(t, func(b *ir.Builder) {
		b.Output("y", b.Add1(name, nil, b.Input("x", ir.F32, ir.Dims(2, 700)...)))
	})
	_, err := plan.Compile(moduleOf(t, g), plan.WebGPU(), plansim.Text)
	return err
}

func TestKernelsThatDoNotFitTheirOpAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  ir.Op
		words string
		kind  error
		f     func(a *ir.Algorithm)
	}{
		{"fit.operand", "unknown memory 1", ir.ErrDef, func(a *ir.Algorithm) { a.Launches[0].Arrays[0].Number = 1 }},
		{"fit.scratch", "unknown memory 0", ir.ErrDef, func(a *ir.Algorithm) { a.Scratch = nil }},
		{"fit.length", "array \"sums\"", ir.ErrDef, func(a *ir.Algorithm) { a.Scratch[0] = ir.TypeOf(ir.F32, ir.N(3)) }},
		{"fit.dtype", "array \"sums\"", ir.ErrDef, func(a *ir.Algorithm) { a.Scratch[0] = ir.TypeOf(ir.I32, ir.N(2)) }},
		{"fit.fewer", "more storage arrays", ir.ErrDef, func(a *ir.Algorithm) { a.Launches[1].Arrays = a.Launches[1].Arrays[:2] }},
		{"fit.writes", "writes operand 0", ir.ErrDef, func(a *ir.Algorithm) { a.Launches[0].Kernel.Arrays[0].Access = loop.ReadWrite }},
		{"fit.counter", "counters", ir.ErrDef, func(a *ir.Algorithm) { a.Launches[0].Kernel.Counters = 1 }},
		{"fit.none", "launch 1 has no kernel", ir.ErrDef, func(a *ir.Algorithm) { a.Launches[1].Kernel = nil }},
		{"fit.threads", "no kernels for this target", ir.ErrUnsupported, func(a *ir.Algorithm) { a.Launches[0].Kernel.Workgroup[0] = 512 }},
	} {
		err := fitted(t, c.name, c.f)
		var e *ir.OpError
		if !errors.As(err, &e) || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), string(c.name)) {
			t.Errorf("%s: %v, not of kind %v with %q", c.name, err, c.kind, c.words)
		}
	}
}
