// Package group decides what is computed together, and what lies in memory.
//
// [Build] cuts a graph into groups of nodes and returns a [Partition]:
//
//  1. a small choice becomes both branches and a selection (branch.go), and what
//     joins more than a kernel binds is joined in steps (concat.go);
//  2. values that each use can compute anew need no memory (inline.go; keep.go has the
//     exceptions for tensor cores);
//  3. every other node becomes a group (space.go), and groups merge along the edges
//     (fuse.go, where align.go finds which coordinates are the same) and side by
//     side (siblings.go), as long as a kernel can bind what they touch
//     (footprint.go);
//  4. states are overwritten in place where nothing reads them later (state.go;
//     state_place.go gives the others their copies);
//  5. tensors are placed (build.go), the groups are put in order (order.go), loops
//     and choices get partitions of their own (control.go), and where the target is one
//     for it rows lie where what they are made of lay (overwrite.go).
//
// What a group computes is written in the coordinates of its elements. A [Reader]
// gives the expression of any element through all that is fused; [Group.Code],
// [Group.Prefix], [Group.Scatter] and [Group.Sort] give the whole of a group, which
// is all that a backend with code of its own needs. [CanonOf] tells which groups
// are equal.
//
// Of the target the package knows what [Options] holds: how many tensors a kernel binds, which
// branches are worth running alone, from which size positions are counted in 64 bits, and
// whether products go by tensor cores. It picks no workgroup sizes and makes no
// kernels; package sched does. One exception is split.go, which cuts long reductions by the
// number of processors of a large GPU.
package fusion
