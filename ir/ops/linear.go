package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// Ops with custom derivatives.
const (
	OpLinearCall ir.Op = "linear_call"
	OpCustomVJP  ir.Op = "custom_vjp"
	OpCustomJVP  ir.Op = "custom_jvp"
)

// LinearCallAttrs hold the number of leading operands that are residuals.
type LinearCallAttrs struct{ Residuals int }

// Visit shows the attributes.
func (a *LinearCallAttrs) Visit(v ir.AttrVisitor) { v.Int("residuals", &a.Residuals) }

// CustomVJPAttrs hold the number of results of the function; those after them are
// residuals.
type CustomVJPAttrs struct{ Results int }

// Visit shows the attributes.
func (a *CustomVJPAttrs) Visit(v ir.AttrVisitor) { v.Int("results", &a.Results) }

func init() {
	define(&ir.Def{
		Op: OpLinearCall,
		Doc: "A linear map given by two graphs: the first takes residuals and the linear operands to the results, the " +
			"second takes residuals and cotangents of the results to cotangents of the linear operands. Transposing " +
			"swaps the graphs, so that a custom VJP works in forward mode and at higher orders too. " +
			"A graph without operands and results stands for a missing one, which is an error if it is used.",
		Constraints: numbered(
			"the first graph takes all operands; it is linear in those after the residuals",
			"the second graph takes the residuals and values of the types of the results, and returns values of the types of the linear operands",
			"neither has parameters or states",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &LinearCallAttrs{} },
		Subgraphs: 2,
		Infer:     inferLinearCall,
		JVP:       jvpLinearCall,
		Transpose: transposeLinearCall,
		Batch:     batchLinearCall,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			if failWithoutForward(b, n) {
				return make([]ir.Value, n.NumResults())
			}
			return spliceFirst(b, n, in)
		},
	})
	define(&ir.Def{
		Op: OpCustomVJP,
		Doc: "A function with a custom VJP (JAX's custom_vjp). The first graph takes the operands to the results and " +
			"residuals; both are results of the node. The second graph takes the residuals and cotangents of " +
			"the results to cotangents of the operands, and is linear in the cotangents. Integers and booleans have " +
			"no cotangents, neither as operands nor as results.",
		Constraints: numbered(
			"the first graph takes the operands and returns at least as many values as there are results",
			"the second graph takes the residuals and values of the types of the differentiable results, and returns values of the types of the differentiable operands",
			"neither has parameters or states",
		),
		Operands:    []string{"operands..."},
		NewAttrs:    func() ir.Attrs { return &CustomVJPAttrs{} },
		Subgraphs:   2,
		Infer:       inferCustomVJP,
		JVP:         jvpCustomVJP,
		Batch:       batchCustomVJP,
		NoTranspose: notLinear,
		Body:        spliceFirst,
	})
	define(&ir.Def{
		Op: OpCustomJVP,
		Doc: "A function with a custom JVP (JAX's custom_jvp). The first graph takes the operands to the results. The " +
			"second graph takes the operands and the tangents of the differentiable ones to the tangents of the " +
			"differentiable results, and is linear in the tangents.",
		Constraints: numbered(
			"the first graph takes the operands",
			"the second graph takes the operands and values of the types of the differentiable ones, and returns values of the types of the differentiable results",
			"neither has parameters or states",
		),
		Operands:    []string{"operands..."},
		Subgraphs:   2,
		Infer:       inferCustomJVP,
		JVP:         jvpCustomJVP,
		Batch:       batchCustomJVP,
		NoTranspose: notLinear,
		Body:        spliceFirst,
	})
}

// LinearCall returns the results of forward for residuals and linear, in which it is
// linear; transposed is its transpose: it takes the residuals and the cotangents of the
// results and returns those of linear.
func LinearCall(b *ir.Builder, forward, transposed *ir.Graph, residuals, linear []ir.Value) []ir.Value {
	return b.AddNode(OpLinearCall, &LinearCallAttrs{len(residuals)}, []*ir.Graph{forward, transposed}, slices.Concat(residuals, linear)...)
}

// CustomVJP returns the results of forward for the operands and, after the first results
// ones, the residuals (JAX's custom_vjp). backward takes the residuals and the cotangents
// of the differentiable results and returns those of the differentiable operands.
func CustomVJP(b *ir.Builder, forward, backward *ir.Graph, results int, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomVJP, &CustomVJPAttrs{results}, []*ir.Graph{forward, backward}, operands...)
}

// CustomJVP returns the results of f for the operands (JAX's custom_jvp). jvp takes the
// operands and the tangents of the differentiable ones and returns those of the
// differentiable results.
func CustomJVP(b *ir.Builder, f, jvp *ir.Graph, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomJVP, nil, []*ir.Graph{f, jvp}, operands...)
}

// spliceFirst is the body of ops whose first graph computes their results.
func spliceFirst(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	return b.Splice(n.Subgraphs()[0], in)
}

// differentiable returns the indices of the types that have tangents.
func differentiable(types []ir.Type) []int {
	var out []int
	for i, t := range types {
		if derive.Differentiable(t.DType) {
			out = append(out, i)
		}
	}
	return out
}

// checkReturns reports an error unless g returns values of the given types.
func checkReturns(g *ir.Graph, want []ir.Type) error {
	got := outputTypes(g)
	if len(got) != len(want) {
		return ir.Errorf(ir.ErrGraph, "graph %q returns %d values, %d are wanted", g.Name(), len(got), len(want))
	}
	for i, t := range got {
		if !t.Equal(want[i]) {
			return ir.Shapef("graph %q returns %s as value %d, %s is wanted", g.Name(), t, i, want[i])
		}
	}
	return nil
}

// The samples are the map x ↦ a·x on vectors of three elements, and the
// function x ↦ x², whose custom derivatives are the true ones.
