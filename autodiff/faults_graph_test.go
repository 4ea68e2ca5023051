package autodiff_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func whatCutsAGradientIsNamed(t *testing.T) {
	for op, f := range map[ir.Op]func(b *ir.Builder, x ir.Value) ir.Value{
		ops.OpArgMax: func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 0) },
		ops.OpTopK: func(b *ir.Builder, x ir.Value) ir.Value {
			_, places := ops.TopK(b, x, ops.TopKAttrs{K: 1})
			return ops.ReduceSum(b, places)
		},
		ops.OpGt: func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.ReduceSum(b, ops.Convert(b, ops.Gt(b, x, x), ir.I32))
		},
	} {
		g := build(t, func(b *ir.Builder) {
			b.Output("y", ops.Convert(b, f(b, b.Input("x", ir.F64, ir.N(3))), ir.F64))
		})
		_, err := autodiff.Grad(g, "y", "x")
		var cut *autodiff.NoPathError
		if !errors.As(err, &cut) || !slices.ContainsFunc(cut.Ends, func(e autodiff.PathEnd) bool { return e.Op == op }) {
			t.Errorf("error %v does not name %s", err, op)
		}
	}
	largest := gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value {
		v, _ := ops.TopK(b, in[0], ops.TopKAttrs{K: 2})
		return v
	}, vec(1, 5, 3))
	checkFloats(t, "the values of top_k", largest[0], []float64{0, 1, 1}, 0)
}

// symbolicSizesHaveDerivatives compares with those of numbers.
func symbolicSizesHaveDerivatives(t *testing.T) {
	const n = 4
	gradient := func(size ir.Dim) *ir.Graph {
		g := build(t, func(b *ir.Builder) {
			x, w := b.Input("x", ir.F64, size), b.Param("w", ir.F64, size, ir.N(3))
			a := b.Param("a", ir.F64, size, ir.N(3), ir.N(3))
			y := ops.Concatenate(b, 0, ops.Exp(b, ops.MatMul(b, x, w)), ops.SliceAxis(b, x, 0, ir.N(1), size.Sub(ir.N(1))))
			solved := ops.Solve(b, a, ops.ExpandDims(b, w, -1), ops.SolveAttrs{})
			b.Output("y", ops.Add(b, ops.Mean(b, ops.Mul(b, y, y)), ops.Mean(b, ops.Softmax(b, solved, 1))))
		})
		d, err := autodiff.Grad(g, "y", "x", "w", "a")
		return must(t, d, err)
	}
	a := wave(3, n, 3, 3)
	for i := range n * 3 {
		a.F[i*3+i%3] += 3
	}
	in := values{"x": wave(1, n), "w": wave(2, n, 3), "a": a}
	bound, err := gradient(ir.Sym("n")).Bind(map[string]int{"n": n})
	want, got := eval(t, gradient(ir.N(n)), in), eval(t, must(t, bound, err), in)
	for name, x := range want {
		checkFloats(t, name, got[name], x.F, 1e-14)
		if name != "grad/a" && magnitude(x) < 1e-3 {
			t.Errorf("%s is 0", name)
		}
	}
}

func badInputIsAnErrorWithItsPlace(t *testing.T) {
	scalar := build(t, func(b *ir.Builder) { b.Output("y", b.Input("x", ir.F64)) })
	failing := func(f func(b *ir.Builder, x ir.Value)) func() error {
		return func() error {
			_, err := ir.Build("f", func(b *ir.Builder) { f(b, b.Input("x", ir.F64, ir.N(3))) })
			return err
		}
	}
	of := func(f func() (*ir.Graph, error)) func() error {
		return func() error { _, err := f(); return err }
	}
	for name, c := range map[string]struct {
		call   func() error
		kind   error
		placed bool
	}{
		"a product of shapes that do not fit": {failing(func(b *ir.Builder, x ir.Value) {
			ops.MatMul(b, x, ops.Ones(b, ir.F64, ir.N(4)))
		}), ir.ErrShape, true},
		"an op that is not there": {failing(func(b *ir.Builder, x ir.Value) { b.Add1("no_such_op", nil, x) }), ir.ErrName, true},
		"a module without results": {func() error {
			_, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: build(t, func(b *ir.Builder) { b.Input("x", ir.F64) })})
			return err
		}, ir.ErrGraph, false},
		"a literal of another size": {failing(func(b *ir.Builder, _ ir.Value) {
			b.Output("y", ops.Literal(b, ir.Floats(ir.F64, []float64{1, 2}, 3)))
		}), nil, false},
		"a gradient of no graph":      {of(func() (*ir.Graph, error) { return autodiff.Grad(nil, "y") }), ir.ErrGraph, false},
		"a gradient of nothing":       {of(func() (*ir.Graph, error) { return autodiff.Grad(scalar, "z") }), ir.ErrName, false},
		"a gradient by nothing":       {of(func() (*ir.Graph, error) { return autodiff.Grad(scalar, "y", "w") }), ir.ErrName, false},
		"training of no parameter":    {of(func() (*ir.Graph, error) { return optim.Step(scalar, "loss", optim.Adam{}, optim.Options{}) }), ir.ErrName, false},
		"a device that is not there":  {func() error { _, err := rlx.Open("abacus"); return err }, ir.ErrName, false},
		"support of no known device":  {func() error { _, _, err := rlx.FirstUnsupported(scalar, "abacus"); return err }, ir.ErrName, false},
		"an initial value that lacks": {func() error { _, err := ir.Eval(scalar, nil, ir.EvalOptions{}); return err }, ir.ErrName, false},
	} {
		err := c.call()
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.kind)
		}
		if c.placed && !strings.Contains(err.Error(), "faults_graph_test.go:") {
			t.Errorf("%s: %v does not name this file", name, err)
		}
	}
}

