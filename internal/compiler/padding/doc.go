// Package padding compiles graphs whose sizes are open. [Analyze] takes a graph with symbols and finds,
// node by node, where values have padding once symbols are bound to sizes larger than the true ones,
// and which padding an op would see. [Analysis.Graph] binds the symbols and replaces padding that an
// op would see by the neutral element of the op, so that elements of results are those of the graph
// bound to the true sizes, which are inputs ([SizeInput]) of the padded graph.
//
// What an op makes of padding is its rule, [ir.Def.Pad]; rules.go has those of package ops. An op
// without a rule, or whose rule cannot hold, makes Analyze return an error that names the node: such
// a graph is compiled for true sizes.
package padding
