package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
)

// part is a sample of an op in a graph with others.
type part struct {
	ir.Sample
	node *ir.Node
}

// sideBySide is how many samples there are in one module.
const sideBySide = 5

// opModules returns the modules of an op: their entry "forward" computes some of
// its samples, and the entry "vjp" of the first the gradient of one. There are
// none for an op without a sample that WebGPU can compute.
func opModules(op ir.Op) ([]Module, error) {
	d, _ := ir.Lookup(op)
	if d.Samples == nil {
		return nil, nil
	}
	samples := slices.DeleteFunc(d.Samples(), func(s ir.Sample) bool { return !computable(op, s) })
	var modules []Module
	for some := range slices.Chunk(samples, sideBySide) {
		name, entries := string(op), []ir.Entry(nil)
		if len(modules) > 0 {
			name += " " + strconv.Itoa(len(modules)+1)
		}
		g, forward, err := forwardCase(op, some)
		if err != nil {
			return nil, err
		}
		m := Module{Cases: []Case{*forward}}
		entries = append(entries, ir.Entry{Name: forward.Entry, Graph: g})
		if s, ok := sampleToDifferentiate(d, samples); ok && len(modules) == 0 {
			g, vjp, err := gradientCase(op, s)
			if err != nil {
				return nil, err
			}
			entries = append(entries, ir.Entry{Name: vjp.Entry, Graph: g})
			m.Cases = append(m.Cases, *vjp)
		}
		if m.Module, err = ir.NewModule(name, entries...); err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// computable reports whether all values of a sample are of types that every
// WebGPU device computes with.
func computable(op ir.Op, s ir.Sample) bool {
	g, _, err := irtest.SampleGraph(op, s)
	return err == nil && !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Types(), func(t ir.Type) bool {
			return t.DType == ir.F16 || t.DType.On(dtype.WGSL) != dtype.Arithmetic
		})
	})
}

// sampleGraph puts samples side by side. Operand i of sample k is the input
// "xk_i", result i its output "yk_i".
func sampleGraph(op ir.Op, samples []ir.Sample) (*ir.Graph, []part, map[string]*ir.Array, error) {
	inputs := map[string]*ir.Array{}
	var parts []part
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		for k, s := range samples {
			in := make([]ir.Value, len(s.In))
			for i, a := range s.In {
				name := fmt.Sprintf("x%d_%d", k, i)
				inputs[name] = a
				in[i] = b.Port(ir.InputPort, name, a.Type())
			}
			for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
				b.Output(fmt.Sprintf("y%d_%d", k, i), v)
				parts = append(parts, part{s, v.Node()})
			}
		}
	})
	return g, parts, inputs, err
}

// forwardCase returns the graph of samples side by side.
func forwardCase(op ir.Op, samples []ir.Sample) (*ir.Graph, *Case, error) {
	g, parts, inputs, err := sampleGraph(op, samples)
	if err != nil {
		return nil, nil, err
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		return nil, nil, err
	}
	run := Run{Inputs: inputs}
	for i, o := range g.Outputs() {
		p := parts[i]
		run.Want = append(run.Want, Result{
			Output: o.Name, About: p.Name, Array: want[i],
			Tolerance: irtest.SampleTolerance(p.node, p.Sample, want[i].DType),
			NonFinite: slices.ContainsFunc(append(slices.Clone(p.In), want[i]), hasNonFinite),
		})
	}
	return g, &Case{Name: string(op), Entry: "forward", Runs: []Run{run}}, nil
}

func hasNonFinite(a *ir.Array) bool {
	return slices.ContainsFunc(a.F, func(x float64) bool { return math.IsNaN(x) || math.IsInf(dtype.F32.Round(x), 0) })
}

// largestGradient is the number of elements up to which a sample is taken for
// the gradient.
const largestGradient = 400

// sampleToDifferentiate picks the largest sample that has a gradient everywhere.
func sampleToDifferentiate(d *ir.Def, samples []ir.Sample) (best ir.Sample, ok bool) {
	size := -1
	for _, s := range samples {
		n, float := 0, false
		for _, a := range s.In {
			n += a.Len()
			float = float || a.F != nil
		}
		finite := !slices.ContainsFunc(s.In, hasNonFinite)
		if d.NoGrad == "" && s.NoGrad == "" && float && finite && n > size && n <= largestGradient {
			best, size = s, n
		}
	}
	return best, size >= 0
}

// gradientCase returns the graph of a sample's results and their gradients along
// random cotangents.
func gradientCase(op ir.Op, s ir.Sample) (*ir.Graph, *Case, error) {
	g, _, inputs, err := sampleGraph(op, []ir.Sample{s})
	if err != nil {
		return nil, nil, err
	}
	if g, err = autodiff.VJP(g); err != nil {
		return nil, nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range g.Ports() {
		if inputs[p.Name] == nil {
			inputs[p.Name] = random(rng, p.Value.Type(), 1)
		}
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		return nil, nil, err
	}
	run := Run{Inputs: inputs}
	for i, o := range g.Outputs() {
		tol := irtest.LooseToleranceFor(want[i].DType)
		tol.Abs, tol.Rel = max(tol.Abs, s.Tol), max(tol.Rel, s.Tol)
		run.Want = append(run.Want, Result{
			Output: o.Name, About: s.Name, Array: want[i], Tolerance: tol, NonFinite: hasNonFinite(want[i]),
		})
	}
	return g, &Case{Name: "vjp " + string(op), Entry: "vjp", Runs: []Run{run}}, nil
}

// random draws floats from [-scale, scale) and integers from 0 to 3.
func random(rng *rand.Rand, t ir.Type, scale float64) *ir.Array {
	dims, _ := t.Shape.Ints()
	a := ir.NewArray(t.DType, dims...)
	for i := range a.F {
		a.F[i] = (2*rng.Float64() - 1) * scale
	}
	for i := range a.I {
		a.I[i] = int64(rng.IntN(4))
	}
	a.Round()
	return a
}
