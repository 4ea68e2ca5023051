// Package compiler documents the packages between a graph and a plan. It has no code.
//
//	passes   graph → graph: simplify, fold, CSE, DCE, precision, legalise
//	fusion   graph → groups: what one kernel, or a few, compute together
//	sched    group → kernels: what each thread of a target does
//	plan     kernels → plan: memory, steps, the file
//
// Kernels are written in the loop IR (package ir/loop), which lies below the ops, as an op may
// bring kernels of its own. Package sim runs kernels on the host and finds races, and package
// kerneltest has kernels written by hand. The code generators of the dialects are below
// internal/codegen.
package compiler
