// Package dtype names the element types of tensors and says what each target
// can do with them.
//
// A DType is a small number. Its name, width and class come from one table
// (table.go); what a target can do with it comes from another (On). Numbers
// move between widths in two ways: Round and Wrap take one value in the widest
// type and return what the narrow type would hold, which is what constant
// folding and the reference evaluators need; the bulk converters
// (F16ToF32, F32ToBF16, ...) move slices, for hosts that keep numbers in 16 bits.
//
// Packed types are quantised blocks: a fixed number of elements share a few
// scales and are stored together, so they have no size per element and only
// whole blocks have a size in bytes.
package dtype
