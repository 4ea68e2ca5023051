// Package kernel is the house of what stands between a graph and a dispatch. It
// has no code of its own. A value goes through its rooms one way:
//
//   - package group cuts the graph of the value's node into groups, each of which
//     is computed by a kernel or a few, and knows no threads;
//   - package sched decides what each thread of a device does, and writes the
//     group's kernels for it;
//   - package loop is what kernels are written in. It stands below the ops and
//     knows no graph.
//
// Then package plan gives the tensors memory and lists the dispatches. Package sim
// runs kernels, package clike prints what the dialects of C have in common, and
// package kerneltest has kernels written by hand.
package kernel
