package autodiff_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	_ "github.com/rlx-go/rlx/ir/ops"
)

// sampleGraph is a graph of one node, with ports named "0", "1", ... and
// outputs "y0", "y1", ...
func sampleGraph(t *testing.T, op ir.Op, s ir.Sample) (*ir.Graph, values) {
	t.Helper()
	in := values{}
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		operands := make([]ir.Value, len(s.In))
		for i, x := range s.In {
			name := strconv.Itoa(i)
			in[name] = x
			operands[i] = b.Port(ir.InputPort, name, x.Type())
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, operands...) {
			b.Output("y"+strconv.Itoa(i), v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, in
}

// eachSample runs f on every sample of every op.
func eachSample(t *testing.T, f func(t *testing.T, d *ir.Def, s ir.Sample)) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			for i, s := range d.Samples() {
				t.Run(fmt.Sprintf("%d %s", i, s.Name), func(t *testing.T) { f(t, d, s) })
			}
		})
	}
}

func TestGradientsOfEveryOpAreRightToSecondOrder(t *testing.T) {
	wanted, checked := map[ir.Op]bool{}, map[ir.Op]int{}
	eachSample(t, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if d.NoGrad != "" || s.NoGrad != "" {
			return
		}
		if isComplex(s) {
			return // package ops checks these, some ops have no others
		}
		wanted[d.Op] = true
		if elements(s) > 400 {
			return
		}
		g, in := sampleGraph(t, d.Op, s)
		if !isFinite(t, g, in) {
			return
		}
		// The second order takes the work of the first once for each element.
		order := 2
		if elements(s) > 150 {
			order = 1
		}
		if err := gradcheck.Check(g, in, gradcheck.Options{Order: order, Tol: tolerance(s)}); err != nil {
			t.Error(err)
		}
		checked[d.Op]++
	})
	for op := range wanted {
		if checked[op] == 0 {
			t.Errorf("no sample of %s was fit to be checked", op)
		}
	}
}

// tolerance is that of gradcheck, unless the constants in a graph are rounded
// to a short type.
func tolerance(s ir.Sample) float64 {
	tol := max(s.Tol, 1e-6)
	for _, x := range s.In {
		switch x.DType {
		case ir.F16:
			tol = max(tol, 2e-3)
		case ir.BF16:
			tol = max(tol, 2e-2)
		}
	}
	return tol
}

// isFinite reports whether operands and results are finite: there is no
// difference to compare with elsewhere.
func isFinite(t *testing.T, g *ir.Graph, in values) bool {
	t.Helper()
	out, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range in {
		out = append(out, x)
	}
	for _, x := range out {
		for _, y := range x.F {
			if y-y != 0 {
				return false
			}
		}
	}
	return true
}

func isComplex(s ir.Sample) bool {
	for _, x := range s.In {
		if x.DType.IsComplex() {
			return true
		}
	}
	return false
}

func elements(s ir.Sample) int {
	n := 0
	for _, x := range s.In {
		n += x.Len()
	}
	return n
}

const batchSize = 3

func TestVmapOfEveryOpIsALoop(t *testing.T) {
	eachSample(t, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if len(s.In) == 0 || d.NoBatch != "" || elements(s) > 3000 {
			return
		}
		g, in := sampleGraph(t, d.Op, s)
		for _, axes := range batchings(s) {
			checkVmap(t, g, in, axes)
		}
	})
}

// batchings returns ways to batch the operands of a sample: each alone, at the front and at the
// end, and all together at different places.
func batchings(s ir.Sample) []map[string]int {
	all, mixed := map[string]int{}, map[string]int{}
	out := []map[string]int{all, mixed}
	for i, x := range s.In {
		name := strconv.Itoa(i)
		all[name], mixed[name] = 0, i%(len(x.Dims)+1)
		if len(s.In) > 1 {
			out = append(out, map[string]int{name: 0})
		}
		if len(x.Dims) > 0 {
			out = append(out, map[string]int{name: -1})
		}
	}
	return out
}

