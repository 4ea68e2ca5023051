// Package ops defines the operations of a graph: one [ir.Def] each, with its
// shape rule, meaning, derivative, transposition, batching rule, lowering and
// samples in one place, and the constructors that add them to a builder.
//
// # Constructors
//
// A constructor takes the builder and values and returns a value; errors stay
// in the builder. Constructors of elementwise ops broadcast as NumPy does: axes
// are aligned from the last, missing leading axes and axes of size 1 are
// repeated, and a symbolic size matches itself and 1 alone. They do not change
// element types: [Convert] does. The nodes themselves are strict, so rules and
// passes never meet implicit broadcasting. Axes may be given from the end, -1
// being the last; nodes hold them counted from the front.
//
// # Derivatives
//
// A tangent or cotangent that is the zero [ir.Value] is known to be zero.
// Integers and booleans have no tangents. At points where a function has no
// derivative the rules give
//
//   - relu and abs at 0, sign everywhere, floor, ceil, round, trunc: 0;
//   - activations of several pieces at a kink: that of the constant piece if
//     there is one, and that of the piece on the left if not;
//   - norm and hypot at the origin, std where all elements are equal: 0;
//   - round_ste: 1 everywhere, whatever the function;
//   - max, min, reduce_max, reduce_min at ties: the gradient, shared equally;
//   - clamp at a bound: 1 for the operand that is clamped, 0 for the bound;
//   - pow at base 0 for the exponent: 0 where the result is 0 or 1; atan2 at
//     the origin: 0.
//
// Where a derivative is infinite (sqrt, rsqrt and log at 0) it is infinite. It
// does no harm where it is not wanted: rules multiply by [MulZero], which is 0
// where a factor is 0, whatever the other, so a branch that [Select] masks out
// never poisons a result, at any order, and forward and reverse derivatives
// agree where an infinite slope meets one of 0. A plain [Mul] is used only where
// the coefficient is a finite constant other than 0.
package ops
