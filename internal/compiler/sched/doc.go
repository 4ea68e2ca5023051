// Package sched lowers fusion groups to kernels. It stands between package fusion, which
// decides the nodes of a group, and package plan, which places tensors in memory.
//
// Input: a [fusion.Group] and the target's [loop.Caps]. Output: [Launch] values, each a kernel
// in the loop IR with the tensors that it binds. Read candidates.go first.
//
// A [Schedule] is a family of algorithms with its sizes: tiles, threads, splits, pipeline
// stages. [Candidates] lists the schedules of a group with their estimated costs, the default
// first. [Emit] lowers a group by one schedule. A [Cache] uses the tuned schedule or the
// default, and gives equal groups the same kernels. The element expressions come from a
// [fusion.Reader]; schedules only decide which thread computes what.
//
// Maps: map.go, vector.go (vector loads and stores), map_transpose.go (transposes through workgroup
// memory). Reductions: reduce.go, reduce_schedule.go, reduce_combine.go, reduce_vector.go,
// reduce_split.go, total.go. Scans: scan.go and scan_*.go. Contractions: contract.go, contract_tile.go,
// mma.go. Attention: attend.go. Scatters: scatter.go, scatter_sorted.go. Sorts: sort.go,
// sort_radix.go. Horizontal fusion of parts whose addresses are known late: horizontal.go.
// Whole loops in one kernel: persistent.go. Targets with one thread: serial.go and serial_*.go.
//
// An emitter (emit.go) collects the pieces of a kernel. Kernels whose control flow depends on
// data are written statement by statement with a writer (writer.go).
package sched
