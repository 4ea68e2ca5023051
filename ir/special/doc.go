// Package special provides special functions of mathematics and of statistics as functions over a
// builder, beside those that are ops: [ops.Erf], [ops.Erfc], [ops.Erfinv], [ops.Lgamma],
// [ops.Digamma], [ops.Polygamma], [ops.I0e], [ops.I1e], [ops.Logit], [ops.XLogY], [ops.XLog1pY].
//
//	p := special.Gammainc(b, a, x) // the gamma distribution's cumulative probability
//
// Operands are of one float type and broadcast as those of elementwise ops do; the result has their
// type. f16 and bf16 are computed in f32. Outside its domain a function is NaN.
//
// A function is a composition of ops, which the compiler fuses as if its caller had written them. Start reading at
// elementary.go, whose helpers all use, then normal.go; coefficients.go has the series, and fraction.go the
// derivatives within loops.
//
// # Errors
//
// Bounds in ulp (units in the last place), in f32 and f64, are those that tests hold against values of
// mpmath, by the reference implementation and by the native CPU:
//
//   - Entr, RelEntr, Erfcx, LogNdtr, Ndtri, E1: 8; KLDiv: 16; Ei: 8 but near its zero, 0.3725, where the
//     absolute error is 2 units of the precision;
//   - J0, J1: an absolute error of 4 units of the precision, since they have zeros;
//   - StirlingRemainder, StirlingRemainderSlope: 8, or where that is larger an absolute error of 4 units of the precision;
//   - Zeta: 16; GammaEntropy: 32; LogBeta: 16, or where that is larger an absolute error of 8 units of the
//     precision, since it has zeros;
//   - Gammainc, Gammaincc: 64, and Betainc: 1024, for parameters up to 100. Relative errors grow with
//     the parameters, and with the exponents of results that are nearly 0.
//
// # Derivatives
//
// All functions have derivatives of every order, by each operand that is not an integer. Infinite
// derivatives, as those of Ndtri at 0 and 1 and of Entr at 0, are infinite. Where a function is NaN
// derivatives have no meaning.
package special
