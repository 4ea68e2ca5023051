// Package collective has groups of processes that compute together, and their collectives: a
// [Group] is one rank's view, and an [Engine] moves the data. [Local] makes the ranks of one
// process; package tcp below connects processes, on one machine or several; package nccl moves the data of
// GPUs beside it; package launch reads
// from the environment which rank a process is, as torchrun, Slurm, mpirun and Kubernetes say it.
//
// A [Mesh] gives the axes of a group names, which collectives of a graph refer to. A program is
// compiled for a mesh; before its first run, all ranks compare what they have compiled.
//
// All ranks make the same collectives in the same order. A rank that makes another call, ends, or
// does not come within the deadline of the group ends the group on all ranks, each with an
// [*Error]; [Group.Record] has the last collectives of a rank.
//
// Start reading at [Call], then group.go.
package collective
