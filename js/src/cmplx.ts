/**
 * Elementwise functions of complex numbers over a builder, of type c64, and eigenvalues. Arithmetic is of ops: `add`, `mul`,
 * `div`, `conj`.
 *
 * @module
 */

export { abs, angle, cos, cosh, exp, log, polar, pow, sin, sinh, sqrt } from './functions/cmplx.js';
export { eig, eigvals } from './functions/eig.js';
