// Package scan lowers running combinations along an axis, such as cumulative sums.
//
// Input: a group of kind PrefixKind. Output: one kernel, or two to three where rows are split
// into chunks (chunks.go). A block scan has its elements in workgroup memory (block.go), a
// register scan in vectors of registers (register.go); a serial scan is for adjacent rows
// (serial.go). space.go picks one and its sizes; scan.go is the scan that all of them compute. Read
// space.go first.
package scan
