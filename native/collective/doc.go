// Package collective implements groups of processes that compute together, and their collectives. A
// [Group] is one rank's view, and an [Engine] moves the data. [Local] makes the ranks of one
// process; package tcp connects processes, on one machine or several; package nccl moves the data
// of GPUs; package mpi does both by MPI; package launch reads a process's rank from the environment that torchrun,
// Slurm, mpirun or Kubernetes sets.
//
// A [Mesh] names the axes of a group; collectives of a graph refer to the names. A program is
// compiled for a mesh; before its first run, all ranks compare what they have compiled.
//
// All ranks make the same collectives in the same order. A rank that makes another call, ends, or
// does not come within the deadline of the group ends the group on all ranks, each with an
// [*Error]; [Group.Record] has the last collectives of a rank.
//
// Start reading at [Call], then group.go.
package collective
