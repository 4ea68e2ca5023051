// Package serial lowers groups of every kind but sorts for targets with one thread per workgroup,
// such as the CPU in a page.
//
// Input: a group. Output: a kernel of loop nests whose workgroups share the outermost loop, if
// any. serial.go has the nests and how they are divided; reduce.go, contract.go and scatter.go
// what these kinds need, guard.go what loads of padded tensors do. Read serial.go first.
package serial
