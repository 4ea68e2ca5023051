// Package sim executes kernels of the loop IR on the CPU and checks every access. A *Fault is
// an error on every device, whatever the dialect: an access out of bounds, a data race, a
// divergent barrier, a read of uninitialised memory.
//
// Its input is a [loop.Kernel] and a [Launch]; its output are the contents of the bound buffers
// or a fault. It is the reference that code generators and schedules are tested against. Start
// reading at sim.go.
//
// The threads of a workgroup run in lock step, statement by statement. That is one of the
// orders a device may choose; races are found by recording the accesses to each element since
// the last barrier, so none hides behind the order. Roles run as coroutines, each until it
// waits; which accesses of other roles happened before is derived from the barriers it has
// waited for (vector clocks), not from the order of simulation.
//
// Arithmetic is that of scalar.Eval in mode Exact: each operation is rounded to its type.
// Devices may contract a product and a sum, so their results can differ in the last bits.
package sim
