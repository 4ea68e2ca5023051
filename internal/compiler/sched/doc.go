// Package sched makes kernels of groups: it decides what each thread of a device
// does.
//
// A [Schedule] is the choice of a family of algorithms and of its sizes. [Candidates]
// lists those that are worth comparing for a group, with their costs; [Emit] returns
// the group's launches by one of them, each a kernel in the loop IR with the tensors it
// binds, and a [Cache] those by the first, or by the one that the group was tuned to.
// The ways of each kind of group stand in files *_ways.go.
//
// There are kernels for maps (map.go, vector.go, turned.go), for reductions with any
// number of stages (reduce.go, and split.go for few long rows), for contractions in tiles
// (contract.go, tile.go) and by multiply-adds of warp groups (mma.go), attention, written
// once for both (attend.go, attend_plain.go, attend_mma.go), running combinations
// (prefix.go), scatters (scatter.go, runs.go), sorts (sort.go, radix.go) and sums of many
// values (total.go). Pieces of work side by side become kernels when it is known where
// tensors lie (bundle.go, segments.go).
//
// All of them collect a kernel's pieces in an emitter (emit.go); those whose loops and
// branches depend on data write it statement by statement (writer.go). A [Cache] gives equal groups the same kernels.
//
// Targets with one thread have schedules of their own (serial.go and serial_*.go),
// but for sorts: nests of loops, the innermost over lanes.
//
// What an element is made of is none of its business: every schedule asks a
// [fusion.Reader]. Which nodes make a group is settled before, where the tensors lie
// comes after.
package sched