// checkVmap compares vmap with a loop over batch elements. The first element has the operands in;
// each further one has their elements rotated by one.
func checkVmap(t *testing.T, g *ir.Graph, in values, axes map[string]int) {
	t.Helper()
	b, err := autodiff.Vmap(g, ir.N(batchSize), autodiff.VmapOptions{In: axes})
	if err != nil {
		t.Errorf("batch axes %v: %v", axes, err)
		return
	}
	parts, batched := make([]values, batchSize), values{}
	for name, x := range in {
		batched[name] = x
		for k := range parts {
			if parts[k] == nil {
				parts[k] = values{}
			}
			parts[k][name] = x
			if _, ok := axes[name]; ok {
				parts[k][name] = rolled(x, k)
			}
		}
		if a, ok := axes[name]; ok {
			batched[name] = stacked(parts, name, a)
		}
	}
	got := eval(t, b, batched)
	for k := range parts {
		want, err := ir.Eval(g, parts[k], ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if err := sameSlice(got[o.Name], k, want[i]); err != nil {
				t.Errorf("batch axes %v, element %d, output %s: %v", axes, k, o.Name, err)
				return
			}
		}
	}
}

// rolled returns x with its elements moved on by k places, so that all stay in
// the domain of the op.
func rolled(x *ir.Array, k int) *ir.Array {
	y := x.Clone()
	n := x.Len()
	for i := range n {
		j := (i + k) % n
		switch {
		case x.F != nil:
			y.F[i] = x.F[j]
		case x.C != nil:
			y.C[i] = x.C[j]
		default:
			y.I[i] = x.I[j]
		}
	}
	return y
}

// stacked returns the values of a port for all batch elements, with the batch
// axis at a place.
func stacked(parts []values, name string, axis int) *ir.Array {
	x := parts[0][name]
	if axis < 0 {
		axis += len(x.Dims) + 1
	}
	dims := append(append(append([]int(nil), x.Dims[:axis]...), len(parts)), x.Dims[axis:]...)
	out := ir.NewArray(x.DType, dims...)
	inner := 1
	for _, d := range x.Dims[axis:] {
		inner *= d
	}
	for k, p := range parts {
		x := p[name]
		for i := range x.Len() {
			to := (i/inner*len(parts)+k)*inner + i%inner
			switch {
			case x.F != nil:
				out.F[to] = x.F[i]
			case x.C != nil:
				out.C[to] = x.C[i]
			default:
				out.I[to] = x.I[i]
			}
		}
	}
	return out
}

// sameSlice compares slice k along axis 0 of got with want.
func sameSlice(got *ir.Array, k int, want *ir.Array) error {
	n := want.Len()
	if got.Len() != n*batchSize {
		return fmt.Errorf("%d elements, want %d", got.Len(), n*batchSize)
	}
	for i := range n {
		at := k*n + i
		switch {
		case want.F != nil:
			if !same(got.F[at], want.F[i], 1e-12) {
				return fmt.Errorf("[%d] = %v, want %v", i, got.F[at], want.F[i])
			}
		case want.C != nil:
			if !same(real(got.C[at]), real(want.C[i]), 1e-12) || !same(imag(got.C[at]), imag(want.C[i]), 1e-12) {
				return fmt.Errorf("[%d] = %v, want %v", i, got.C[at], want.C[i])
			}
		case got.I[at] != want.I[i]:
			return fmt.Errorf("[%d] = %v, want %v", i, got.I[at], want.I[i])
		}
	}
	return nil
}

func TestOpsWithoutADerivativeSayWhy(t *testing.T) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.JVP == nil && d.Body == nil && d.NoGrad == "" {
			t.Errorf("%s has no derivative and does not say why", op)
		}
		if d.Batch == nil && d.Body == nil && d.NoBatch == "" {
			t.Errorf("%s cannot be batched and does not say why", op)
		}
	}
}
