// Package reduce lowers reductions, fused with their prologues, epilogues and the stages between
// them.
//
// Input: a group of kind ReduceKind or TotalKind. Output: a kernel in which the lanes of a
// workgroup share rows, or two kernels where rows are split over workgroups (split.go). space.go
// picks lanes, rows and split; reduce.go emits the kernel; combine.go combines the accumulators of
// lanes; total.go sums all elements of several tensors. Read space.go first.
package reduce
