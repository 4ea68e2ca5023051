// Package derive walks graphs by the rules of their ops: forward derivatives,
// partial evaluation, transposition and batching, one node after the other.
//
// It lies below package ops, because an op that owns subgraphs (scan, cond, a
// custom derivative) applies the transforms to them, and knows no op but add.
// Package autodiff is its public face: names, options and errors are there.
//
// Ports and outputs are positional here. The functions take a builder and add
// nodes to it; what goes wrong is recorded there, as in [ir.Builder]. An
// invalid [ir.Value] is a tangent or cotangent known to be zero.
package derive
