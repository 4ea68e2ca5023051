// Package dtype defines the element types of tensors and what each target supports.
//
// A DType is a small number. Its name, width and class come from the table in table.go, the file to
// read first; its support by a dialect comes from the table in support.go ([DType.On]). All other
// packages of the compiler use these types; the package depends on none of them. Round and Wrap
// convert one value in the widest type to what the narrow type would hold, for constant folding and
// the reference implementation; the bulk converters (F16ToF32, F32ToBF16, ...) convert slices, for
// hosts that store numbers in 16 bits.
//
// Packed types are quantised blocks: a fixed number of elements share a few scales and are stored
// together. They have no size per element; only whole blocks have a size in bytes.
package dtype
