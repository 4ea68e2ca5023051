// Package scalar is the language of scalar expressions: the bodies of
// elementwise code, index arithmetic, and the leaf expressions of the loop IR.
//
// An expression is a pointer to an immutable Node, so expressions form directed
// acyclic graphs and sharing a pointer shares a value. They are made by one
// constructor an operation (Add, Exp, Select, ...), which checks types, folds
// constants and applies the identities that hold for every operand. A type
// error in a constructor is a bug of the caller, not of a user's program: it
// panics with a *TypeError, which Catch turns into an error.
//
// What can be done with an expression:
//
//   - Eval and Compile give it its meaning, with every operation rounded to its
//     type as a device does, or throughout in float64 as a reference.
//   - Simplify rewrites integer arithmetic with the ranges of its variables;
//     Range returns those of any expression.
//   - Expand replaces operations that a kernel dialect lacks, or computes
//     loosely, by sequences with stated error bounds.
//   - BindShared orders shared subexpressions into local variables, for printers.
//   - Walk, Substitute, Equal, Key and Print do what their names say, each
//     visiting a shared node once.
//
// # Meaning
//
// All operands of an operation are evaluated, also both sides of Select; so the
// index of a Load must be in bounds whatever the condition around it. Integer
// arithmetic wraps in two's complement. A zero divisor of an integer division
// or remainder counts as one, as WGSL has it: x/0 is x and x%0 is 0. A shift
// counts modulo the width of its type. Conversions from float to integer
// truncate, saturate, and give 0 for NaN. Min and Max return NaN if an operand
// is NaN. Check alone has an effect: it reports a condition that does not hold.
package scalar
