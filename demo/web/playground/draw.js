// What a program of the playground can draw: charts and pictures beside its log.

import { lineHere } from './place.js';

const show = (figure, buffers = []) => globalThis.postMessage?.({ type: 'figure', line: lineHere(), ...figure }, { transfer: buffers });

/**
 * Draws curves, or dots, over one pair of axes. A figure with the same title is replaced.
 * @param {string} title
 * @param {Record<string, {x: ArrayLike<number>, y: ArrayLike<number>, dots?: boolean}>} series by name
 * @param {{log?: boolean, x?: [number, number], y?: [number, number]}} [options] log makes the vertical axis
 *   logarithmic; x and y are the ranges of the axes, those of the data if not given
 */
export function plot(title, series, { log = false, x, y } = {}) {
  const list = Object.entries(series).map(([name, one]) => ({ name, x: Float32Array.from(one.x), y: Float32Array.from(one.y), dots: Boolean(one.dots) }));
  show({ kind: 'plot', title, series: list, log, ranges: { x, y } }, list.flatMap((one) => [one.x.buffer, one.y.buffer]));
}

/**
 * Draws a picture of numbers, row by row: dark for the least, bright for the largest. A figure with the same
 * title is replaced.
 * @param {string} title
 * @param {{width: number, height: number, data: ArrayLike<number>, range?: [number, number], dots?: {x: ArrayLike<number>, y: ArrayLike<number>, group: ArrayLike<number>}}} options
 *   range has the values that are darkest and brightest, those of the data if not given; dots are drawn over it, at fractions
 *   of its width and height, in the colours of two groups, 0 and 1
 */
export function picture(title, { width, height, data, range, dots }) {
  const values = Float32Array.from(data);
  show({ kind: 'picture', title, width, height, values, range, dots: dots && { x: [...dots.x], y: [...dots.y], group: [...dots.group] } }, [values.buffer]);
}
