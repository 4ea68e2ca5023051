// Package horizontal fuses parts with equal keys into one kernel.
//
// Input: [emit.Part]s that compute the same in the same arenas, once their tensors are placed.
// Output: a kernel whose workgroups find their part in a table, and the table. There is one file.
package horizontal
