package autodiff_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func portNames(g *ir.Graph) []string {
	var out []string
	for _, p := range g.Ports() {
		out = append(out, p.Kind.String()+" "+p.Name)
	}
	return out
}

func outputNames(g *ir.Graph) []string {
	var out []string
	for _, o := range g.Outputs() {
		name := o.Name
		if o.State {
			name = "state " + name
		}
		out = append(out, name)
	}
	return out
}

// counted is a graph with all kinds of port and output: a loss, a count of runs
// and a result without a derivative.
func counted(t *testing.T) *ir.Graph {
	return build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F64, ir.N(2)), b.Param("w", ir.F64, ir.N(2))
		n, i := b.State("n", ir.F64), b.Input("i", ir.I32)
		y := ops.Mul(b, x, w)
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
		b.Output("y", y)
		b.Output("j", ops.Neg(b, i))
		b.SetState("n", ops.Add(b, n, ops.ReduceSum(b, y)))
	})
}

func TestTransformsNameAddedPorts(t *testing.T) {
	g := counted(t)
	ports := portNames(g)
	with := func(names ...string) []string { return append(slices.Clone(ports), names...) }
	for _, c := range []struct {
		name           string
		apply          func() (*ir.Graph, error)
		ports, outputs []string
	}{
		{
			"jvp", func() (*ir.Graph, error) { return autodiff.JVP(g, "w") },
			with("input tangent/w"),
			[]string{"loss", "y", "j", "state n", "tangent/loss", "tangent/y"},
		},
		{
			"jvp by all", func() (*ir.Graph, error) { return autodiff.JVP(g) },
			with("input tangent/x", "input tangent/w", "input tangent/n"),
			[]string{"loss", "y", "j", "state n", "tangent/loss", "tangent/y"},
		},
		{
			"vjp", func() (*ir.Graph, error) { return autodiff.VJP(g, "w", "n") },
			with("input cotangent/loss", "input cotangent/y"),
			[]string{"loss", "y", "j", "state n", "grad/w", "grad/n"},
		},
		{
			"grad", func() (*ir.Graph, error) { return autodiff.Grad(g, "loss") },
			ports,
			[]string{"state n", "grad/w"},
		},
		{
			"value and grad", func() (*ir.Graph, error) { return autodiff.ValueAndGrad(g, "loss", "w", "x") },
			ports,
			[]string{"loss", "y", "j", "state n", "grad/w", "grad/x"},
		},
		{
			"hvp", func() (*ir.Graph, error) { return autodiff.HVP(g, "loss") },
			with("input tangent/w"),
			[]string{"loss", "y", "j", "state n", "grad/w", "hvp/w"},
		},
		{"vmap", func() (*ir.Graph, error) {
			return autodiff.Vmap(g, ir.N(3), autodiff.VmapOptions{In: map[string]int{"x": 0, "n": 0}})
		}, ports, outputNames(g)},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.apply()
			must(t, d, err)
			if !slices.Equal(portNames(d), c.ports) {
				t.Errorf("ports %q, want %q", portNames(d), c.ports)
			}
			if !slices.Equal(outputNames(d), c.outputs) {
				t.Errorf("outputs %q, want %q", outputNames(d), c.outputs)
			}
		})
	}
}

func TestNestedTransformsNumberTheirNames(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64)
		b.Output("y", ops.Sin(b, x))
	})
	j, err := autodiff.JVP(g)
	jj, err := autodiff.JVP(must(t, j, err))
	must(t, jj, err)
	if want := []string{"input x", "input tangent/x", "input tangent2/x", "input tangent2/tangent/x"}; !slices.Equal(portNames(jj), want) {
		t.Errorf("ports %q, want %q", portNames(jj), want)
	}
	got := eval(t, jj, values{"x": num(0.3), "tangent/x": num(2), "tangent2/x": num(5), "tangent2/tangent/x": num(7)})
	checkFloats(t, "second tangent", got["tangent2/tangent/y"], []float64{-math.Sin(0.3)*2*5 + math.Cos(0.3)*7}, 1e-14)
	h, err := autodiff.HVP(must(t, j, nil), "tangent/y", "x")
	must(t, h, err)
	if want := []string{"y", "tangent/y", "grad/x", "hvp/x"}; !slices.Equal(outputNames(h), want) {
		t.Errorf("outputs %q, want %q", outputNames(h), want)
	}
}

