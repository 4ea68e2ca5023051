// Package scalar defines scalar expressions: the bodies of elementwise ops, index arithmetic, and
// the leaf expressions of the loop IR. Rules of ops and lowerings build them; the schedules
// substitute and simplify them; the printers and the interpreter consume them. The file to read
// first is node.go.
//
// An expression is a pointer to an immutable [Node]. Expressions are directed acyclic graphs:
// sharing a pointer shares the value. Each operation has a constructor (Add, Exp, Select, ...),
// which checks types, folds constants and applies identities that hold for all operands. A type
// error in a constructor is a bug of the caller and not of a user's program: it panics with a
// [*TypeError], which [Catch] returns as an error.
//
// Functions on expressions:
//
//   - Eval and Compile evaluate an expression, with every operation rounded to its type as on a device, or in float64 as a reference.
//   - Simplify simplifies integer arithmetic by value range analysis; Range returns the range of an expression.
//   - Expand replaces operations that a kernel dialect lacks, or computes inaccurately, by sequences with stated error bounds.
//   - BindShared binds common subexpressions to local variables, for printers.
//   - Walk, Substitute, Equal, Key and Print visit a shared node once.
//
// # Semantics
//
// All operands of an operation are evaluated, also both branches of Select, so the index of a Load
// must be in bounds under any condition. Integer arithmetic wraps in two's complement. A zero
// divisor of an integer division or remainder counts as one, as in WGSL: x/0 is x and x%0 is 0. A
// shift count is taken modulo the width of the type. Conversions from float to integer truncate,
// saturate, and give 0 for NaN. Min and Max return NaN if an operand is NaN. Only Check has a side
// effect: it reports a false condition. Of complex numbers there are arithmetic, Eq and Ne, and the
// operations on their parts; functions of them compose these, as those of package ir/cmplx do.
package scalar
