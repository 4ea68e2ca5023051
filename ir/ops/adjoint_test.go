package ops_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/derive"
)

// movers are the ops whose rules are checked here on all their samples.
var movers = []ir.Op{
	"dot_general", "conv_general", "windows", "overlap_add", "gather", "scatter_add",
}

// eachSample runs f for each sample of the ops.
func eachSample(t *testing.T, names []ir.Op, f func(t *testing.T, d *ir.Def, s ir.Sample)) {
	for _, op := range names {
		d, ok := ir.Lookup(op)
		if !ok {
			t.Fatalf("there is no op %q", op)
		}
		if len(d.Samples()) == 0 {
			t.Errorf("%s has no samples", op)
		}
		for _, s := range d.Samples() {
			t.Run(string(op)+"/"+s.Name, func(t *testing.T) { f(t, d, s) })
		}
	}
}

// nodeGraph is a graph of one node.
func nodeGraph(t *testing.T, d *ir.Def, s ir.Sample) *ir.Graph {
	t.Helper()
	g, err := ir.Build("node", func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Input("x"+strconv.Itoa(i), a.DType, a.Type().Shape...)
		}
		for i, v := range b.AddNode(d.Op, s.Attrs, s.Subs, in...) {
			b.Output("y"+strconv.Itoa(i), v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run evaluates a graph in float64 on arrays in the order of its ports.
func run(t *testing.T, g *ir.Graph, in []*ir.Array) []*ir.Array {
	t.Helper()
	named := map[string]*ir.Array{}
	for i, p := range g.Ports() {
		named[p.Name] = in[i]
	}
	out, err := ir.Eval(g, named, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// noise fills an array of a type with numbers that look random.
func noise(t ir.Type, seed uint64) *ir.Array {
	dims, _ := t.Shape.Ints()
	a := ir.NewArray(t.DType, dims...)
	for i := range a.F {
		seed = seed*6364136223846793005 + 1442695040888963407
		a.F[i] = float64(int64(seed>>11)) / (1 << 52)
		a.F[i] -= 1
	}
	return a
}

func inner(x, y *ir.Array) float64 {
	sum := 0.0
	for i := range x.F {
		sum += x.F[i] * y.F[i]
	}
	return sum
}

// TestTransposesAreAdjoint checks ⟨J t, c⟩ = ⟨t, Jᵀ c⟩ for each operand of each
// sample by itself.
func TestTransposesAreAdjoint(t *testing.T) {
	eachSample(t, movers, func(t *testing.T, d *ir.Def, s ir.Sample) {
		g := nodeGraph(t, d, s)
		for i, x := range s.In {
			if !x.DType.IsFloat() {
				continue
			}
			if err := adjoint(t, g, s.In, i); err != nil {
				t.Errorf("operand %d: %v", i, err)
			}
		}
	})
}

func adjoint(t *testing.T, g *ir.Graph, in []*ir.Array, operand int) error {
	t.Helper()
	tangentType := in[operand].Type()
	forward, err := ir.Build("forward", func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		values, tangents := portValues(g, m), make([]ir.Value, len(g.Ports()))
		tangents[operand] = b.Input("t", tangentType.DType, tangentType.Shape...)
		_, tout := derive.JVP(b, g, values, tangents)
		b.Output("t", tout[0])
	})
	if err != nil {
		return err
	}
	linear := make([]bool, len(forward.Ports()))
	linear[len(linear)-1] = true
	outType := forward.Outputs()[0].Value.Type()
	backward, err := ir.Build("backward", func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		c := b.Input("c", outType.DType, outType.Shape...)
		back := derive.Transpose(b, forward, linear, append(portValues(g, m), ir.Value{}), []ir.Value{c})
		b.Output("t", back[len(back)-1])
	})
	if err != nil {
		return err
	}
	tan, cot := noise(tangentType, 1), noise(outType, 2)
	jt := run(t, forward, append(append([]*ir.Array(nil), in...), tan))[0]
	jc := run(t, backward, append(append([]*ir.Array(nil), in...), cot))[0]
	if !jc.Type().Equal(tangentType) {
		return fmt.Errorf("the cotangent is %s, not %s", jc.Type(), tangentType)
	}
	if a, b := inner(jt, cot), inner(tan, jc); math.Abs(a-b) > 1e-10*(1+math.Abs(a)) {
		return fmt.Errorf("⟨J t, c⟩ = %v, ⟨t, Jᵀ c⟩ = %v", a, b)
	}
	return nil
}

func portValues(g *ir.Graph, m *ir.Mapping) []ir.Value {
	out := make([]ir.Value, len(g.Ports()))
	for i, p := range g.Ports() {
		out[i] = m.Get(p.Value)
	}
	return out
}