func TestMissingGradientIsAnErrorThatNamesTheOpInTheWay(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, idle, i := b.Param("x", ir.F64, ir.N(3)), b.Param("idle", ir.F64), b.Input("i", ir.F64, ir.N(3))
		b.Label("cut")
		steps := ops.StopGradient(b, ops.Exp(b, x))
		b.Label("")
		hits := ops.Convert(b, ops.Gt(b, x, i), ir.F64)
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, ops.Mul(b, steps, hits), i)))
		b.Output("other", ops.Add(b, idle, ops.ReduceSum(b, x)))
	})
	_, err := autodiff.Grad(g, "loss", "x")
	var missing *autodiff.NoPathError
	if !errors.As(err, &missing) || !errors.Is(err, autodiff.ErrNoPath) {
		t.Fatalf("error %v, want a NoPathError", err)
	}
	var ends []string
	for _, e := range missing.Ends {
		ends = append(ends, string(e.Op))
	}
	slices.Sort(ends)
	if missing.Port != "x" || missing.Output != "loss" || !slices.Equal(ends, []string{"gt", "stop_gradient"}) {
		t.Errorf("error %+v", missing)
	}
	for _, part := range []string{`"loss"`, `"x"`, "stop_gradient", "gt", "graph_test.go:"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the text %q does not have %q", err, part)
		}
	}
	_, err = autodiff.Grad(g, "loss", "idle")
	if !errors.As(err, &missing) || missing.Port != "idle" || len(missing.Ends) != 0 {
		t.Errorf("error %v, want one that says that the loss does not depend on idle", err)
	}
	z, err := autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss", Wrt: []string{"x", "idle"}, Missing: autodiff.MissingIsZero})
	got := eval(t, must(t, z, err), values{"x": vec(1, 2, 3), "idle": num(1), "i": vec(1, 1, 1)})
	checkFloats(t, "grad/x", got["grad/x"], []float64{0, 0, 0}, 0)
	checkFloats(t, "grad/idle", got["grad/idle"], []float64{0}, 0)
}

func TestTransformsRefuseBadInput(t *testing.T) {
	g := counted(t)
	batched := func(o autodiff.VmapOptions, size ir.Dim) func() (*ir.Graph, error) {
		return func() (*ir.Graph, error) { return autodiff.Vmap(g, size, o) }
	}
	for _, c := range []struct {
		name  string
		apply func() (*ir.Graph, error)
		want  error
	}{
		{"jvp by an unknown port", func() (*ir.Graph, error) { return autodiff.JVP(g, "z") }, ir.ErrName},
		{"jvp by a port twice", func() (*ir.Graph, error) { return autodiff.JVP(g, "x", "x") }, ir.ErrName},
		{"jvp by an integer", func() (*ir.Graph, error) { return autodiff.JVP(g, "i") }, ir.ErrDType},
		{"vjp by an unknown port", func() (*ir.Graph, error) { return autodiff.VJP(g, "loss") }, ir.ErrName},
		{"grad of an unknown output", func() (*ir.Graph, error) { return autodiff.Grad(g, "n") }, ir.ErrName},
		{"grad of a vector", func() (*ir.Graph, error) { return autodiff.Grad(g, "y") }, ir.ErrShape},
		{"grad of an integer", func() (*ir.Graph, error) { return autodiff.Grad(g, "j") }, ir.ErrDType},
		{"hvp of a vector", func() (*ir.Graph, error) { return autodiff.HVP(g, "y") }, ir.ErrShape},
		{"nth order by a vector", func() (*ir.Graph, error) { return autodiff.NthOrder(g, "loss", "x", 2) }, ir.ErrShape},
		{"order zero", func() (*ir.Graph, error) { return autodiff.NthOrder(g, "loss", "n", 0) }, ir.ErrAttr},
		{"nth order of an unknown output", func() (*ir.Graph, error) { return autodiff.NthOrder(g, "z", "n", 1) }, ir.ErrName},
		{"vmap of an unknown port", batched(autodiff.VmapOptions{In: map[string]int{"z": 0}}, ir.N(2)), ir.ErrName},
		{"vmap of an unknown output", batched(autodiff.VmapOptions{Out: map[string]int{"n": 0}}, ir.N(2)), ir.ErrName},
		{"vmap at an axis that is not there", batched(autodiff.VmapOptions{In: map[string]int{"x": 2}}, ir.N(2)), ir.ErrAttr},
		{"vmap of a negative size", batched(autodiff.VmapOptions{}, ir.N(-1)), ir.ErrAttr},
		{"vmap with a shared state that depends on the batch", batched(autodiff.VmapOptions{In: map[string]int{"x": 0}}, ir.N(2)), ir.ErrShape},
		{
			"vmap with a shared output that depends on the batch",
			batched(autodiff.VmapOptions{In: map[string]int{"x": 0, "n": 0}, Shared: []string{"loss"}}, ir.N(2)), ir.ErrShape,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.apply()
			var e *autodiff.Error
			if !errors.Is(err, c.want) || !errors.As(err, &e) {
				t.Errorf("error %v, want an autodiff.Error of kind %q", err, c.want)
			}
		})
	}
}

