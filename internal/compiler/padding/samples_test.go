package padding

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// more is how much larger the padded sizes of samples are than the true ones.
const more = 3

// place is an axis of an operand, or the entry of a list of sizes of an attribute where operand is
// negative: list −1−operand.
type place struct{ operand, axis int }

// symbolicSample returns the graph of a sample with a symbol at some places, or an error if the op does
// not accept it.
func symbolicSample(op ir.Op, s ir.Sample, at []place) (*ir.Graph, error) {
	attrs := s.Attrs
	if d, _ := ir.Lookup(op); attrs != nil && d.NewAttrs != nil {
		_, n, err := irtest.SampleGraph(op, s)
		if err != nil {
			return nil, err
		}
		attrs = ir.CopyAttrs(n)
		attrs.Visit(&marker{at: at})
	}
	return ir.Build(string(op), func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			shape := ir.Dims(a.Dims...)
			for _, p := range at {
				if p.operand == i {
					shape[p.axis] = ir.Sym("n")
				}
			}
			in[i] = b.Port(ir.InputPort, fmt.Sprint(i), ir.Type{DType: a.DType, Shape: shape})
		}
		for i, v := range b.AddNode(op, attrs, s.Subs, in...) {
			b.Output(fmt.Sprint(i), v)
		}
	})
}

// marker puts the symbol into lists of sizes. With size set it collects the places of that size.
type marker struct {
	at    []place
	size  int
	found []place
	lists int
}

func (*marker) Int(string, *int)        {}
func (*marker) Ints(string, *[]int)     {}
func (*marker) Float(string, *float64)  {}
func (*marker) Bool(string, *bool)      {}
func (*marker) Text(string, *string)    {}
func (*marker) DType(string, *ir.DType) {}
func (m *marker) Dims(_ string, p *[]ir.Dim) {
	m.lists++
	dims := slices.Clone(*p)
	for i, d := range dims {
		if m.size > 0 && d.Is(m.size) {
			m.found = append(m.found, place{-m.lists, i})
		}
		if slices.Contains(m.at, place{-m.lists, i}) {
			dims[i] = ir.Sym("n")
		}
	}
	if m.size == 0 {
		*p = dims
	}
}

// choices calls f with sets of places of one size in a sample, and the size.
func choices(s ir.Sample, f func(size int, at []place)) {
	sizes := map[int]bool{}
	for _, a := range s.In {
		for _, d := range a.Dims {
			sizes[d] = true
		}
	}
	if s.Attrs != nil {
		for d := 1; d <= 16; d++ {
			m := &marker{size: d}
			s.Attrs.Visit(m)
			if len(m.found) > 0 {
				sizes[d] = true
			}
		}
	}
	for size := range sizes {
		if size == 0 {
			continue
		}
		var all []place
		for i, a := range s.In {
			for axis, d := range a.Dims {
				if d == size {
					all = append(all, place{i, axis})
				}
			}
		}
		if s.Attrs != nil {
			m := &marker{size: size}
			s.Attrs.Visit(m)
			all = append(all, m.found...)
		}
		for set := 1; set < 1<<min(len(all), 6); set++ {
			var at []place
			for i, p := range all {
				if set>>min(i, 5)&1 == 1 {
					at = append(at, p)
				}
			}
			f(size, at)
		}
	}
}

// paddedArray returns an array with garbage where it is longer than a.
func paddedArray(a *ir.Array, dims []int) *ir.Array {
	out := ir.NewArray(a.DType, dims...)
	for i := range out.F {
		out.F[i] = math.NaN()
	}
	for i := range out.C {
		out.C[i] = complex(math.NaN(), math.Inf(1))
	}
	for i := range out.I {
		out.I[i] = []int64{1, 0, 1, 1}[i%4]
		if a.DType != ir.Bool {
			out.I[i] = int64(i*7%13) - 3
		}
	}
	out.Round()
	copyBox(out, a, a.Dims)
	return out
}

