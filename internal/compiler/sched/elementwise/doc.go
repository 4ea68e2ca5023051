// Package elementwise lowers maps: results whose elements are computed independently.
//
// Input: a group of kind MapKind, or several that are fused horizontally. Output: a kernel with
// one element, a word or a vector per thread (map.go), or one that transposes operands through
// workgroup memory (transpose.go). parts.go has maps as [emit.Part]s. Read map.go first.
package elementwise
