package gradcheck

import (
	"maps"
	"math"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// derivative is a derived graph without the outputs of the original graph.
type derivative struct {
	graph   *ir.Graph
	added   []ir.Port // the tangent of each port, or the cotangent of each output
	outputs []string  // the outputs of the original graph that are checked
}

// hasReals reports whether a value has a floating element type with tangents.
func hasReals(v ir.Value) bool { return v.DType().IsFloat() && derive.Differentiable(v.DType()) }

// isChecked reports whether an output has a derivative to check.
func isChecked(o ir.Output) bool { return !o.State && hasReals(o.Value) }

// newDerivative transforms g and drops the original outputs.
func newDerivative(g *ir.Graph, wrt []string, transform func(*ir.Graph, ...string) (*ir.Graph, error)) (*derivative, error) {
	derived, err := transform(g, wrt...)
	if err != nil {
		return nil, err
	}
	d := &derivative{}
	for _, o := range g.Outputs() {
		if isChecked(o) {
			d.outputs = append(d.outputs, o.Name)
		}
	}
	d.graph, err = ir.Build(derived.Name(), func(b *ir.Builder) {
		in := make([]ir.Value, len(derived.Ports()))
		for i, p := range derived.Ports() {
			// A state becomes an input, since its update is not checked.
			in[i] = b.Port(ir.InputPort, p.Name, p.Value.Type())
		}
		out := b.Splice(derived, in)
		for i, o := range derived.Outputs() {
			if i >= len(g.Outputs()) {
				b.Output(o.Name, out[i])
			}
		}
	})
	if err == nil {
		d.added = d.graph.Ports()[len(g.Ports()):]
	}
	return d, err
}

// evaluate returns the outputs at the point in. extra holds tangents or cotangents by index, nil
// for zeros.
func (d *derivative) evaluate(c *checker, in map[string]*ir.Array, extra []*ir.Array) ([]*ir.Array, error) {
	all := maps.Clone(in)
	for i, p := range d.added {
		if all[p.Name] = extra[i]; extra[i] == nil {
			all[p.Name] = zeros(p.Value.Type())
		}
	}
	return c.options.Evaluate(d.graph, all)
}

// zeros returns zeros of a type of constant shape, as all types of an evaluated graph are.
func zeros(t ir.Type) *ir.Array {
	dims, _ := t.Shape.Ints()
	return ir.NewArray(t.DType, dims...)
}

// direction returns a random direction at a point, as the package documentation describes.
func (c *checker) direction(from *ir.Array) *ir.Array {
	v := ir.NewArray(from.DType, from.Dims...)
	for i, x := range from.F {
		v.F[i] = c.randomNumber()
		if x != 0 {
			v.F[i] *= max(0.01, min(1, math.Abs(x)))
		}
	}
	return v
}

// random returns an array of random numbers.
func (c *checker) random(t ir.Type) *ir.Array {
	a := zeros(t)
	for i := range a.F {
		a.F[i] = c.randomNumber()
	}
	return a
}

// randomNumber returns a random number of magnitude 0.5 to 1.
func (c *checker) randomNumber() float64 {
	x := 0.5 + c.rng.Float64()/2
	if c.rng.IntN(2) == 0 {
		return -x
	}
	return x
}

// addScaled returns x + h·v.
func addScaled(x, v *ir.Array, h float64) *ir.Array {
	out := x.Clone()
	for i := range out.F {
		out.F[i] += h * v.F[i]
	}
	return out
}

// inner returns the inner product and the sum of the magnitudes of its terms, to which the rounding
// error is relative.
func inner(a, b *ir.Array) (sum, size float64) {
	for i := range a.F {
		sum += a.F[i] * b.F[i]
		size += math.Abs(a.F[i] * b.F[i])
	}
	return sum, size
}
