// Package forms says what each op is in MIL: one form for an op, in the file of
// its family, found by name in one table.
//
// An op with a scalar rule needs no form of its own: scalar.go prints any scalar
// expression. A composite without a form is taken apart into what it is made of.
// What has neither is refused with a reason before anything is written.
//
// # Values
//
// A value of element type f32, f16, i32 or bool and of rank 1 to 5 is a tensor of the
// same sizes. One of rank 0 has the sizes [1], since inputs and outputs of Core
// ML have an axis. Core ML has no more than five axes: of a value with more, the
// first ones lie together as one, and forms work on views. A value that only
// repeats another along some axes stays small for as long as elementwise
// operations take it, which repeat their operands by themselves.
//
// # Where MIL says less
//
// rlx says what NaN, ties, indices outside and divisions by zero give; MIL leaves
// some of that open. Forms compute it where they can: indices are made to lie
// inside and what they read is replaced, sorts are made stable by a second sort
// of places, integers are not divided by zero. What is left to Core ML: whether
// maximum, minimum and reductions keep a NaN, what an integer does when it
// overflows, in which order updates with one place arrive at scatter with set,
// and how exact its functions are. Whether an index is one that check_index
// refuses is a separate output, on request ([Emitter.Faults]).
package forms
