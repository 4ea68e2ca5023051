// Package tally counts what a kernel of the loop IR does on a GPU, without running it: operations by unit, the
// sectors and lines of memory that the lanes of a warp access together, bank conflicts, and multiply-adds with the
// padding of their tiles.
//
// Its input is a [loop.Kernel]; its output are [Counts], and with a profile a time. Unlike the cost model of package
// sched, which describes what a schedule is meant to do, it reads the kernel that was emitted. Start reading at
// tally.go.
//
// It evaluates integers alone, for some warps of some workgroups, and two iterations of a loop, the second of which
// stands for all after it. What memory holds is unknown: integers are taken to be small and random, of a branch that
// depends on data both sides are run. A value is computed again only if something that it depends on has changed, as after
// a compiler has moved invariants out of loops and shared equal expressions.
package tally
