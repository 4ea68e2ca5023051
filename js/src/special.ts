/**
 * Special functions of mathematics and of statistics over a builder, beside those that are ops: `erf`, `erfc`, `erfinv`,
 * `lgamma`, `digamma`, `polygamma`, `i0e`, `i1e`, `logit`, `xlogy`, `xlog1py`. Operands are of one float type and are broadcast;
 * outside its domain a function is NaN. All have derivatives of every order, by each operand.
 *
 * @module
 */

export { betainc, gammainc, gammaincc, gammaQuantileSlope } from './functions/incomplete.js';
export { e1, ei, entr, erfcx, gammaEntropy, j0, j1, klDiv, logBeta, logNdtr, ndtri, relEntr, stirlingRemainder, stirlingRemainderSlope, zeta } from './functions/special.js';
