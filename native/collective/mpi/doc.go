// Package mpi moves the data of a [collective.Group] by MPI, for clusters of CPUs: Open MPI, MPICH and those that
// are compatible with it, and libraries with the binary interface of MPI 5. The library is loaded at run
// time; processes are started by mpirun, mpiexec or srun:
//
//	group, err := mpi.Join(ctx, collective.Options{})
//	trainer, err := session.Train(ctx, loss, rlx.Training{Parallel: &rlx.DataParallel{Group: group}})
//
// MPI sends bytes, and this package computes sums, in the order of ranks: all ranks have the bits of the
// reference, for every element type. An all-reduce is an MPI_Ialltoallv of parts and an MPI_Iallgatherv of
// their sums, of as many bytes as a ring. Ranks compare what they call before each collective. All calls of MPI come from one
// thread, and none of them blocks, so that a deadline ends any of them.
//
// Start reading at [Join], then engine.go.
package mpi
