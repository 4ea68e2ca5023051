package autodiff_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// noCondition is an output of [probe] that is none.
const noCondition = "none"

// probe returns a graph of the conditions of all choices (select, max, min, clamp) in the
// first derivative of g that hang on a value which is differentiated itself: those of
// the rule, and those of a composite's body. Its outputs are bool. Nil where there are
// none. Choices in the bodies of loops are not seen.
func probe(t *testing.T, g *ir.Graph) *ir.Graph {
	t.Helper()
	j, err := autodiff.JVP(g)
	must(t, j, err)
	depends := make([]bool, len(j.Nodes())) // on a port of g that has a derivative
	for _, p := range g.Ports() {
		at, _ := j.Port(p.Name)
		depends[at.Value.Node().ID()] = p.Value.DType().IsFloat()
	}
	found := 0
	out, err := ir.Build("conditions", func(b *ir.Builder) {
		m := ir.NewMapping(j)
		b.CopyPorts(j, m)
		for _, n := range j.Nodes() {
			if n.Op() == ir.OpPort {
				continue
			}
			for _, v := range n.Inputs() {
				depends[n.ID()] = depends[n.ID()] || depends[v.Node().ID()]
			}
			in := m.Inputs(n)
			m.SetAll(n, b.Copy(n, in))
			for _, c := range conditions(b, n, in, depends) {
				b.Output(strconv.Itoa(found), c)
				found++
			}
		}
		b.Output(noCondition, ops.Const(b, ir.Bool, 0)) // a graph has an output
	})
	must(t, out, err)
	if found == 0 {
		return nil
	}
	return out
}

// conditions returns the conditions of selects, as bool values.
func conditions(b *ir.Builder, n *ir.Node, in []ir.Value, depends []bool) []ir.Value {
	switch n.Op() {
	case ops.OpSelect:
		if depends[n.Input(0).Node().ID()] {
			return in[:1]
		}
	case ops.OpMax, ops.OpMin:
		if depends[n.ID()] && n.Types()[0].DType.IsFloat() {
			return []ir.Value{ops.Lt(b, in[0], in[1])}
		}
	case ops.OpClamp:
		if depends[n.ID()] && n.Types()[0].DType.IsFloat() {
			return []ir.Value{ops.Lt(b, in[0], in[1]), ops.Gt(b, in[0], in[2])}
		}
	}
	return nil
}

// guardPoints are points at which guards are likely to matter.
func guardPoints(in values) map[string]values {
	changed := func(f func(a *ir.Array)) values {
		out := values{}
		for name, x := range in {
			out[name] = x
			if x.F != nil {
				out[name] = x.Clone()
				f(out[name])
			}
		}
		return out
	}
	return map[string]values{
		"as it is": in,
		"zeros":    changed(func(a *ir.Array) { clear(a.F) }),
		"ones": changed(func(a *ir.Array) {
			for i := range a.F {
				a.F[i] = 1
			}
		}),
		"negated": changed(func(a *ir.Array) {
			for i := range a.F {
				a.F[i] = -a.F[i]
			}
		}),
		"large": changed(func(a *ir.Array) {
			for i := range a.F {
				a.F[i] *= 50
			}
		}),
		"masked": changed(func(a *ir.Array) {
			for i := 0; i < len(a.F); i += 3 {
				a.F[i] = math.Inf(-1)
			}
		}),
		"nothing": changed(func(a *ir.Array) {
			for i := range a.F {
				a.F[i] = math.Inf(-1)
			}
		}),
		"a zero and a tie": changed(func(a *ir.Array) {
			if n := len(a.F); n > 0 {
				a.F[0], a.F[n-1] = 0, a.F[n/2]
			}
		}),
	}
}

// guardSamples are the samples of an op that are small, at most six of them.
func guardSamples(d *ir.Def) []ir.Sample {
	var out []ir.Sample
	for _, s := range d.Samples() {
		if n := elements(s); n > 0 && n <= 60 && !isComplex(s) && inDoubles(s) && hasFloats(s) && len(out) < 12 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b ir.Sample) int { return elements(a) - elements(b) })
	return out
}

