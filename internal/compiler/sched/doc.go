// Package sched lowers fusion groups to kernels. It is between package fusion, which decides the
// nodes of a group, and package plan, which places tensors in memory.
//
// Input: a [fusion.Group] and the target's [loop.Caps]. Output: [emit.Launch] values, each a kernel
// in the loop IR with the tensors that it binds. Read candidates.go first.
//
// An [emit.Schedule] is a family of algorithms with its sizes: tiles, threads, splits, pipeline
// stages. [Candidates] lists the schedules of a group with their estimated costs, the default
// first. [Emit] lowers a group by one schedule. A [Cache] uses the tuned schedule or the
// default, and gives equal groups the same kernels. The element expressions come from a
// [fusion.Reader]; schedules only decide which thread computes what.
//
// Each family of algorithms is a package below, and all of them write with package emit:
// elementwise (maps), reduce, scan, matmul (contractions), attention, indexed (sorts and
// scatters), serial (targets with one thread), persistent (whole loops), horizontal (parts whose
// addresses are known late). Kernels that an op brings are bound in kernels.go.
package sched
