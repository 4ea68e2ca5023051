// Package ops defines the operations of a graph: one [ir.Def] each, with its
// shape rule, reference implementation, derivative, transposition, batching rule and lowering
// in one place, and the constructors that add them to a builder. The samples by which tests try
// each op are in package ir/ops/samples.
//
// # Files
//
// Start reading at define.go, then arith.go, the family with the simplest rules, and softmax.go, a composite.
// Each file is a family of ops: constants, attributes, definitions, rules and constructors. Package
// samples has a file for each group of families, named by its first word, and samples, its framework.
//
//   - framework: define (makers of definitions), domain (element types), attrs, axes, rules
//     (of derivatives and batching), subgraph (graphs that a node owns);
//   - elementwise: arith, power, trig, compare, complex, special, numeric, convert, const,
//     identity, activation, bits;
//   - moves: shape, broadcast, concatenate, slice, pad, tile, diagonal, windows, resize;
//   - reductions, scans and orders: reduce, argreduce, statistics, softmax, cumulative,
//     associative, recurrence, sort, search;
//   - indices: gather, scatter;
//   - products: dot, einsum, conv, conv_layers, moe;
//   - control flow: cond, while, scan, checkpoint, linear_call;
//   - layers: dense, norm, pool, dropout, attention, attention_cached,
//     attention_cached_kernel, attention_cached_warps, attention_cached_warps_js, rope, rnn, state_space, loss, loss_class;
//   - random numbers: random, random_distributions, sampling;
//   - matrices: linalg (batches of matrices), linalg_cholesky, _lu, _qr, _eigen, _solve,
//     _functions and _reference (reference implementations), and the kernels that devices
//     run for them, linalg_kernels, linalg_*_kernel and, by a library, linalg_library;
//   - signals: signal, fft, dft, dft_kernel;
//   - rounded numbers: quantize, fake_quant, dequantize;
//   - devices: collective, collective_calls, collective_calls_js, collective_routine.
//
// # Constructors
//
// A constructor takes the builder and values and returns a value; errors stay
// in the builder. Constructors of elementwise ops broadcast as NumPy does: axes
// are aligned from the last, missing leading axes and axes of size 1 are
// repeated, and a symbolic size matches itself and 1 alone. They do not change
// element types: [Convert] does. The nodes themselves are strict, so rules and
// passes never see implicit broadcasting. Axes may be given from the end, -1
// being the last; nodes hold them counted from the front.
//
// # Derivatives
//
// A tangent or cotangent that is the zero [ir.Value] is known to be zero.
// Integers and booleans have no tangents. At points where a function has no
// derivative the rules give
//
//   - relu and abs at 0, sign everywhere, floor, ceil, round, trunc: 0;
//   - piecewise activations at a kink: that of the constant piece if
//     there is one, and otherwise that of the piece on the left;
//   - norm and hypot at the origin, std where all elements are equal: 0;
//   - round_ste: 1 everywhere (straight-through estimator);
//   - max, min, reduce_max, reduce_min at ties: equal shares;
//   - clamp at a bound: 1 for the operand that is clamped, 0 for the bound;
//   - pow at base 0 for the exponent: 0 where the result is 0 or 1; atan2 at
//     the origin: 0.
//
// Infinite derivatives (sqrt, rsqrt and log at 0) are infinite. They do not leak through masks:
// rules multiply by [MulZero], which is 0 where either factor is 0. So a branch that [Select] masks
// out does not affect a result, at any order, and forward and reverse derivatives agree where an
// infinite derivative is multiplied by 0. A plain [Mul] is used only if the coefficient is a finite
// nonzero constant.
//
// At singular matrices det, cofactor, matrix_power with a nonnegative exponent and, along
// perturbations of the same rank, pinv have finite derivatives of every order. slogdet is
// 0 and -Inf there; inv, solve and their derivatives are not finite.
//
// # NaN
//
// NaN propagates. Orders (sort, top_k) take it for larger than all numbers, argmax and
// argmin find the first one, and comparisons are those of IEEE 754, as in JAX and PyTorch.
// Package ir/ops/nan has the rule of each op, and says which devices propagate it.
//
// # Errors
//
// Elementary functions are within 4 ulp (units in the last place) of the exact value in f64. In f32
// they are within the bounds of [scalar.ErrorBound], or 4 ulp for functions that it does not list.
// This holds for every argument, including those near zeros and branch points, subnormal and huge
// ones. Tests compare the reference implementation, the native CPU, and simulated kernels as WebGPU
// and WebAssembly run them with values of mpmath. Devices that flush subnormal numbers take them
// for 0, and those with inexact division or square root add the error that package scalar states.
package ops