func gradientsAreFoundByName(t *testing.T) {
	g := counted(t)
	plain, err := autodiff.Grad(g, "loss", "x", "w")
	if got, want := outputNames(must(t, plain, err)), []string{"state n", "grad/x", "grad/w"}; !slices.Equal(got, want) {
		t.Errorf("outputs %q, want %q", got, want)
	}
	all, err := autodiff.ValueAndGrad(g, "loss", "x")
	in := values{"x": vec(2, 3), "w": vec(5, 7), "n": num(0), "i": ir.Int(ir.I32, 1)}
	got := eval(t, must(t, all, err), in)
	checkFloats(t, "gradient", got[autodiff.GradName("x")], []float64{2 * 2 * 25, 2 * 3 * 49}, 0)
	checkFloats(t, "another result", got["y"], []float64{10, 21}, 0)
}

// whatADeviceLacksIsNamed checks that the error names the one node of two alike that needs two devices.
func whatADeviceLacksIsNamed(t *testing.T) {
	var wanted *ir.Node
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(4))
		y := ops.AllReduce(b, x, ops.MeshAttrs{MeshAxis: "data", Devices: 1}, "sum")
		y = ops.AllReduce(b, y, ops.MeshAttrs{MeshAxis: "data", Devices: 2}, "sum")
		wanted = y.Node()
		b.Output("y", ops.Neg(b, y))
	})
	m, err := ir.NewModule("m", ir.Entry{Name: "main", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	r, err := rlx.ReportOn(m, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if rows := r.Unsupported(); len(rows) != 1 || rows[0].Node.ID() != wanted.ID() || rows[0].Reason == "" {
		t.Errorf("unsupported are %v; want node %d", rows, wanted.ID())
	}
}

// optimizersKeepAndMoveTheirWeights takes a step of each: its graph has no inputs but
// those of the loss, and moves the weights otherwise than the others do.
func optimizersKeepAndMoveTheirWeights(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		w := b.Param("w", ir.F64, ir.Dims(2, 2)...)
		y := ops.MatMul(b, b.Input("x", ir.F64, ir.Dims(3, 2)...), w)
		b.Output("loss", ops.Mean(b, ops.Mul(b, y, y)))
	})
	in := values{"x": wave(1, 3, 2), "w": wave(2, 2, 2)}
	moved := map[float64]string{}
	for name, opt := range map[string]optim.Optimizer{
		"sgd": optim.SGD{}, "momentum": optim.SGD{Momentum: 0.9, Nesterov: true}, "adam": optim.Adam{}, "lion": optim.Lion{},
		"muon": optim.Muon{}, "adafactor": optim.Adafactor{}, "rmsprop": optim.RMSProp{}, "soap": optim.SOAP{Every: 1}, "lamb": optim.LAMB{},
	} {
		s, err := optim.Step(loss, "loss", opt, optim.Options{Schedule: optim.Constant(0.01)})
		step := must(t, s, err)
		at := values{}
		for _, p := range step.Ports() {
			dims, _ := p.Value.Shape().Ints()
			at[p.Name] = ir.NewArray(p.Value.DType(), dims...)
			if x := in[p.Name]; x != nil {
				at[p.Name] = x
			}
			if p.Kind == ir.InputPort && p.Name != "x" {
				t.Errorf("%s: %q is an input", name, p.Name)
			}
		}
		for range 2 { // the first step of some is that of others
			for output, x := range eval(t, step, at) {
				if at[output] != nil {
					at[output] = x
				}
			}
		}
		if at["w"].F[0] == in["w"].F[0] || moved[at["w"].F[0]] != "" {
			t.Errorf("%s moves its weights as %q does", name, moved[at["w"].F[0]])
		}
		moved[at["w"].F[0]] = name
	}
}

func indicesAreWholeNumbers(t *testing.T) {
	_, err := ir.Build("f", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		b.Output("y", ops.Take(b, x, b.Input("i", ir.F32, ir.N(2)), 0, ops.OutsideClip))
	})
	if !errors.Is(err, ir.ErrDType) {
		t.Errorf("indices of floats: error %v", err)
	}
	const place = 1<<24 + 1 // no f32
	g := build(t, func(b *ir.Builder) {
		i := ops.CheckIndex(b, b.Input("i", ir.I32, ir.N(1)), ir.N(place+1), "place")
		b.Output("y", ops.Add(b, i, ops.OnesLike(b, i)))
	})
	if got := eval(t, g, values{"i": ir.Ints(ir.I32, []int64{place}, 1)})["y"].I[0]; got != place+1 {
		t.Errorf("place %d is %d", place, got-1)
	}
}

func seedZeroIsASeed(t *testing.T) {
	draw := func(seed uint64) []int64 {
		g := build(t, func(b *ir.Builder) {
			b.Output("y", ops.SampleToken(b, ops.Key(b, seed), ops.Zeros(b, ir.F32, ir.Dims(16, 50)...), ops.SampleAttrs{Temperature: 1, TopP: 1}))
		})
		return eval(t, g, nil)["y"].I
	}
	if first := draw(0); !slices.Equal(first, draw(0)) || slices.Equal(first, draw(1)) {
		t.Errorf("the tokens of seed 0 are %v and %v, those of seed 1 %v", first, draw(0), draw(1))
	}
}
