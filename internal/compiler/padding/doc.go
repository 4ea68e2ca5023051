// Package padding compiles graphs with open sizes. [Analyze] takes a graph with symbols and finds,
// node by node, where values have padding once symbols are bound to sizes larger than the true
// ones, and which padding an op would read. [Analysis.Graph] binds the symbols and replaces padding
// that an op would read by the neutral element of the op. The elements of results are then those of
// the graph bound to the true sizes, which are inputs ([padded.SizeInput]) of the padded graph.
//
// The effect of padding on an op is its rule, [ir.Def.Pad]; rules.go has those of package ops. For
// an op without a rule, or whose rule cannot be satisfied, Analyze returns an error that names the
// node: such a graph is compiled for true sizes.
package padding
