package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// Ops that own the graphs of their derivative.
const (
	OpLinearCall ir.Op = "linear_call"
	OpCustomVJP  ir.Op = "custom_vjp"
	OpCustomJVP  ir.Op = "custom_jvp"
)

// LinearCallAttrs say how many of the operands are residuals.
type LinearCallAttrs struct{ Residuals int }

// Visit shows the attributes.
func (a *LinearCallAttrs) Visit(v ir.AttrVisitor) { v.Int("residuals", &a.Residuals) }

// CustomVJPAttrs say how many results the function has; those after them are
// residuals.
type CustomVJPAttrs struct{ Results int }

// Visit shows the attributes.
func (a *CustomVJPAttrs) Visit(v ir.AttrVisitor) { v.Int("results", &a.Results) }

func init() {
	define(&ir.Def{
		Op: OpLinearCall,
		Doc: "A linear map given by two graphs: the first takes residuals and the linear operands to the results, the " +
			"second takes residuals and cotangents of the results to cotangents of the linear operands. Transposing " +
			"swaps the graphs; that is how a custom reverse derivative works in forward mode and at higher orders too. " +
			"A graph without operands and results stands for one that does not exist, which is an error where it is used.",
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
		Samples: linearCallSamples,
	})
	define(&ir.Def{
		Op: OpCustomVJP,
		Doc: "A function with a reverse derivative of its own. The first graph takes the operands to the results and " +
			"residuals, which both are results of the node. The second graph takes the residuals and cotangents of " +
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
		Samples:     customVJPSamples,
	})
	define(&ir.Def{
		Op: OpCustomJVP,
		Doc: "A function with a forward derivative of its own. The first graph takes the operands to the results. The " +
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
		Samples:     customJVPSamples,
	})
}

// LinearCall returns what forward returns for the residuals and the linear
// operands; transposed is its transpose by the latter.
func LinearCall(b *ir.Builder, forward, transposed *ir.Graph, residuals, linear []ir.Value) []ir.Value {
	return b.AddNode(OpLinearCall, &LinearCallAttrs{len(residuals)}, []*ir.Graph{forward, transposed}, slices.Concat(residuals, linear)...)
}

// CustomVJP returns the results, and after them the residuals, of forward for
// the operands; backward is its reverse derivative. See the op's documentation
// for what the graphs take and return.
func CustomVJP(b *ir.Builder, forward, backward *ir.Graph, results int, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomVJP, &CustomVJPAttrs{results}, []*ir.Graph{forward, backward}, operands...)
}

// CustomJVP returns the results of f for the operands; jvp is its forward
// derivative. See the op's documentation for what the graphs take and return.
func CustomJVP(b *ir.Builder, f, jvp *ir.Graph, operands ...ir.Value) []ir.Value {
	return b.AddNode(OpCustomJVP, nil, []*ir.Graph{f, jvp}, operands...)
}

// spliceFirst is the body of ops whose first graph gives their results.
func spliceFirst(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	return b.Splice(n.Subgraphs()[0], in)
}

// differentiable returns the places of the types that have tangents.
func differentiable(types []ir.Type) []int {
	var out []int
	for i, t := range types {
		if derive.Differentiable(t.DType) {
			out = append(out, i)
		}
	}
	return out
}

// checkReturns makes sure that a graph returns values of the given types.
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