func hasFloats(s ir.Sample) bool {
	return slices.ContainsFunc(s.In, func(x *ir.Array) bool { return x.F != nil })
}

// oneWay are guarded ops with a condition that is the same at all points, and why.
var oneWay = map[ir.Op]string{
	"all_reduce":        "on one device every element is the largest",
	"xlogy":             "samples hold no NaN, which the guard lets through",
	"xlog1py":           "as xlogy",
	"kl_div":            "as xlogy",
	"cosine_similarity": "a norm that is just epsilon shares its derivative with it: as max does",
}

// minGuarded is a little less than how many ops have guards: fewer mean that the search
// for them is broken.
const minGuarded = 45

// TestDerivativesCommuteAtGuards looks for guards in the derivatives of all samples and
// takes second and third derivatives along three directions where these fall one way and
// the other: they are the same in all orders, forward and in reverse. A guard that
// hides a derivative gives 0 in one order and not in the other.
func TestDerivativesCommuteAtGuards(t *testing.T) {
	guarded := 0
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil || d.NoGrad != "" {
			continue
		}
		fell := map[string]int64{} // by condition: bit 0 for false, bit 1 for true
		for _, s := range guardSamples(d) {
			t.Run(string(op)+"/"+s.Name, func(t *testing.T) { checkGuards(t, op, s, fell) })
		}
		if len(fell) > 0 {
			guarded++
		}
		for condition, ways := range fell {
			if _, excused := oneWay[op]; ways != 3 && !excused {
				t.Errorf("%s: %s is the same at all points", op, condition)
			}
		}
	}
	if guarded < minGuarded {
		t.Errorf("only %d ops have guards", guarded)
	}
}

func checkGuards(t *testing.T, op ir.Op, s ir.Sample, fell map[string]int64) {
	g, in := sampleGraph(t, op, s)
	if _, err := autodiff.JVP(g); err != nil {
		return // of operands that have no derivative, with a reason that package ops asks for
	}
	conditions := probe(t, g)
	if conditions == nil {
		return
	}
	third := newThirdDerivative(t, g)
	for where, at := range guardPoints(in) {
		out := eval(t, conditions, along(conditions, at))
		for name, c := range out {
			for _, x := range c.I {
				if name != noCondition {
					fell[fmt.Sprintf("condition %s of %d", name, len(out)-1)] |= 1 << x
				}
			}
		}
		third.lenient = where == "masked" || where == "nothing"
		if diff := third.check(t, at); diff != "" {
			t.Errorf("%s: %s", where, diff)
		}
	}
}

// TestGuardHidingADerivativeIsFound checks the check by a power whose derivative by
// the base is 0 for an exponent of 0, also where it is differentiated by that.
func TestGuardHidingADerivativeIsFound(t *testing.T) {
	power := func(hides bool) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			in := []ir.Value{b.Input("x", ir.F64), b.Input("y", ir.F64)}
			b.Output("z", autodiff.CustomJVP(b, in, func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{ops.Pow(b, in[0], in[1])}
			}, func(b *ir.Builder, in, t []ir.Value) []ir.Value {
				x, y := in[0], in[1]
				byX := ops.Mul(b, y, ops.Pow(b, x, ops.Sub(b, y, ops.OnesLike(b, y))))
				if hides {
					byX = ops.Select(b, ops.Eq(b, y, ops.ZerosLike(b, y)), ops.ZerosLike(b, y), byX)
				}
				byY := ops.Mul(b, ops.Pow(b, x, y), ops.Log(b, x))
				return []ir.Value{ops.Add(b, ops.Mul(b, t[0], byX), ops.Mul(b, t[1], byY))}
			})[0])
		})
	}
	in := values{"x": num(2), "y": num(0)}
	for _, hides := range []bool{false, true} {
		if diff := newThirdDerivative(t, power(hides)).check(t, in); (diff != "") != hides {
			t.Errorf("hides %t: found %q", hides, diff)
		}
	}
}