func TestVmapPlacesOutputAxis(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w, n := b.Input("x", ir.F64, ir.N(2)), b.Param("w", ir.F64, ir.N(2)), b.State("n", ir.F64)
		b.Output("y", ops.Mul(b, x, w))
		b.Output("same", ops.Neg(b, w))
		b.Output("alone", ops.Exp(b, w))
		b.SetState("n", ops.Add(b, n, ops.ReduceSum(b, x)))
	})
	v, err := autodiff.Vmap(g, ir.N(3), autodiff.VmapOptions{
		In: map[string]int{"x": -1, "n": 0}, Out: map[string]int{"y": 1}, Shared: []string{"alone"},
	})
	got := eval(t, must(t, v, err), values{
		"x": ir.Floats(ir.F64, []float64{1, 2, 3, 4, 5, 6}, 2, 3), "w": vec(10, 100), "n": vec(0, 1, 2),
	})
	checkFloats(t, "y", got["y"], []float64{10, 20, 30, 400, 500, 600}, 0)
	checkFloats(t, "same", got["same"], []float64{-10, -100, -10, -100, -10, -100}, 0)
	checkFloats(t, "n", got["n"], []float64{5, 8, 11}, 0)
	for name, want := range map[string][]int{"y": {2, 3}, "same": {3, 2}, "alone": {2}, "n": {3}} {
		if !slices.Equal(got[name].Dims, want) {
			t.Errorf("%s has shape %v, want %v", name, got[name].Dims, want)
		}
	}
}

func TestVmapOfGradIsGradOfEachElement(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F64, ir.N(4)), b.Param("w", ir.F64, ir.N(4), ir.N(4))
		h := ops.Tanh(b, ops.MatMul(b, x, w))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, h, x)))
	})
	d, err := autodiff.Grad(g, "loss", "x", "w")
	v, err := autodiff.Vmap(must(t, d, err), ir.N(5), autodiff.VmapOptions{In: map[string]int{"x": 0}})
	x, w := wave(1, 5, 4), wave(2, 4, 4)
	all := eval(t, must(t, v, err), values{"x": x, "w": w})
	for k := range 5 {
		one := eval(t, d, values{"x": ir.Floats(ir.F64, x.F[4*k:4*k+4], 4), "w": w})
		checkFloats(t, "grad/x", ir.Floats(ir.F64, all["grad/x"].F[4*k:4*k+4], 4), one["grad/x"].F, 1e-14)
		checkFloats(t, "grad/w", ir.Floats(ir.F64, all["grad/w"].F[16*k:16*k+16], 4, 4), one["grad/w"].F, 1e-14)
	}
}

func fanInIsSummedInABalancedTree(t *testing.T) {
	// x is used 64 times: the longest chain of adds must grow with the logarithm.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64)
		var terms []ir.Value
		for i := range 64 {
			terms = append(terms, ops.Reshape(b, ops.Mul(b, ops.Sin(b, x), constant(b, float64(i))), ir.N(1)))
		}
		b.Output("y", ops.ReduceSum(b, ops.Concatenate(b, 0, terms...)))
	})
	d, err := autodiff.Grad(g, "y", "x")
	must(t, d, err)
	depth, longest := make([]int, len(d.Nodes())), 0
	for _, n := range d.Nodes() {
		for _, in := range n.Inputs() {
			depth[n.ID()] = max(depth[n.ID()], depth[in.Node().ID()])
		}
		if n.Op() == ops.OpAdd {
			depth[n.ID()]++
		}
		longest = max(longest, depth[n.ID()])
	}
	if longest != 6 {
		t.Errorf("the longest chain has %d adds, want 6", longest)
	}
	got := eval(t, d, values{"x": num(0.4)})
	checkFloats(t, "grad", got["grad/x"], []float64{math.Cos(0.4) * 63 * 32}, 1e-13)
}

func TestGradientGraphHasNoDeadForwardTangents(t *testing.T) {
	// Aux outputs have no cotangents, so their derivatives add no nodes.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64)
		b.Output("loss", ops.Mul(b, x, x))
		b.Output("aux", ops.Tan(b, ops.Exp(b, x)))
	})
	d, err := autodiff.ValueAndGrad(g, "loss", "x")
	must(t, d, err)
	for _, n := range d.Nodes() {
		if n.Op() == ops.OpMulZero && len(d.Uses()[n.ID()]) == 0 {
			used := false
			for _, o := range d.Outputs() {
				used = used || o.Value.Node() == n
			}
			if !used {
				t.Errorf("node %d (%s) is dead", n.ID(), n.Op())
			}
		}
	}
}

func TestGradcheckFindsAWrongDerivative(t *testing.T) {
	// gelu by tanh, taken as the exact gelu, has a wrong derivative by about
	// 1e-3; here the forward values of one are paired with the slope of the other.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(3))
		right, wrong := ops.Gelu(b, x), ops.GeluTanh(b, x)
		b.Output("y", ops.Add(b, ops.StopGradient(b, ops.Sub(b, right, wrong)), wrong))
	})
	err := gradcheck.Check(g, values{"x": vec(0.5, 1, 2)}, gradcheck.Options{})
	var e *gradcheck.Error
	if !errors.As(err, &e) || e.Port != "x" || e.Output != "y" || e.Check != "jvp against differences" {
		t.Errorf("error %v, want one that names x and y", err)
	}
}

func TestGradientOfAMatrixProductIsTwoProductsWithoutTransposes(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.N(4), ir.N(3)), b.Param("w", ir.F32, ir.N(3), ir.N(2))
		b.Output("y", ops.MatMul(b, x, w))
	})
	d, err := autodiff.VJP(g)
	for _, n := range must(t, d, err).Nodes() {
		if n.Op() != ir.OpPort && n.Op() != ops.OpDotGeneral {
			t.Errorf("there is a %s", n.Op())
		}
	}
}
