// Package ir holds the graph that everything in rlx is written against:
// values with a dtype and a shape, nodes that make values, and graphs of nodes.
//
// A [Graph] is pure and immutable. It is made by [Build], whose [Builder] keeps
// the first error together with the line of the caller that caused it:
//
//	g, err := ir.Build("affine", func(b *ir.Builder) {
//		x := b.Input("x", ir.F32, ir.N(4))
//		w := b.Param("w", ir.F32, ir.N(4))
//		b.Output("y", ops.Mul(b, x, w))
//	})
//
// A layer is a Go function that declares its parameters, or a graph that is called
// ([Builder.Call]); [Builder.Scope] names the parameters of one apart from those of the next.
//
// What an op means is told by its [Def]: shape rule, reference meaning,
// derivative, batching rule and lowering, all in one file of package ops.
// Transforms (autodiff, passes) read a graph and build another one.
//
// State (weights under training, moments, counters) is a declared pair of an
// input and an output of the same name and type; the graph itself never
// mutates anything. See [Builder.State].
package ir
