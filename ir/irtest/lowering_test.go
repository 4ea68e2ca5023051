package irtest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestFaultyLoweringsAreCaught evaluates lowerings of an op that is meant to
// shift a vector, each wrong in its own way.
func TestFaultyLoweringsAreCaught(t *testing.T) {
	next := func(at ir.Index) scalar.Expr { return scalar.Add(at[0], scalar.ConstI(ir.I32, 1)) }
	for name, c := range map[string]struct {
		element func(n *ir.Node, result int, at ir.Index, load ir.Load) scalar.Expr
		kind    error
	}{
		"a load behind the end": {func(_ *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
			return load(0, ir.Index{next(at)})
		}, ir.ErrIndex},
		"an unguarded load beside a condition": {func(_ *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
			inside := scalar.Lt(next(at), scalar.ConstI(ir.I32, 4))
			return scalar.Select(inside, load(0, ir.Index{next(at)}), scalar.ConstF(ir.F32, 0))
		}, ir.ErrIndex},
		"a position of the wrong rank": {func(_ *ir.Node, _ int, _ ir.Index, load ir.Load) scalar.Expr {
			return load(0, nil)
		}, ir.ErrIndex},
		"an element of the wrong type": {func(_ *ir.Node, _ int, at ir.Index, _ ir.Load) scalar.Expr {
			return at[0]
		}, ir.ErrDType},
	} {
		t.Run(name, func(t *testing.T) {
			op := ir.Op("test_" + strings.ReplaceAll(name, " ", "_"))
			err := ir.Register(&ir.Def{
				Op: op, Operands: []string{"x"}, NoGrad: "a test", Lower: &ir.MapLowering{Element: c.element},
				Infer: func(n *ir.Node) ([]ir.Type, error) { return n.InTypes(), nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			s := ir.Sample{In: []*ir.Array{ir.Floats(ir.F32, []float64{1, 2, 3, 4})}}
			_, n, err := irtest.SampleGraph(op, s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := irtest.EvalLowering(n, s.In, nil); !errors.Is(err, c.kind) {
				t.Errorf("error %v, want kind %v", err, c.kind)
			}
		})
	}
}
