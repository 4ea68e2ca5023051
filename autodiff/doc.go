// Package autodiff transforms graphs into graphs that compute derivatives:
//
//   - forward mode: [JVP];
//   - reverse mode: [VJP], [Grad], [ValueAndGrad], and [SplitVJP] as two graphs;
//   - higher order: [HVP], [Hessian], [JacobianForward], [JacobianReverse], [NthOrder], [Directional], and [Jet] for Taylor series;
//   - batches: [Vmap].
//
// [GradOf], [ValueAndGradOf], [VJPOf] and [JVPOf] differentiate functions inside a graph. Package
// sparse computes sparse Jacobians and Hessians. A [Policy], or [Checkpoint] in the graph itself,
// chooses the residuals that reverse mode stores.
//
// The input is an ir.Graph, the output another one, which can be compiled or differentiated again.
// Each op has one rule, its JVP. Reverse mode builds the graph of tangents, splits it into a part
// that does not depend on tangents and a part that is linear in them (linearise), and transposes
// the linear part. Both modes therefore agree by construction. The rules and the transposition are
// in internal/derive; the file to read first is reverse.go.
//
// # Names
//
// A derived graph keeps the names of the ports of the original. A transform adds names made of a
// prefix and the name of the port or output: input "tangent/x" and output "tangent/y" of JVP, input
// "cotangent/y" and output "grad/x" of the reverse transforms, "series/2/x" and "series/2/y" of
// Jet. If the graph already has names with that prefix, because it is a derivative itself, the
// prefix is numbered: a second Grad adds "grad2/x". [TangentName], [CotangentName], [GradName],
// [HVPName] and [SeriesName] return the names of the first level, [AtLevel] those of later levels.
//
// # State
//
// State updates are auxiliary outputs: a transform keeps them but does not differentiate them. A
// state can be differentiated by, like any port; the derivative is by its value at the start of the
// run.
//
// # Conventions
//
// At points where an op is not differentiable, the derivative is the one that package ops
// documents. A zero tangent times an infinite coefficient is zero, so a branch that a select masks
// out does not turn a gradient into NaN.
package autodiff
