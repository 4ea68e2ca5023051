package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestANaNInAMatrixIsInItsResults puts a NaN at either end of the matrix that is factorised: results
// have one too, and those of the other matrices of a batch are as without it, by the plain
// reference and by the body.
func TestANaNInAMatrixIsInItsResults(t *testing.T) {
	for _, op := range sensitive {
		d, _ := ir.Lookup(op)
		for _, s := range d.Samples() {
			clean := bothWays(t, op, s)
			a, triangular := s.Attrs.(*ops.TriangularAttrs)
			if len(s.In[0].F) == 0 || clean[0][0].Len() == 0 || triangular && a.UnitDiagonal { // that diagonal is not read
				continue
			}
			for _, at := range []int{0, s.In[0].Len() - 1} {
				hurt := s
				hurt.In = slices.Clone(s.In)
				hurt.In[0] = ir.NewArray(s.In[0].DType, s.In[0].Dims...)
				copy(hurt.In[0].F, s.In[0].F)
				hurt.In[0].F[at] = math.NaN()
				for i, out := range bothWays(t, op, hurt) {
					place := fmt.Sprintf("%s %s, NaN at %d, way %d", op, s.Name, at, i)
					checkNaN(t, place, s.In[0], at, out, clean[i])
				}
			}
		}
	}
}

// bothWays returns the results of a sample by the reference of the op and by its body.
func bothWays(t *testing.T, op ir.Op, s ir.Sample) [2][]*ir.Array {
	t.Helper()
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		t.Fatal(err)
	}
	body, err := passes.Run(g, passes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out [2][]*ir.Array
	for i, way := range []*ir.Graph{g, body} {
		if out[i], err = ir.Eval(way, irtest.SampleInputs(s), ir.EvalOptions{}); err != nil {
			t.Fatalf("%s %s: %v", op, s.Name, err)
		}
	}
	return out
}

// checkNaN looks for a NaN in the results for the matrix that contains element at, and for
// differences in those for the others.
func checkNaN(t *testing.T, place string, in *ir.Array, at int, out, clean []*ir.Array) {
	t.Helper()
	batch := 1
	if len(in.Dims) > 2 {
		batch = in.Dims[0]
	}
	mine, found := at*batch/in.Len(), false
	for r, a := range out {
		each := a.Len() / batch
		for i := range a.Len() {
			switch x := a.Float(i); {
			case i/each == mine:
				found = found || x != x
			case x != clean[r].Float(i):
				t.Errorf("%s: result %d of another matrix is %v, without NaN %v", place, r, x, clean[r].Float(i))
				return
			}
		}
	}
	if !found {
		t.Errorf("%s: no NaN in the results", place)
	}
}
