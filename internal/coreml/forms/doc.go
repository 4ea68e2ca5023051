// Package forms translates ops to MIL. Each op has one form, in the file of its family; a table
// finds it by the op's name.
//
// An op with a scalar rule needs no form: scalar.go translates any scalar expression. A composite
// without a form is inlined. Any other op is refused, with a reason, before anything is written.
//
// # Values
//
// A value of element type f32, f16, i32 or bool and of rank 1 to 5 is a tensor of the same shape. A
// value of rank 0 has shape [1], because inputs and outputs of Core ML need an axis. Core ML has at
// most five axes: the leading axes of a value of higher rank are merged into one, and forms work on
// views. A broadcast value stays unbroadcast through elementwise operations, which broadcast their
// operands.
//
// # Where MIL is unspecified
//
// rlx specifies the results for NaN, ties, indices out of range and division by zero; MIL leaves
// some of them open. Forms enforce rlx's results where they can: they clamp indices and replace the
// elements read there, make sorts stable by a second sort of positions, and guard integer division.
// Core ML decides whether maximum, minimum and reductions keep a NaN, how integers overflow, in
// which order scatter applies updates to one position, and how exact its functions are. A fault of
// check_index is a separate output, on request ([Emitter.Faults]).
package forms
