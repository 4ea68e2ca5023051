package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxWindow is the number of inner points up to which a reduction is tried without a loop: 7×7 among them.
const maxWindow = 2 * fusion.SumBlockLen

// unrolled returns a reduction over few inner points, as those of a pool's windows, or over none, as a map: the
// places of the points and the conditions at edges are then constants or values of a row, and a
// kernel may do whole rows. It returns nil where that does not apply.
func unrolled(code *fusion.Code, inner []int) *fusion.Code {
	points := product(inner)
	reduces := func(s fusion.Stage) bool { return len(s.Reductions) > 0 }
	if !slices.ContainsFunc(code.Stages, reduces) || points == 0 || points > maxWindow || len(code.Points) > 0 {
		return nil
	}
	out := &fusion.Code{Outer: code.Outer, Rows: code.Rows}
	for _, s := range code.Stages {
		if s.Contraction != nil {
			return nil
		}
		stage := fusion.Stage{Lets: slices.Clone(s.Lets)}
		for _, r := range s.Reductions {
			stage.Lets = append(stage.Lets, folded(&r, code.Inner, inner)...)
		}
		out.Stages = append(out.Stages, stage)
	}
	return out
}

// folded returns the results of a reduction, which combines the points in their order, those of sums in blocks of
// [fusion.SumBlockLen]: at most two, which need no compensation.
func folded(r *fusion.Reduction, vars []scalar.Expr, inner []int) []scalar.Local {
	s := scalar.NewSimplifier()
	initial := make([]scalar.Expr, len(r.Accumulators))
	for i, a := range r.Accumulators {
		initial[i] = a.Init
	}
	sums, before, inBlocks := initial, []scalar.Expr(nil), r.Sums()
	for point := range product(inner) {
		at := map[string]scalar.Expr{}
		for i, rest := len(inner)-1, point; i >= 0; i-- {
			at[vars[i].Name], rest = scalar.ConstI(vars[i].Type, int64(rest%inner[i])), rest/inner[i]
		}
		elements := make([]scalar.Expr, len(r.Elements))
		for i, e := range r.Elements {
			elements[i] = s.Simplify(scalar.SubstituteVars(e, at))
		}
		if inBlocks && point == fusion.SumBlockLen {
			sums, before = initial, sums
		}
		sums = r.Combine(sums, elements)
	}
	if before != nil {
		sums = r.Combine(before, sums)
	}
	final := map[string]scalar.Expr{}
	for i, v := range r.Running {
		final[v.Name] = sums[i]
	}
	results := slices.Clone(r.Results)
	for i := range results {
		results[i].Value = scalar.SubstituteVars(results[i].Value, final)
	}
	return results
}
