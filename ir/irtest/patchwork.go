package irtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Patchwork is a random graph that may contain any op.
type Patchwork struct {
	Graph  *ir.Graph
	Inputs map[string]*ir.Array
	// Wrt are the float inputs of the steps: derivatives by them agree with finite differences.
	Wrt []string
	// Tol is the relative tolerance that the samples ask for.
	Tol float64
	// Rounding is the relative error of the narrowest floats of less than 32 bits, which devices round
	// and the reference does not.
	Rounding float64
}

// DeviceTolerance returns the tolerance for results of the patchwork on any device.
func (p *Patchwork) DeviceTolerance(ir.DType) Tolerance {
	tol := max(2*LooseToleranceFor(ir.F32).Rel, loose*p.Tol, p.Rounding)
	return Tolerance{Abs: tol, Rel: tol}
}

// opsInPatchwork is the number of sampled ops in a patchwork.
const opsInPatchwork = 6

// Corpus are seeds of patchworks that once failed a test; tests run them besides the first ones.
var Corpus = []uint64{
	307, 368, // a derivative has a kink within the step of a difference
}

// Patchworks returns the number of patchworks, from seed 0 on, that contain every op with
// a usable sample.
func Patchworks(usable func(op ir.Op, s ir.Sample) bool) uint64 {
	n := len(drawn(usable))
	return uint64((n + opsInPatchwork - 1) / opsInPatchwork)
}

// RandomPatchwork returns patchwork number seed: the steps of [RandomGraph], and among
// them ops in alphabetical order, on operands near those of a usable sample: the sample's
// floats plus a small value that the graph computes. Results of these ops are outputs, and
// operands of later steps.
func RandomPatchwork(seed uint64, usable func(op ir.Op, s ir.Sample) bool) Patchwork {
	p := Patchwork{Inputs: map[string]*ir.Array{}}
	rng := rand.New(rand.NewPCG(seed, 9))
	list := drawn(usable)
	var err error
	p.Graph, err = ir.Build("patchwork", func(b *ir.Builder) {
		r := &generator{Rand: rng, b: b, derivable: true}
		r.declare(p.Inputs)
		for name, a := range p.Inputs {
			if a.F != nil {
				p.Wrt = append(p.Wrt, name)
			}
		}
		slices.Sort(p.Wrt)
		for i := range uint64(opsInPatchwork) {
			r.grow(r.IntN(4))
			if len(list) > 0 {
				r.apply(&p, list[(seed*opsInPatchwork+i)%uint64(len(list))])
			}
		}
		r.finish()
	})
	if err != nil {
		panic(err) // a step that is not well-typed is a mistake below
	}
	return p
}

// Memoize returns a function that calls usable once for each sample that patchworks may take.
// Patchworks and RandomPatchwork ask about all of them in every call.
func Memoize(usable func(op ir.Op, s ir.Sample) bool) func(op ir.Op, s ir.Sample) bool {
	type sample struct {
		op   ir.Op
		name string
		in   *ir.Array
	}
	known := map[sample]bool{}
	return func(op ir.Op, s ir.Sample) bool {
		key := sample{op: op, name: s.Name}
		if len(s.In) > 0 {
			key.in = s.In[0]
		}
		ok, found := known[key]
		if !found {
			ok = usable(op, s)
			known[key] = ok
		}
		return ok
	}
}

// candidate is an op with the samples of it that a patchwork may take.
type candidate struct {
	def     *ir.Def
	samples []bounds
}

// bounds is a sample with the largest magnitude of each of its results.
type bounds struct {
	ir.Sample
	most []float64
}

