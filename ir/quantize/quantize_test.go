package quantize_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/quantize"
)

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("model", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// mixed has a product with a transposed weight, a layer, a weight that products share, and parameters that stay: a table that
// is gathered from too, and one that is an output.
func mixed(t *testing.T) *ir.Graph {
	return build(t, func(b *ir.Builder) {
		x, ids := b.Input("x", ir.F32, ir.Dims(2, 3)...), b.Input("ids", ir.I32, ir.N(2))
		table, kept := b.Param("table", ir.F32, ir.Dims(4, 3)...), b.Param("kept", ir.F32, ir.Dims(3, 3)...)
		shared := b.Param("shared", ir.F32, ir.Dims(3, 3)...)
		x = ops.Add(b, x, ops.Embedding(b, table, ids))
		y := ops.MatMul(b, x, ops.Transpose(b, b.Param("turned", ir.F32, ir.Dims(3, 3)...), 1, 0))
		y = ops.Linear(b, y, b.Param("layer", ir.F32, ir.Dims(3, 3)...), b.Param("bias", ir.F32, ir.N(3)))
		y = ops.Add(b, ops.MatMul(b, y, shared), ops.MatMul(b, y, ops.Transpose(b, shared, 1, 0)))
		b.Output("y", ops.MatMul(b, ops.MatMul(b, y, kept), ops.Transpose(b, table, 1, 0)))
		b.Output("kept", kept)
	})
}

// values returns values for the ports of a graph, with channels of different sizes.
func values(g *ir.Graph) map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for k, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = ir.F32.Round(math.Sin(float64(7*i+k)) * float64(1+i%3))
		}
		in[p.Name] = a
	}
	return in
}

func eval(t *testing.T, g *ir.Graph, in map[string]*ir.Array) map[string]*ir.Array {
	t.Helper()
	list, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ir.Array{}
	for i, o := range g.Outputs() {
		out[o.Name] = list[i]
	}
	return out
}

// observed returns what rounds a graph, and the ranges of one run.
func observed(t *testing.T, g *ir.Graph, in map[string]*ir.Array) (q *quantize.Int8, low, high []float32) {
	t.Helper()
	q, err := quantize.New(g, quantize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := q.Observer()
	if err != nil {
		t.Fatal(err)
	}
	out := eval(t, o, in)
	for _, name := range []string{quantize.Low, quantize.High} {
		for i := range out[name].Len() {
			if x := float32(out[name].Float(i)); name == quantize.Low {
				low = append(low, x)
			} else {
				high = append(high, x)
			}
		}
	}
	return q, low, high
}

// TestGraph finds the weights that products alone read, and rounds them by channel: each number is within half a step.
func TestGraph(t *testing.T) {
	g := mixed(t)
	in := values(g)
	q, low, high := observed(t, g, in)
	if names := q.Weights(); !slices.Equal(names, []string{"layer", "shared", "turned"}) {
		t.Fatalf("weights %q", names)
	}
	if err := q.Observe(low, high); err != nil {
		t.Fatal(err)
	}
	rounded, numbers, err := q.Graph(func(name string) (*ir.Array, error) { return in[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(i int) int{
		"turned": func(i int) int { return i / 3 }, "layer": func(i int) int { return i % 3 }, "shared": func(int) int { return 0 },
	} {
		var largest [3]float64
		for i, x := range in[name].F {
			largest[of(i)] = max(largest[of(i)], math.Abs(x))
		}
		for i, x := range in[name].F {
			if step := largest[of(i)] / 127; !(math.Abs(x-step*float64(numbers[name].I[i])) <= 0.5001*step) {
				t.Errorf("%s[%d]: %v is %d steps of %v", name, i, x, numbers[name].I[i], step)
			}
		}
	}
	exact := eval(t, g, in)["y"]
	maps.Copy(in, numbers)
	difference, size := 0.0, 0.0
	for i, x := range eval(t, rounded, in)["y"].F {
		difference, size = difference+(x-exact.F[i])*(x-exact.F[i]), size+exact.F[i]*exact.F[i]
	}
	if r := math.Sqrt(difference / size); r > 0.02 || r == 0 {
		t.Errorf("the results move by %v of their size", r)
	}
}

// TestPoint rounds what a product reads to 255 steps of its range with 0, and beyond it to its ends.
func TestPoint(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		one := b.Param("one", ir.F32, ir.Dims(1, 1)...)
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(5, 1)...), one))
	})
	q, _, _ := observed(t, g, values(g))
	for _, r := range [][2]float32{{1, 2}, {0.5, 3}} { // from 0 to 3
		if err := q.Observe(r[:1], r[1:]); err != nil {
			t.Fatal(err)
		}
	}
	one := ir.Floats(ir.F32, []float64{127}, 1, 1)
	rounded, numbers, err := q.Graph(func(string) (*ir.Array, error) { return one, nil })
	if err != nil {
		t.Fatal(err)
	}
	step := 3.0 / 255
	x := []float64{-1, 0, 1.4 * step, 3, 4}
	y := eval(t, rounded, map[string]*ir.Array{"x": ir.Floats(ir.F32, x, 5, 1), "one": numbers["one"]})["y"]
	for i, want := range []float64{0, 0, step, 3, 3} {
		if !(math.Abs(y.F[i]-127*want) <= 1e-4) {
			t.Errorf("%v is rounded to %v, not %v", x[i], y.F[i]/127, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	product := build(t, func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(2, 2)...), b.Param("w", ir.F32, ir.Dims(2, 2)...)))
	})
	fresh := func() *quantize.Int8 {
		q, _, _ := observed(t, product, values(product))
		return q
	}
	made := func(values ...float64) error {
		q := fresh()
		if err := q.Observe([]float32{-1}, []float32{1}); err != nil {
			return err
		}
		_, _, err := q.Graph(func(string) (*ir.Array, error) { return ir.Floats(ir.F32, values, 2, len(values)/2), nil })
		return err
	}
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		kind error
		f    func() error
	}{
		"no graph": {ir.ErrGraph, func() error { _, err := quantize.New(nil, quantize.Options{}); return err }},
		"all skipped": {ir.ErrUnsupported, func() error {
			_, err := quantize.New(product, quantize.Options{Skip: func(string) bool { return true }})
			return err
		}},
		"a name that is taken": {ir.ErrName, func() error {
			_, err := quantize.New(build(t, func(b *ir.Builder) { b.Output(quantize.Low, b.Input("x", ir.F32)) }), quantize.Options{})
			return err
		}},
		"another length":   {ir.ErrShape, func() error { return fresh().Observe(nil, []float32{1}) }},
		"NaN":              {ir.ErrAttr, func() error { return fresh().Observe([]float32{float32(math.NaN())}, []float32{1}) }},
		"nothing observed": {ir.ErrUnsupported, func() error { _, _, err := fresh().Graph(nil); return err }},
		"no weights": {ir.ErrAttr, func() error {
			q := fresh()
			if err := q.Observe([]float32{-1}, []float32{1}); err != nil {
				return err
			}
			_, _, err := q.Graph(nil)
			return err
		}},
		"another shape":      {ir.ErrShape, func() error { return made(1, 2) }},
		"an infinite weight": {ir.ErrAttr, func() error { return made(1, 2, math.Inf(1), 4) }},
		"a weight without data": {lost, func() error {
			q := fresh()
			err := q.Observe([]float32{-1}, []float32{1})
			if err == nil {
				_, _, err = q.Graph(func(string) (*ir.Array, error) { return nil, lost })
			}
			return err
		}},
	} {
		if err := c.f(); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}
