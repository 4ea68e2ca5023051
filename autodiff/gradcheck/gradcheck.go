// Package gradcheck checks the derivatives of a graph against finite differences and against each
// other.
//
//	err := gradcheck.Check(g, inputs, gradcheck.Options{Order: 2})
//
// The input is a graph and a point; the output is nil or an [Error] with the numbers that differ.
// [Check] compares three things: the forward derivative J·v, a finite difference of the outputs
// along v, and the adjoint identity ⟨w, J·v⟩ = ⟨Jᵀ·w, v⟩, which ties the reverse derivative to the
// forward one. For order 2 it checks the derivative graphs in the same way: forward and reverse
// over forward and reverse.
//
// # The step
//
// The difference is the central five-point formula
//
//	(8·(f(x+h·v) − f(x−h·v)) − (f(x+2h·v) − f(x−2h·v))) / 12h.
//
// Its truncation error is O(h⁴) and its rounding error O(ε/h), with ε = 2⁻⁵³ since the default
// evaluation is in float64. They are equal near h = ε^(1/5) ≈ 6e-4. The default step is 1e-4, where
// both are below 1e-11 for functions of moderate size; the difference does not cross a kink at a
// distance above 2e-4. The elements of v are random with magnitudes from 0.5 to 1. For an element x
// ≠ 0 they are scaled by |x|, limited to [0.01, 1], so that small numbers keep their sign.
package gradcheck

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// Mode is a set of derivatives to check.
type Mode uint8

// The modes; they can be combined with |.
const (
	Forward Mode = 1 << iota
	Reverse
)

// Options are the options of [Check]. The zero value checks first-order derivatives in both modes,
// by all ports with derivatives.
type Options struct {
	// Order is 1 or 2; 0 means 1.
	Order int
	// Modes are the derivatives to check; 0 means both.
	Modes Mode
	// Wrt names the ports to differentiate by; none means all ports of a floating element type.
	Wrt []string
	// Eps is the step h of the differences; 0 means 1e-4.
	Eps float64
	// Tol is the tolerance, relative to the largest magnitude in the comparison or 1, whichever is
	// larger; 0 means 1e-6.
	Tol float64
	// Seed seeds the random directions.
	Seed uint64
	// Evaluate computes the outputs of a graph, in order. Nil uses the reference implementation of
	// the ops in float64. For a device, choose Eps and Tol for its precision.
	Evaluate func(g *ir.Graph, in map[string]*ir.Array) ([]*ir.Array, error)
}

// Error reports two numbers that differ by more than the tolerance.
type Error struct {
	Check        string // "jvp against differences" or "vjp against jvp"
	Path         string // the transforms that were applied, as in "jvp of vjp of f"
	Port, Output string // "" for all together
	Element      int    // of the output, in row-major order; -1 for a sum over all
	Got, Want    float64
	Tol          float64
}

// Error names the check, the port and the output, and gives both numbers.
func (e *Error) Error() string {
	where := ""
	if e.Output != "" {
		where = fmt.Sprintf(" of output %q", e.Output)
		if e.Element >= 0 {
			where += fmt.Sprintf(" element %d", e.Element)
		}
	}
	if e.Port != "" {
		where += fmt.Sprintf(" by %q", e.Port)
	}
	return fmt.Sprintf("gradcheck: %s: %s%s: got %v, want %v (tolerance %v)", e.Path, e.Check, where, e.Got, e.Want, e.Tol)
}

// Check compares the derivatives of g at a point with finite differences and with each other.
// inputs holds a value for each port. The error is an [*Error] if numbers differ, of kind [ir.ErrName] for a port without a value, of kind
// [ir.ErrDType] for a graph with complex ports, and otherwise that of a transform or of the
// evaluation.
func Check(g *ir.Graph, inputs map[string]*ir.Array, o Options) error {
	if err := g.NotNil(); err != nil {
		return err
	}
	o = o.withDefaults()
	if len(o.Wrt) == 0 {
		for _, p := range g.Ports() {
			if hasReals(p.Value) {
				o.Wrt = append(o.Wrt, p.Name)
			}
		}
	}
	for _, p := range g.Ports() {
		if p.Value.DType().IsComplex() {
			return ir.DTypef("gradcheck: port %q is %s", p.Name, p.Value.Type())
		}
	}
	for _, p := range g.Ports() {
		if inputs[p.Name] == nil {
			return ir.Errorf(ir.ErrName, "gradcheck: %s %q has no value: it must be in inputs", p.Kind, p.Name)
		}
	}
	c := &checker{options: o, rng: rand.New(rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15))}
	return c.check(g, inputs, o.Wrt, o.Order, g.Name())
}

func (o Options) withDefaults() Options {
	if o.Order == 0 {
		o.Order = 1
	}
	if o.Modes == 0 {
		o.Modes = Forward | Reverse
	}
	if o.Eps == 0 {
		o.Eps = 1e-4
	}
	if o.Tol == 0 {
		o.Tol = 1e-6
	}
	if o.Evaluate == nil {
		o.Evaluate = func(g *ir.Graph, in map[string]*ir.Array) ([]*ir.Array, error) {
			return ir.Eval(g, in, ir.EvalOptions{Reference: true})
		}
	}
	return o
}

