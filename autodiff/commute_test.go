package autodiff_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
)

// thirdDerivative is a graph of the third derivative of another along three directions.
type thirdDerivative struct {
	g, forward, reverse *ir.Graph
	// lenient treats values that are not finite as equal to anything.
	lenient bool
}

func newThirdDerivative(t *testing.T, g *ir.Graph) *thirdDerivative {
	t.Helper()
	d := &thirdDerivative{g: g, forward: g}
	for k := range 3 {
		if k == 2 {
			r, err := autodiff.VJPWith(d.forward, autodiff.Options{Wrt: floatPorts(g), Missing: autodiff.MissingIsZero})
			d.reverse = must(t, r, err)
		}
		j, err := autodiff.JVP(d.forward)
		d.forward = must(t, j, err)
	}
	return d
}

func floatPorts(g *ir.Graph) []string {
	var out []string
	for _, p := range g.Ports() {
		if p.Value.DType().IsFloat() {
			out = append(out, p.Name)
		}
	}
	return out
}

// along gives the ports of a derivative the point and one direction for each level; the
// directions themselves do not move.
func along(g *ir.Graph, in values, directions ...values) values {
	out := maps.Clone(in)
	for level, direction := range directions {
		for name, v := range direction {
			out[autodiff.AtLevel(level+1, autodiff.TangentName(name))] = v
		}
	}
	for _, p := range g.Ports() {
		if out[p.Name] == nil {
			dims, _ := p.Value.Shape().Ints()
			out[p.Name] = ir.NewArray(p.Value.DType(), dims...)
		}
	}
	return onlyPorts(g, out)
}

// levelName is the name of the derivative of an output by the given number of levels.
func levelName(levels int, name string) string {
	for level := 1; level <= levels; level++ {
		name = autodiff.AtLevel(level, autodiff.TangentName(name))
	}
	return name
}

// check compares derivatives along three directions in all orders, and in reverse. It
// returns what differs.
func (d *thirdDerivative) check(t *testing.T, in values) string {
	t.Helper()
	var v [3]values
	for k := range v {
		v[k] = values{}
		for i, name := range floatPorts(d.g) {
			v[k][name] = waveLike(float64(1+3*k+7*i), in[name])
		}
	}
	var first values
	for _, p := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		got := eval(t, d.forward, along(d.forward, in, v[p[0]], v[p[1]], v[p[2]]))
		if first == nil {
			first = got
		}
		for _, o := range d.g.Outputs() {
			name := levelName(3, o.Name)
			if got[name] == nil {
				continue
			}
			if diff := d.difference(got[name].F, first[name].F); diff != "" {
				return fmt.Sprintf("third derivative of %s in the order %v: %s", o.Name, p, diff)
			}
			if second := levelName(2, o.Name); p == [3]int{1, 0, 2} {
				if diff := d.difference(got[second].F, first[second].F); diff != "" {
					return fmt.Sprintf("second derivative of %s in the other order: %s", o.Name, diff)
				}
			}
		}
	}
	return d.checkReverse(t, in, v, first)
}

// checkReverse compares ⟨c, D³f⟩ with ⟨∇⟨c, D²f⟩, w⟩.
func (d *thirdDerivative) checkReverse(t *testing.T, in values, v [3]values, third values) string {
	t.Helper()
	inputs := along(d.reverse, in, v[0], v[1])
	want := 0.0
	for i, o := range d.g.Outputs() {
		name := levelName(3, o.Name)
		if third[name] == nil {
			continue
		}
		c := waveLike(float64(20+i), third[name])
		inputs[autodiff.CotangentName(levelName(2, o.Name))] = c
		for k, x := range third[name].F {
			want += c.F[k] * x
		}
	}
	back, got := eval(t, d.reverse, inputs), 0.0
	for _, name := range floatPorts(d.g) {
		for k, x := range back[autodiff.GradName(name)].F {
			got += v[2][name].F[k] * x
		}
	}
	if diff := d.difference([]float64{got}, []float64{want}); diff != "" {
		return "in reverse: " + diff
	}
	return ""
}

// waveLike is [wave] of the type of an array.
func waveLike(seed float64, like *ir.Array) *ir.Array {
	out := ir.NewArray(like.DType, like.Dims...)
	copy(out.F, wave(seed, like.Dims...).F)
	return out
}

// difference compares numbers: two that are not finite count as equal, as sums of
// infinities in different orders are infinite or NaN.
func (d *thirdDerivative) difference(got, want []float64) string {
	size := 1.0
	for _, w := range want {
		if w-w == 0 {
			size = max(size, math.Abs(w))
		}
	}
	for i, w := range want {
		g, finite := got[i], 0
		for _, x := range []float64{got[i], w} {
			if x-x == 0 {
				finite++
			}
		}
		if finite == 0 || finite == 1 && d.lenient || math.Abs(g-w) <= 1e-8*size {
			continue
		}
		return fmt.Sprintf("[%d] is %v, not %v", i, g, w)
	}
	return ""
}