// copyBox copies the elements of a box of the given sizes between arrays of the same rank.
func copyBox(dst, src *ir.Array, box []int) {
	total := 1
	for _, d := range box {
		total *= d
	}
	for i := range total {
		d, s, rest := 0, 0, i
		pos := make([]int, len(box))
		for axis := len(box) - 1; axis >= 0; axis-- {
			pos[axis], rest = rest%box[axis], rest/box[axis]
		}
		for axis, p := range pos {
			d, s = d*dst.Dims[axis]+p, s*src.Dims[axis]+p
		}
		dst.SetElement(d, src.Element(s))
	}
}

// crop returns the true elements of an output.
func crop(t *testing.T, x *ir.Array, extents []ir.Extent, sizes map[string]int, bound map[string]int, dims []int) *ir.Array {
	t.Helper()
	var full, box []int
	for _, e := range extents {
		for _, d := range e {
			n, err := d.Bind(sizes)
			if err != nil {
				t.Fatal(err)
			}
			m, err := d.Bind(bound)
			if err != nil {
				t.Fatal(err)
			}
			box, full = append(box, n), append(full, m)
		}
	}
	src := *x
	src.Dims = full
	if src.Type().Shape.Size() != ir.Shape(ir.Dims(x.Dims...)).Size() {
		t.Fatalf("the padded result has %v elements, extents %v", x.Dims, extents)
	}
	out := ir.NewArray(x.DType, box...)
	copyBox(out, &src, box)
	out.Dims = dims
	return out
}

// outcome is what became of a choice.
type outcome int

const (
	invalid outcome = iota // the op does not accept the symbol there
	refused
	needsExact
	equal
	different
)

// tryPadded compares a padded graph with the exact one.
func tryPadded(t *testing.T, g *ir.Graph, in map[string]*ir.Array, sizes map[string]int, tol irtest.Tolerance) (outcome, error) {
	t.Helper()
	bound := map[string]int{}
	for s, n := range sizes {
		bound[s] = n + more
	}
	exact, err := g.Bind(sizes)
	if err != nil {
		return invalid, err
	}
	want, err := ir.Eval(exact, in, ir.EvalOptions{Bodies: true})
	if err != nil {
		return invalid, err
	}
	a, err := Analyze(g, func(string) bool { return true })
	if err != nil {
		if !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("refused with an error of another kind: %v", err)
		}
		return refused, err
	}
	if err := a.Fit().Check(sizes, bound); err != nil {
		return needsExact, err
	}
	if a, err = analyzeGarbage(g); err != nil {
		t.Fatal(err)
	}
	whole, err := a.Graph(bound)
	if err != nil {
		return needsExact, err
	}
	given := map[string]*ir.Array{}
	for _, p := range whole.Ports() {
		if d, is := padded.SizeOf(p.Name); is {
			n, _ := d.Bind(sizes)
			given[p.Name] = ir.NewArray(ir.I32)
			given[p.Name].I[0] = int64(n)
			continue
		}
		dims, _ := p.Value.Shape().Ints()
		given[p.Name] = paddedArray(in[p.Name], dims)
	}
	got, err := ir.Eval(whole, given, ir.EvalOptions{Bodies: true})
	if err != nil {
		return different, fmt.Errorf("padded: %w\n%s", err, whole)
	}
	sumsByShape := slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpQuantizedMatMul })
	if a.plain() && !sumsByShape { // the body adds up one row in another order than several
		tol = irtest.Tolerance{}
	}
	for i := range want {
		x := crop(t, got[i], a.Output(i), sizes, bound, want[i].Dims)
		for k := range want[i].Len() {
			if !sameElement(x, want[i], k, tol) {
				return different, fmt.Errorf("output %d, element %d of %v: %v, want %v\n%s\n%s", i, k, want[i].Dims, x.Element(k), want[i].Element(k), g, whole)
			}
		}
	}
	return equal, nil
}

func sameElement(x, want *ir.Array, k int, tol irtest.Tolerance) bool {
	switch {
	case x.F != nil:
		return tol.Allows(x.F[k], want.F[k])
	case x.C != nil:
		return tol.Allows(real(x.C[k]), real(want.C[k])) && tol.Allows(imag(x.C[k]), imag(want.C[k]))
	}
	return x.I[k] == want.I[k]
}