type checker struct {
	options Options
	rng     *rand.Rand
}

// check compares the derivatives of g by the ports in wrt. path names the transforms that g came
// from.
func (c *checker) check(g *ir.Graph, in map[string]*ir.Array, wrt []string, order int, path string) error {
	if len(wrt) == 0 {
		return nil
	}
	forward, err := newDerivative(g, wrt, autodiff.JVP)
	if err != nil {
		return err
	}
	p := &point{checker: c, graph: g, in: in, wrt: wrt, path: path}
	if err := p.checkForward(forward); err != nil {
		return err
	}
	var reverse *derivative
	if c.options.Modes&Reverse != 0 {
		if reverse, err = newDerivative(g, wrt, autodiff.VJP); err != nil {
			return err
		}
		if err := p.checkReverse(reverse); err != nil {
			return err
		}
	}
	if order < 2 {
		return nil
	}
	if c.options.Modes&Forward != 0 {
		if err := p.checkHigher(forward, order-1, "jvp of "+path); err != nil {
			return err
		}
	}
	if reverse != nil {
		return p.checkHigher(reverse, order-1, "vjp of "+path)
	}
	return nil
}

// point is a graph and the point at which its derivatives are checked.
type point struct {
	*checker
	graph *ir.Graph
	in    map[string]*ir.Array
	wrt   []string
	path  string
	// By index in wrt: a direction that moves only that port, and the forward derivative of each
	// output along it.
	directions []*ir.Array
	forward    [][]*ir.Array
}

// checkForward compares J·v with a difference along v, element by element, one port at a time so
// that an error can name it.
func (p *point) checkForward(d *derivative) error {
	for i, port := range p.wrt {
		v := p.direction(p.in[port])
		tangents := make([]*ir.Array, len(p.wrt))
		tangents[i] = v
		got, err := d.evaluate(p.checker, p.in, tangents)
		if err != nil {
			return err
		}
		want, err := p.difference(port, v)
		if err != nil {
			return err
		}
		for k, output := range d.outputs {
			if err := p.compare(got[k].F, want[k], port, output); err != nil {
				return err
			}
		}
		p.directions, p.forward = append(p.directions, v), append(p.forward, got)
	}
	return nil
}

func (p *point) compare(got, want []float64, port, output string) error {
	tol := p.options.Tol
	for _, x := range want {
		tol = math.Max(tol, p.options.Tol*math.Abs(x))
	}
	for i, x := range got {
		if !(math.Abs(x-want[i]) <= tol) {
			return &Error{"jvp against differences", p.path, port, output, i, x, want[i], tol}
		}
	}
	return nil
}

// difference returns the finite difference of the floating outputs along v.
func (p *point) difference(port string, v *ir.Array) ([][]float64, error) {
	h := p.options.Eps
	var sum [][]float64
	for _, s := range []struct{ at, weight float64 }{{h, 8}, {-h, -8}, {2 * h, -1}, {-2 * h, 1}} {
		in := maps.Clone(p.in)
		in[port] = addScaled(p.in[port], v, s.at)
		out, err := p.options.Evaluate(p.graph, in)
		if err != nil {
			return nil, err
		}
		k := 0
		for i, o := range p.graph.Outputs() {
			if !isChecked(o) {
				continue
			}
			if k == len(sum) {
				sum = append(sum, make([]float64, out[i].Len()))
			}
			for j, x := range out[i].F {
				sum[k][j] += s.weight * x / (12 * h)
			}
			k++
		}
	}
	return sum, nil
}

// checkReverse compares ⟨w, J·v⟩ with ⟨Jᵀ·w, v⟩ for a random w, for each pair of an output and a
// port, so that errors do not cancel in a sum.
func (p *point) checkReverse(d *derivative) error {
	for k, output := range d.outputs {
		w := p.random(d.added[k].Value.Type())
		cotangents := make([]*ir.Array, len(d.outputs))
		cotangents[k] = w
		back, err := d.evaluate(p.checker, p.in, cotangents)
		if err != nil {
			return err
		}
		for i, port := range p.wrt {
			want, size := inner(w, p.forward[i][k])
			got, size2 := inner(back[i], p.directions[i])
			tol := p.options.Tol * max(1, size, size2)
			if !(math.Abs(got-want) <= tol) {
				return &Error{"vjp against jvp", p.path, port, output, -1, got, want, tol}
			}
		}
	}
	return nil
}

// checkHigher checks the derivatives of a derivative, also by its tangents or cotangents.
func (p *point) checkHigher(d *derivative, order int, path string) error {
	in, wrt := maps.Clone(p.in), slices.Clone(p.wrt)
	for _, port := range d.added {
		in[port.Name] = p.random(port.Value.Type())
		wrt = append(wrt, port.Name)
	}
	return p.check(d.graph, in, wrt, order, path)
}

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
	d.graph, err = ir.Transform(derived.Name(), func(b *ir.Builder) {
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
