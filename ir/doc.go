// Package ir defines the graph that all of rlx works on: values with an element type and a shape,
// nodes that compute values, and graphs of nodes.
//
// A [Graph] is a pure function and immutable. [Build] makes it with a [Builder], which records the
// first error together with the caller's line:
//
//	g, err := ir.Build("affine", func(b *ir.Builder) {
//		x := b.Input("x", ir.F32, ir.N(4))
//		w := b.Param("w", ir.F32, ir.N(4))
//		b.Output("y", ops.Mul(b, x, w))
//	})
//
// A layer is a Go function that declares its parameters, or a graph that is called
// ([Builder.Call]). [Builder.Scope] separates the names of the parameters of several layers.
//
// The [Def] of an op defines it completely: shape rule, reference implementation, derivative,
// batching rule and lowering, all in one file of package ops.
//
// A graph is the first form in the compiler's pipeline. Its input is a Go program, the TypeScript
// API or the text form ([Parse]). Transforms (autodiff, passes) read a graph and build another one;
// the compiler partitions it into groups and lowers these to kernels through [Lowering]. The files
// to read first are graph.go and def.go.
//
// State (trained weights, moments, counters) is a declared pair of an input and an output of the
// same name and type; the graph itself never mutates anything. See [Builder.State].
package ir
