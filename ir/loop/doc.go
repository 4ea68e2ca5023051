// Package loop is the loop IR, which all dialects print: typed scalar expressions
// in statements that every thread of every workgroup of a [Kernel] runs, over
// arrays in device memory, in workgroup memory and of a thread's own.
//
// A kernel is built as a value, or by a schedule (package sched). [Check] says
// whether it obeys the rules that the printers and the simulator rely on, and
// [Limits.Check] whether a device takes it. [Hoist] and [Unroll] rewrite bodies,
// [MergeArrays] lets arrays share a binding. [Widen] takes out the arithmetic of
// types that a target only stores. Copies and multiply-adds that go on beside a
// thread's other work ([CopyAsync], [CopyBox], [Mma]) are said with what waits for them.
// [Roles] give threads different work side by side, which barriers with phases
// ([Mbarrier]) keep in step. [Caps] is what a target can do, with types too.
//
// The package knows neither graphs nor ops nor how work is laid over threads: so
// whatever stands above it may write kernels, an op too.
package loop
