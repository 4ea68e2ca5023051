// Package passes simplifies graphs after differentiation and before fusion. Its input
// and output are graphs ([ir.Graph]). [Run] inlines composites that the backend does not
// claim, applies algebraic identities, folds constants, and eliminates common
// subexpressions and dead code. [Mixed] lowers products to half precision, [LowerComplex] lowers
// complex values to real ones.
// Read passes.go first: it has the table of passes.
//
// Run preserves the results bit for bit as far as the ops define them, NaN, infinities
// and the sign of zero included. It drops ops that only derivatives need
// (stop_gradient), so a graph is differentiated first.
package passes
