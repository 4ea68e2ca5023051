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
//
// At singular matrices det, cofactor, matrix_power with an exponent from 0 on
// and, along changes that keep the rank, pinv have finite derivatives of every
// order. slogdet is 0 and -Inf there, inv and solve have elements that are not
// finite, and so are their derivatives.
//
// # NaN
//
// NaN shows: what is computed of it is NaN. Orders (sort, top_k) take it for
// larger than all numbers, argmax and argmin find the first one, and comparisons
// are those of IEEE 754, as in JAX and PyTorch. Package ir/ops/nan has the rule of each op, and
// says which devices keep it.
//
// # Errors
//
// Elementary functions are within 4 units in the last place of the true value
// in f64, and in f32 within the bounds of [scalar.ErrorBound], or 4 for functions
// that it does not list, for every argument: near zeros and
// branch points, for subnormal and for huge ones. Tests hold the plain meaning,
// the native CPU, and kernels in the simulator as WebGPU and WebAssembly run
// them to values of mpmath. Devices that flush subnormal numbers take 0 for them, and those
// with a loose division or square root add to a bound what package scalar says.
package ops
