package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
)

// part is a sample in a graph with several.
type part struct {
	ir.Sample
	node *ir.Node
}

// samplesPerModule is the number of samples in a module.
const samplesPerModule = 5

// opModules returns the modules of an op: entry "forward" computes some of its samples, and
// entry "vjp" of the first module the gradient of one. An op without samples for WebGPU has
// none. Samples in f16 have modules of their own.
func opModules(op ir.Op) ([]Module, error) {
	d, _ := ir.Lookup(op)
	if d.Samples == nil {
		return nil, nil
	}
	var plain, half, parts []ir.Sample
	for _, s := range d.Samples() {
		switch ok, f16, complexNumbers := computable(op, s); {
		case ok && complexNumbers:
			parts = append(parts, s)
		case ok && f16:
			half = append(half, s)
		case ok:
			plain = append(plain, s)
		}
	}
	modules, err := sampleModules(d, string(op), plain)
	if err != nil {
		return nil, err
	}
	more, err := sampleModules(d, string(op)+" f16", half)
	for i := range more {
		more[i].F16 = true
	}
	if err != nil {
		return nil, err
	}
	byParts, err := sampleModules(d, string(op)+" complex", parts)
	return slices.Concat(modules, more, byParts), err
}

func sampleModules(d *ir.Def, name string, samples []ir.Sample) ([]Module, error) {
	var modules []Module
	for some := range slices.Chunk(samples, samplesPerModule) {
		g, forward, err := forwardCase(d.Op, name, some)
		if err != nil {
			return nil, err
		}
		m := Module{Cases: []Case{*forward}}
		entries := []ir.Entry{{Name: forward.Entry, Graph: g}}
		if s, ok := sampleToDifferentiate(d, samples); ok && len(modules) == 0 {
			g, vjp, err := gradientCase(d.Op, name, s)
			if err != nil {
				return nil, err
			}
			entries = append(entries, ir.Entry{Name: vjp.Entry, Graph: g})
			m.Cases = append(m.Cases, *vjp)
		}
		moduleName := name
		if len(modules) > 0 {
			moduleName += " " + strconv.Itoa(len(modules)+1)
		}
		if m.Module, err = ir.NewModule(moduleName, entries...); err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// computable reports whether WebGPU devices compute with or store all values of a sample,
// complex ones as pairs, and whether it uses f16 and complex numbers.
func computable(op ir.Op, s ir.Sample) (ok, f16, complexNumbers bool) {
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		return false, false, false
	}
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if t.DType.Real().On(dtype.WGSL) == dtype.Unsupported || t.DType.IsComplex() && !passes.HasComplexRule(n) {
				return false, false, false
			}
			f16 = f16 || t.DType == ir.F16
			complexNumbers = complexNumbers || t.DType.IsComplex()
		}
	}
	return true, f16, complexNumbers
}

// sampleGraph combines samples in one graph. Operand i of sample k is the input "xk_i",
// result i its output "yk_i".
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

// forwardCase returns the case of a graph of samples.
func forwardCase(op ir.Op, name string, samples []ir.Sample) (*ir.Graph, *Case, error) {
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
			Tolerance: irtest.SampleTolerance(p.node, p.Sample, want[i].DType.Real()),
			NonFinite: slices.ContainsFunc(append(slices.Clone(p.In), want[i]), hasNonFinite),
		})
	}
	return g, &Case{Name: name, Entry: "forward", Runs: []Run{run}}, nil
}

func hasNonFinite(a *ir.Array) bool {
	return slices.ContainsFunc(a.F, func(x float64) bool { return math.IsNaN(x) || math.IsInf(dtype.F32.Round(x), 0) })
}

// largestGradient is the maximal number of elements of a sample for the gradient.
const largestGradient = 400

// sampleToDifferentiate returns the largest sample that is differentiable everywhere.
func sampleToDifferentiate(d *ir.Def, samples []ir.Sample) (best ir.Sample, ok bool) {
	size := -1
	for _, s := range samples {
		n, float := 0, false
		for _, a := range s.In {
			n += a.Len()
			float = float || a.F != nil || a.C != nil
		}
		finite := !slices.ContainsFunc(s.In, hasNonFinite)
		if d.NoGrad == "" && s.NoGrad == "" && float && finite && n > size && n <= largestGradient {
			best, size = s, n
		}
	}
	return best, size >= 0
}

// gradientCase returns a case with a sample's results and their VJPs with random
// cotangents.
func gradientCase(op ir.Op, name string, s ir.Sample) (*ir.Graph, *Case, error) {
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
		tol := irtest.LooseToleranceFor(want[i].DType.Real())
		tol.Abs, tol.Rel = max(tol.Abs, s.Tol), max(tol.Rel, s.Tol)
		run.Want = append(run.Want, Result{
			Output: o.Name, About: s.Name, Array: want[i], Tolerance: tol, NonFinite: hasNonFinite(want[i]),
		})
	}
	return g, &Case{Name: "vjp " + name, Entry: "vjp", Runs: []Run{run}}, nil
}

// random draws floats from [-scale, scale) and integers from 0 to 3.
func random(rng *rand.Rand, t ir.Type, scale float64) *ir.Array {
	dims, _ := t.Shape.Ints()
	a := ir.NewArray(t.DType, dims...)
	for i := range a.F {
		a.F[i] = (2*rng.Float64() - 1) * scale
	}
	for i := range a.C {
		a.C[i] = complex(2*rng.Float64()-1, 2*rng.Float64()-1)
	}
	for i := range a.I {
		a.I[i] = int64(rng.IntN(4))
	}
	a.Round()
	return a
}
