// Package autodiff turns graphs into graphs that compute their derivatives:
// forward ([JVP]), reverse ([VJP], [Grad], [ValueAndGrad]), mixed and of higher
// order ([HVP], [JacobianForward], [JacobianReverse], [Hessian], [NthOrder],
// [Directional]), as Taylor series along a curve ([Jet]), in two graphs
// ([SplitVJP]), and graphs that work on whole batches ([Vmap]). Package sparse has
// Jacobians and Hessians of which most is zero.
//
// Functions are differentiated within a graph: [GradOf], [ValueAndGradOf],
// [VJPOf] and [JVPOf]. What reverse mode keeps of the way forward is said by a
// [Policy], or by hand with [Checkpoint].
//
// There is one rule for each op, its JVP. Reverse mode splits the graph of
// tangents into what is known without them and a part that is linear in them,
// and transposes that part, so that both modes agree by construction. A result
// is a graph like any other: it can be differentiated again.
//
// # Names
//
// A derived graph keeps the ports of the original under their names. What a
// transform adds is named after what it belongs to: input "tangent/x" and
// output "tangent/y" of JVP, input "cotangent/y" and output "grad/x" of the
// reverse transforms, "series/2/x" and "series/2/y" of Jet. Where the graph has
// names with that prefix already, because it is a derivative itself, the prefix is
// numbered: "grad2/x" is what a second Grad adds. [TangentName], [CotangentName],
// [GradName], [HVPName] and [SeriesName] give the names of the first level,
// [AtLevel] those of the others.
//
// # State
//
// The updates of states are auxiliary outputs: they are kept, and what they
// depend on counts for no derivative but that of a plain output. A state can be
// differentiated by, like any port: by its value at the start of the run.
//
// # Conventions
//
// Where a function has no derivative the value is that of the documentation of
// package ops. The product of a zero tangent and an infinite coefficient is
// zero: a branch that a select masks out does not poison a gradient.
package autodiff
