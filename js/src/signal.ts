/**
 * Functions of signals over a builder: cosine transforms, interpolation. Spectra are ops: `fft`, `rfft`, `stft`.
 *
 * @module
 */

export { dct, type DCTOptions, idct, interp, type InterpOptions } from './functions/signal.js';
