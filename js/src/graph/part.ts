import type { Value } from './builder.js';

/** A part of an axis. */
export function part(x: Value, axis: number, start: number, count: number): Value {
  const at = axis < 0 ? axis + x.shape.length : axis;
  return x.slice({ start: x.shape.map((_, i) => i === at ? start : 0), size: x.shape.map((n, i) => i === at ? count : n), stride: x.shape.map(() => 1) });
}