// drawn returns the ops that patchworks cycle through.
func drawn(usable func(op ir.Op, s ir.Sample) bool) []candidate {
	var out []candidate
	for _, t := range allCandidates() {
		t.samples = slices.DeleteFunc(slices.Clone(t.samples), func(s bounds) bool {
			return usable != nil && !usable(t.def.Op, s.Sample)
		})
		if len(t.samples) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// allCandidates evaluates all samples once.
var allCandidates = sync.OnceValue(func() []candidate {
	var out []candidate
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t := candidate{def: d}
		for _, s := range d.Samples() {
			if most := magnitudes(op, s); most != nil {
				t.samples = append(t.samples, bounds{s, most})
			}
		}
		if len(t.samples) > 0 {
			out = append(out, t)
		}
	}
	return out
})

// magnitudes returns the largest magnitude of each result of a sample, nil where it is
// not fit for a patchwork: too large, at a point without a derivative, or not finite.
func magnitudes(op ir.Op, s ir.Sample) []float64 {
	for _, a := range s.In {
		if a.Len() > maxElements {
			return nil
		}
	}
	g, _, err := SampleGraph(op, s)
	if err != nil {
		return nil
	}
	results, err := ir.Eval(g, SampleInputs(s), ir.EvalOptions{Reference: true})
	if err != nil {
		return nil
	}
	most := make([]float64, len(results))
	for i, a := range results {
		if a.Len() > maxElements {
			return nil
		}
		for k := range a.Len() {
			most[i] = max(most[i], math.Abs(a.Float(k)))
			if a.C != nil {
				most[i] = max(most[i], math.Abs(imag(a.C[k])))
			}
		}
		if most[i]-most[i] != 0 {
			return nil
		}
	}
	return most
}

// apply adds a node of an op, and offers its results to later steps.
func (r *generator) apply(p *Patchwork, t candidate) {
	s := pickOne(r, t.samples)
	p.Tol = max(p.Tol, s.Tol)
	number := len(p.Inputs) // so that names differ
	in := make([]ir.Value, len(s.In))
	for i, a := range s.In {
		moves := t.def.NoGrad == "" && s.NoGrad == ""
		in[i] = r.operand(p, fmt.Sprintf("%s%d.%d", t.def.Op, number, i), a, moves)
	}
	for i, v := range r.b.AddNode(t.def.Op, s.Attrs, s.Subs, in...) {
		p.Rounding = max(p.Rounding, rounding(v.DType()))
		v = asF32(r.b, v)
		r.b.Output(fmt.Sprintf("%s%d.%d", t.def.Op, number, i), v)
		r.keep(v, 1.1*s.most[i]+0.1)
	}
}

// rounding returns the relative error of floats of less than 32 bits: half a unit in the last of two places
// for those of 8 bits.
func rounding(d ir.DType) float64 {
	switch {
	case !d.IsFloat() || d.Size() > 2:
		return 0
	case d.Size() == 1:
		return 0x1p-3
	}
	return 2 * ToleranceFor(ir.BF16).Rel
}

// operand declares an input with the value a, or two for a complex one, and returns it,
// moved if moves is set and the type has room for it.
func (r *generator) operand(p *Patchwork, name string, a *ir.Array, moves bool) ir.Value {
	if a.C != nil {
		re, im := ir.NewArray(a.DType.Real(), a.Dims...), ir.NewArray(a.DType.Real(), a.Dims...)
		for i, c := range a.C {
			re.F[i], im.F[i] = real(c), imag(c)
		}
		return ops.Complex(r.b, r.operand(p, name+".re", re, moves), r.operand(p, name+".im", im, moves))
	}
	p.Inputs[name] = a
	v := r.b.Port(ir.InputPort, name, a.Type())
	if moves && (a.DType == ir.F32 || a.DType == ir.F64) {
		v = ops.Add(r.b, v, ops.Convert(r.b, r.drift(), a.DType))
	}
	return v
}

// drift returns a scalar below 2⁻⁸ that depends on a value of the graph: samples
// are further from where ops have kinks.
func (r *generator) drift() ir.Value {
	x := r.float()
	small := ops.Const(r.b, ir.F32, 0x1p-8)
	if x.Shape().Size().Is(0) {
		return small
	}
	return ops.Mul(r.b, small, ops.Mean(r.b, ops.Sin(r.b, x.Value)))
}

// asF32 returns v as numbers of f32.
func asF32(b *ir.Builder, v ir.Value) ir.Value {
	if v.DType().IsComplex() {
		v = ops.Add(b, ops.Real(b, v), ops.Imag(b, v))
	}
	return ops.Convert(b, v, ir.F32)
}
