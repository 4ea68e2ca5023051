// Package derive transforms graphs by the rules of their ops: JVP (jvp.go), partial
// evaluation into a known and a linear half (split.go), transposition (transpose.go),
// batching (batch.go) and rematerialisation (recompute.go). Reverse mode is JVP, then
// Split, then Transpose. Read jvp.go first.
//
// Its input is a graph and values for its ports, its output the nodes that it adds to a
// builder, before package passes runs. It lies below package ops, because ops with
// subgraphs (scan, cond, custom derivatives) apply the transforms to them. Package
// autodiff is the public API.
//
// Ports and outputs are positional here. Errors are recorded in the builder, as in
// [ir.Builder]. An invalid [ir.Value] is a tangent or cotangent known to be zero.
package derive
