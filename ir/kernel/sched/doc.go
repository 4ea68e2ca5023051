// Package sched makes kernels of groups: it decides what each thread of a device
// does.
//
// [Schedule] returns one [Launch] of a group or several in order, each a kernel in
// the loop IR with the tensors it binds. There is a schedule for maps (map.go), for
// reductions with any number of stages (reduce.go, and split.go for few long
// rows), for contractions in tiles (contract.go, tile.go) and by multiply-adds of warp
// groups (mma.go), attention, written once for both (attend.go, attend_plain.go,
// attend_mma.go), running combinations (prefix.go), scatters (scatter.go, runs.go),
// sorts (sort.go, radix.go) and sums of many values (total.go). Pieces of work side by side become
// kernels when it is known where tensors lie (bundle.go, segments.go).
//
// All of them collect a kernel's pieces in an emitter (emit.go); those whose loops and
// branches depend on data write it statement by statement (writer.go). A [Cache] gives equal groups the same kernels.
//
// Targets with one thread have schedules of their own (serial.go and serial_*.go),
// but for sorts: nests of loops, the innermost over lanes.
//
// What an element is made of is none of its business: every schedule asks a
// [group.Reader]. Which nodes make a group is settled before, where the tensors lie
// comes after.
package sched
