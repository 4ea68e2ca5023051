// Package scan lowers running combinations along an axis, such as cumulative sums.
//
// Input: a group of kind PrefixKind. Output: one kernel, or two to three where rows are split
// into chunks. A block scan has its elements in workgroup memory (block.go), a register scan in
// vectors of registers (register.go); a serial scan is for adjacent rows (serial.go). space.go
// picks one and its sizes; scan.go has what all of them compute, and chunks. Read space.go first.
package scan
