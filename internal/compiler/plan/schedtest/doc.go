// Package schedtest compiles graphs by chosen schedules and runs them in the simulator, for the
// tests of package plan and of the packages below sched.
//
// Input: a graph, a target and the schedules of its groups. Output: the kernels, or the names of
// those that ran once their results agreed with the reference implementation. Read run.go first.
package schedtest
