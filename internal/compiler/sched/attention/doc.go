// Package attention lowers attention, forward and backward, to kernels that keep no scores in
// memory (flash attention).
//
// Input: a group of kind AttentionKind. Output: a kernel for the results, or for the cotangents of
// queries, of keys and values, and of a mask, with copies of operands before them. space.go lists
// the candidates, with costs by cost.go. attention.go is the frame of all kernels: blocks of
// rows against blocks of columns. forward.go and backward.go are what they compute; plain.go,
// subgroup.go and mma.go how threads hold tables and multiply: in plain registers, subgroup
// fragments, or warp-group MMA. Read space.go first.
package attention
