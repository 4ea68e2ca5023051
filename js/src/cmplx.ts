/**
 * Elementwise functions of complex numbers over a builder, of type c64. Arithmetic is of ops: `add`, `mul`, `div`, `conj`.
 *
 * @module
 */

export { abs, angle, cos, cosh, exp, log, polar, pow, sin, sinh, sqrt } from './functions/cmplx.js';