// analyzeGarbage is Analyze for inputs whose padding is not zero.
func analyzeGarbage(g *ir.Graph) (*Analysis, error) {
	a := newAnalysis(g, memoized(func(d ir.Dim) bool { return len(d.Symbols()) > 0 }))
	var in [][]ir.Extent
	for _, p := range g.Ports() {
		in = append(in, plainExtents(p.Value.Shape()))
	}
	return a, a.whole(in)
}

// trySamples calls f with what becomes of each sample of an op and of its gradient, for each way to make a
// size of it open.
func trySamples(t *testing.T, op ir.Op, f func(name string, o outcome, err error)) {
	t.Helper()
	d, _ := ir.Lookup(op)
	if d.Samples == nil {
		return
	}
	for i, s := range d.Samples() {
		if slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.Len() > 3000 }) {
			continue
		}
		_, n, err := irtest.SampleGraph(op, s)
		if err != nil {
			t.Fatal(err)
		}
		choices(s, func(size int, at []place) {
			g, err := symbolicSample(op, s, at)
			if err != nil {
				return
			}
			tol := irtest.SampleTolerance(n, s, n.Types()[0].DType)
			in, sizes := irtest.SampleInputs(s), map[string]int{"n": size}
			name := fmt.Sprintf("%d %s %v", i, s.Name, at)
			o, err := tryPadded(t, g, in, sizes, tol)
			f(name+" value", o, err)
			if n.NumResults() > 8 {
				return
			}
			if g, err = autodiff.VJP(g); err != nil || addCotangents(g, in, sizes) != nil {
				return
			}
			o, err = tryPadded(t, g, in, sizes, irtest.Tolerance{Abs: 100*tol.Abs + 1e-9, Rel: 100*tol.Rel + 1e-9})
			f(name+" gradient", o, err)
		})
	}
}

// TestSamples holds every op: for each sample and each way to make a size of it open, the padded graph
// has the results of the exact one, with garbage in all padding, or is refused. So have the gradients.
func TestSamples(t *testing.T) {
	for _, op := range ir.Ops() {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			counts := map[outcome]int{}
			trySamples(t, op, func(name string, o outcome, err error) {
				counts[o]++
				switch {
				case o == different:
					t.Errorf("%s: %v", name, err)
				case o == refused:
					t.Logf("%s: %s", name, strings.ReplaceAll(err.Error(), "\n", " "))
				}
			})
			t.Logf("%d equal, %d refused, %d exact, %d invalid", counts[equal], counts[refused], counts[needsExact], counts[invalid])
		})
	}
}

// TestRulesAreNeeded breaks each rule that writes into padding or reads by true sizes, and has a sample
// or a model find it.
func TestRulesAreNeeded(t *testing.T) {
	for _, op := range slices.SortedFunc(keys(rules), func(x, y ir.Op) int { return strings.Compare(string(x), string(y)) }) {
		t.Run(string(op), func(t *testing.T) {
			rule, acts, found := rules[op], false, false
			defer func() { rules[op] = rule }()
			rules[op] = func(p *ir.Padding) error {
				err := rule(p)
				acts = acts || len(p.Fills) > 0 || p.Emit != nil
				p.Fills, p.Emit = nil, nil
				return err
			}
			trySamples(t, op, func(_ string, o outcome, _ error) { found = found || o == different })
			for name := range models {
				if acts && !found {
					o, _ := tryModel(t, name)
					found = o == different
				}
			}
			if acts && !found {
				t.Errorf("no sample of %s finds that its rule is broken", op)
			}
		})
	}
}

// addCotangents adds values for the inputs of a gradient graph that the sample lacks.
func addCotangents(g *ir.Graph, in map[string]*ir.Array, sizes map[string]int) error {
	for k, p := range g.Ports() {
		if in[p.Name] != nil {
			continue
		}
		dims := make([]int, p.Value.Rank())
		for axis, d := range p.Value.Shape() {
			n, err := d.Bind(sizes)
			if err != nil {
				return err
			}
			dims[axis] = n
		}
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = math.Sin(float64(3*i+k)) + 0.25
		}
		for i := range a.C {
			a.C[i] = complex(math.Sin(float64(3*i+k)), math.Cos(float64(i)))
		}
		a.Round()
		in[p.Name] = a
	}
	return nil
}
