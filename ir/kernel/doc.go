// Package kernel turns graphs into kernels, in three steps.
//
// [Build] cuts a graph into groups of nodes that are computed together and
// returns a [Program]. It first decides which values need no memory, because
// each use can compute them anew (inline.go), then merges what is left along
// the edges (fuse.go) and side by side (siblings.go), settles where states are
// overwritten (state.go) and in which order groups run (order.go). Loops and
// choices have programs of their own (control.go); of a small choice both branches
// are computed (branch.go). A program knows nothing of threads: what a group computes is
// written in the coordinates of its elements, see [Group.Code], which is all
// that backends with code of their own need.
//
// [Program.Schedule] decides what each thread of a device does: a group becomes
// one [Launch] or several, each with a [Kernel] in the loop IR. There is a
// schedule for maps, for reductions with any number of stages, for contractions
// in tiles, for running combinations, scatters and sorts (schedule_*.go). How an
// element is computed, through all that is fused, comes from a reader (access.go)
// in every case.
//
// The loop IR (loop.go) is what all dialects print: typed scalar expressions,
// loops, workgroup memory, barriers. [Check] says whether a kernel obeys its
// rules, package sim runs it, and package clike prints what the dialects of C
// have in common.
package kernel
