// Package loop is the loop IR of kernels, which every code generator prints: typed scalar
// expressions in statements that every thread of every workgroup of a [Kernel] executes, over
// arrays in storage, shared and private memory.
//
// It lies between schedules and code generators: package sched, or an op, builds kernels;
// passes here rewrite them; dialects print them as WGSL, CUDA C++, MSL or WebAssembly. Start
// reading at kernel.go.
//
// [Check] verifies the rules that printers and the simulator rely on, and [Caps.Check] the
// limits of a target, which [Caps] describes. [Hoist] is loop-invariant code motion, [Unroll]
// unrolls loops and promotes private arrays to registers, [MergeArrays] lets arrays share a
// binding, and [Widen] legalises types that a target only stores. Asynchronous copies and
// multiply-adds ([CopyAsync], [CopyTMA], [Mma]) come with the statements that wait for them.
// [Roles] express warp specialisation, synchronised by [Mbarrier].
//
// The package knows neither graphs, ops nor schedules.
package loop
