package ir_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// counter is y = w·x and n ← n + y.
func counter(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("counter", func(b *ir.Builder) {
		x, w, n := b.Input("x", ir.F64), b.Param("w", ir.F64), b.State("n", ir.F64)
		y := ops.Mul(b, w, x)
		b.Output("y", y)
		b.SetState("n", ops.Add(b, n, y))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCallPutsAGraphIntoAnother(t *testing.T) {
	inner := counter(t)
	g, err := ir.Build("g", func(b *ir.Builder) {
		w := b.Param("w", ir.F64)
		first := b.Call(inner, map[string]ir.Value{"x": b.Input("a", ir.F64)})
		second := b.Call(inner, map[string]ir.Value{"x": first["y"], "w": ops.Neg(b, w), "n": w})
		b.Output("y", second["y"])
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"a": ir.Float(ir.F64, 3), "w": ir.Float(ir.F64, 5), "n": ir.Float(ir.F64, 1)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		want := map[string]float64{"n": 16, "y": -75}[o.Name]
		if out[i].F[0] != want {
			t.Errorf("%s is %v, want %v", o.Name, out[i].F[0], want)
		}
	}
}

func TestCallRefusesInvalidOperands(t *testing.T) {
	inner := counter(t)
	for name, c := range map[string]struct {
		call func(b *ir.Builder)
		want error
	}{
		"no graph":      {func(b *ir.Builder) { b.Call(nil, nil) }, ir.ErrGraph},
		"missing input": {func(b *ir.Builder) { b.Call(inner, nil) }, ir.ErrName},
		"unknown port": {func(b *ir.Builder) {
			b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64), "z": b.Input("z", ir.F64)})
		}, ir.ErrName},
		"shape":    {func(b *ir.Builder) { b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64, ir.N(2))}) }, ir.ErrShape},
		"type":     {func(b *ir.Builder) { b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F32)}) }, ir.ErrDType},
		"no value": {func(b *ir.Builder) { b.Call(inner, map[string]ir.Value{"x": {}}) }, ir.ErrGraph},
		"own parameter of another type": {func(b *ir.Builder) {
			b.Param("w", ir.F32)
			b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64)})
		}, ir.ErrDType},
	} {
		if _, err := ir.Build("g", c.call); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.want)
		}
	}
}

// A function with parameters that is called twice gets an error that names the place of the first
// declarations, and how to share them or to name the second.
func TestParametersThatAreDeclaredTwice(t *testing.T) {
	layer := func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Mul(b, x, b.Param("l0/w", ir.F32, ir.N(3)))
	}
	_, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		b.Output("y", layer(b, layer(b, x)))
	})
	var at *ir.OpError
	if !errors.Is(err, ir.ErrName) || !errors.As(err, &at) || at.Pos.Line == 0 {
		t.Fatalf("error %v", err)
	}
	first := regexp.MustCompile(`"l0/w" is declared twice, first as param f32\[3\], at .*call_test.go:\d+: to share it, .*scope`)
	if !first.MatchString(err.Error()) {
		t.Errorf("error %v", err)
	}
	if _, err := ir.Build("g", func(b *ir.Builder) {
		x := layer(b, b.Input("x", ir.F32, ir.N(3)))
		b.Scope("second", func() { x = layer(b, x) })
		b.Output("y", x)
	}); err != nil {
		t.Error(err)
	}
}

// affine is x·w + c for rows of any number, with sizes that follow from theirs.
func affine(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("affine", func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.Sym("n"), ir.N(2))
		w := b.Param("w", ir.F64, ir.N(2))
		y := ops.ReduceSum(b, ops.Mul(b, x, ops.BroadcastTo(b, w, ir.Shape{ir.Sym("n"), ir.N(2)})), 1)
		b.Output("y", ops.Mul(b, y, b.Input("scale", ir.F64, ir.Sym("n"))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A graph with symbols is called with constant sizes, twice with different ones, and
// derivatives and vmap go through.
func TestCallBindsSymbols(t *testing.T) {
	inner := affine(t)
	g, err := ir.Build("g", func(b *ir.Builder) {
		rows := func(name string, n int) map[string]ir.Value {
			return map[string]ir.Value{"x": b.Input(name, ir.F64, ir.N(n), ir.N(2)), "scale": b.Input(name+"scale", ir.F64, ir.N(n))}
		}
		a, c := b.Call(inner, rows("a", 3)), b.Call(inner, rows("c", 2))
		b.Output("loss", ops.Add(b, ops.ReduceSum(b, a["y"]), ops.ReduceSum(b, c["y"])))
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := autodiff.Grad(g, "loss")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Array{
		"a": ir.Floats(ir.F64, []float64{1, 2, 3, 4, 5, 6}, 3, 2), "ascale": ir.Floats(ir.F64, []float64{1, 10, 100}, 3),
		"c": ir.Floats(ir.F64, []float64{7, 8, 9, 10}, 2, 2), "cscale": ir.Floats(ir.F64, []float64{1, 2}, 2), "w": ir.Floats(ir.F64, []float64{1, 1}, 2),
	}
	out, err := ir.Eval(d, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// By hand: Σ scale·x over the rows of both calls.
	if got := out[len(out)-1].F; got[0] != 1+30+500+7+18 || got[1] != 2+40+600+8+20 {
		t.Errorf("the gradient of w is %v", got)
	}
	v, err := autodiff.Vmap(g, ir.N(2), autodiff.VmapOptions{In: map[string]int{"w": 0}})
	if err != nil {
		t.Fatal(err)
	}
	in["w"] = ir.Floats(ir.F64, []float64{1, 1, 0, 1}, 2, 2)
	if out, err = ir.Eval(v, in, ir.EvalOptions{}); err != nil || out[0].F[0] != 556+670 || out[0].F[1] != 670 {
		t.Errorf("over two w: %v, %v", out, err)
	}
}

func TestCallRefusesSizesThatContradict(t *testing.T) {
	inner := affine(t)
	for want, shapes := range map[string][2][]ir.Dim{
		`size n of graph "affine" is 3 in "x" and 4 in "scale"`: {ir.Dims(3, 2), ir.Dims(4)},
		`"x" of graph "affine" is f64[3,2], f64[3,5] is given`:  {ir.Dims(3, 5), ir.Dims(3)},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64, shapes[0]...), "scale": b.Input("scale", ir.F64, shapes[1]...)})
		})
		if !errors.Is(err, ir.ErrShape) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %s", err, want)
		}
	}
}
