// Package indexed lowers sorts and scatters, which move elements to places known only at run time.
//
// Input: a group of kind SortKind or ScatterKind. Output: a bitonic network or the launches of a
// radix sort (sort.go); a scatter by atomics, by search, or by sorting its updates (scatter.go).
// Read sort.go first.
package indexed
