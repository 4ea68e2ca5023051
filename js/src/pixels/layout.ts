// The elements of an input that a picture has.

import type { Slot } from '../plan/plan.js';
import { wrong } from '../program/inputs.js';

/** The order of an input's axes: channels last, as in `[height, width, channels]`, or first. */
export type Channels = 'last' | 'first';

/** An input as pictures: its axes, and the position of an element's byte or word. */
export interface Layout {
  op: string;
  slot: Slot;
  /** The number of pictures. */
  count: number;
  height: number;
  width: number;
  /** 4: red, green, blue and alpha, not multiplied by it; 3: without alpha, over black; 1: the luma of these, by Rec. 601. */
  depth: 1 | 3 | 4;
  channels: Channels;
  /** The number of bytes of an element. */
  bytes: 1 | 2 | 4;
}

const widths: Readonly<Record<string, 1 | 2 | 4>> = { u8: 1, f16: 2, f32: 4 };

/** The layout of an input. Throws an {@link RlxError} where pictures cannot be its elements: `dtype`, `shape`. */
export function layoutOf(op: string, slot: Slot, channels: Channels): Layout {
  const { name, dtype, shape } = slot, bytes = Object.hasOwn(widths, dtype) ? widths[dtype] : undefined;
  if (!bytes) throw wrong('dtype', op, name, `is ${dtype}: as a picture it must be u8, f16 or f32`);
  const axes = channels === 'first' ? [...shape.slice(0, -3), ...shape.slice(-2), ...shape.slice(-3, -2)] : shape;
  const [count, height, width, depth] = shape.length === 2 ? [1, ...shape, 1] : shape.length === 3 ? [1, ...axes] : axes;
  if (shape.length >= 2 && shape.length <= 4 && (depth === 1 || depth === 3 || depth === 4)) {
    return { op, slot, count: count!, height: height!, width: width!, depth, channels, bytes };
  }
  const last = channels === 'first' ? 'channels, height, width' : 'height, width, channels';
  throw wrong('shape', op, name, `is ${dtype}[${shape}]: as a picture it must be [height, width], [${last}] or [batch, ${last}], of 1, 3 or 4 channels`);
}
