package ops_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/scalar"
)

var update = flag.Bool("update", false, "write testdata/matrix.txt")

// maxSampleElements keeps variants small.
const maxSampleElements = 2000

// TestEveryOpByTypeShapeAndValue evaluates variants of the samples of every op: floats of
// each type, edges of shapes, special values. What a lowering or a body gives for them is
// what the reference gives. For what no variant is accepted of, the op has a reason:
// its own refusal, listed in testdata/matrix.txt.
func TestEveryOpByTypeShapeAndValue(t *testing.T) {
	var table strings.Builder
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		refusals := map[string]error{}
		var kinds []string
		wanted := func(kind string) bool { // one of a kind will do
			last, known := refusals[kind]
			return !known || last != nil
		}
		for _, s := range d.Samples() {
			for _, v := range append(irtest.Variants(s, wanted), byResults(op, s)...) {
				if !wanted(v.Kind) {
					continue
				}
				if _, known := refusals[v.Kind]; !known {
					kinds = append(kinds, v.Kind)
				}
				refusals[v.Kind] = checkVariant(t, d, v)
			}
		}
		slices.Sort(kinds)
		for _, kind := range kinds {
			if err := refusals[kind]; err != nil {
				fmt.Fprintf(&table, "%s, %s: %s\n", op, kind, reasonOf(err))
			}
		}
	}
	const file = "testdata/matrix.txt"
	if *update {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(table.String(), "\n")
	for _, line := range got {
		if !slices.Contains(strings.Split(string(want), "\n"), line) {
			t.Errorf("refused, and not among what %s lists (-update writes it): %s", file, line)
		}
	}
	for line := range strings.Lines(string(want)) {
		if !slices.Contains(got, strings.TrimSuffix(line, "\n")) {
			t.Errorf("accepted now, or refused otherwise: %s", line)
		}
	}
}

// byResults returns the sample itself as one of the kinds that its results are.
func byResults(op ir.Op, s ir.Sample) []irtest.Variant {
	_, n, err := irtest.SampleGraph(op, s)
	if err != nil {
		return nil
	}
	var out []irtest.Variant
	for _, r := range n.Types() {
		dims, _ := r.Shape.Ints()
		for _, kind := range irtest.ShapeKinds(dims) {
			out = append(out, irtest.Variant{Kind: kind, Sample: s})
		}
	}
	return out
}

// sensitive are ops whose results for some matrices are rounding or are not unique, as
// eigenvectors of equal eigenvalues are. For special values, and for matrices of size 37
// whose rows are nearly those of a smaller one again, only the existence of a result is checked here;
// TestANaNInAMatrixIsInItsResults checks the values.
var sensitive = []ir.Op{
	"cholesky", "eigh", "householder", "inv", "jacobi", "lgamma", "lu", "lyapunov", "qr", "slogdet", "solve", "spd_logm", "svd", "triangular_solve",
}

// reasonOf is the last part of an error's text, without the operands.
func reasonOf(err error) string {
	var op *ir.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

var errTooLarge = errors.New("too many elements for this test")

// checkVariant returns the refusal of a variant, nil where it was computed and compared.
func checkVariant(t *testing.T, d *ir.Def, v irtest.Variant) error {
	t.Helper()
	g, n, err := irtest.SampleGraph(d.Op, v.Sample)
	if err != nil {
		return err
	}
	size := 0
	for _, a := range v.In {
		size += a.Len()
	}
	for _, r := range n.Types() {
		k, _ := r.Shape.Size().Const()
		size += k
	}
	if size > maxSampleElements {
		return errTooLarge
	}
	want, err := ir.Eval(g, irtest.SampleInputs(v.Sample), ir.EvalOptions{})
	if err != nil {
		return err
	}
	if (v.Special || v.Kind == "size 37") && slices.Contains(sensitive, d.Op) {
		return nil
	}
	got, how, err := otherwise(g, n, v.In)
	if err != nil {
		t.Errorf("%s, %s of %s: %s: %v", d.Op, v.Kind, v.Name, how, err)
		return nil
	}
	for i := range got {
		if !got[i].Type().Equal(n.Types()[i]) {
			t.Errorf("%s, %s of %s: result %d by %s is %s, not %s", d.Op, v.Kind, v.Name, i, how, got[i].Type(), n.Types()[i])
		} else if at, ok := firstDifference(want[i], got[i], max(v.Tol, tolerance(want[i].DType))); !ok && !nearZero(want[i], got[i], at) {
			t.Errorf("%s, %s of %s: result %d at %d: by %s %v, reference %v", d.Op, v.Kind, v.Name, i, at, how, text(got[i], at), text(want[i], at))
		}
	}
	return nil
}

// nearZero is the rounding error allowed where terms cancel in all elements.
func nearZero(want, got *ir.Array, at int) bool {
	return at >= 0 && math.Abs(want.Float(at)) < 1e-15 && math.Abs(got.Float(at)) < 1e-15 && want.DType.IsFloat()
}

// otherwise computes a node by its lowering, or by its body.
func otherwise(g *ir.Graph, n *ir.Node, in []*ir.Array) (out []*ir.Array, how string, err error) {
	if !n.Def().IsComposite() {
		out, err = irtest.EvalLowering(n, in, scalar.Simplify)
		if !errors.Is(err, ir.ErrUnsupported) {
			return out, "lowering", err
		}
	}
	g, err = passes.Run(g, passes.Options{})
	if err != nil {
		return nil, "passes", err
	}
	out, err = ir.Eval(g, irtest.SampleInputs(ir.Sample{In: in}), ir.EvalOptions{})
	return out, "body", err
}
