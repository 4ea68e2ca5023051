// Package fusion decides which nodes of a graph are computed by one kernel, and which
// values are stored in memory.
//
// It runs after package passes and before package sched. Its input is a graph with
// bound sizes and no composites; its output is a [Partition]: groups of nodes in
// execution order and the tensors they read and write. Start reading at build.go,
// where [Build] runs the steps:
//
//  1. Rewrites: a small cond becomes both branches and a select, and a concatenation
//     of more operands than a kernel can bind becomes a tree of them (rewrite.go). A number
//     by which a row is multiplied is pulled out of products with the row (scale.go). Cached
//     attention gets updates of its caches of its own, which its kernels compute ([Options.Prologues]).
//     What no kernel can compute is an error (supported.go).
//  2. Rematerialisation: a value that is cheap to compute again at each use is not
//     stored (inline.go, by the facts of forms.go and expression.go; keep.go holds the
//     exceptions for tensor cores).
//  3. Fusion: every other node becomes a group (space.go), and groups.go keeps which
//     group depends on which. Groups fuse along producer/consumer edges (fuse.go), where a
//     rule fits (rules.go: maps, prologues and epilogues, stages of reductions) and a
//     kernel can bind what they access (footprint.go); reductions that read the same
//     values fuse (siblings.go), and small maps fuse horizontally (horizontal.go), within
//     a phase of rematerialisation (phase.go).
//  4. States are updated in place where nothing reads the old value later, and get
//     copies otherwise (state.go).
//  5. Tensors are assigned (place.go, copy.go), groups are ordered (order.go), loops and
//     conds get partitions of their own (control.go), and the output of a row-wise group
//     may reuse the buffer of its input (overwrite.go).
//
// The computation of a group is an expression in the coordinates of its elements. A
// [Reader] returns the expression of any element through all fused nodes;
// [Group.Code], [Group.Prefix], [Group.Scatter] and [SortOf] return that of a
// whole group, for backends that schedule groups themselves. [CanonOf] finds equal
// groups.
//
// The package knows of the target only [Options]. Most are a number or a bit: the number of tensors
// a kernel can bind, which branches are worth running alone, from which size positions are 64-bit.
// TensorCores, for targets on which all but products is bound by memory, changes rules of many files (keep.go
// has most of them); a page has none of these, as withTensorCores is false there. What costs time on a
// device is answered by [Policy], which is its [hardware.Profile]: how reductions are split, and what is
// computed again or fused horizontally. Numbers of this package bound expressions, bindings and groups.
// Package sched picks schedules and makes the kernels.
package fusion
