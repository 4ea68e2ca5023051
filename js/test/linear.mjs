// The plan of the Go package internal/compiler/plan/plantest: what its entries compute, once more, in
// JavaScript's own numbers.

import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';

const golden = new URL('../../internal/compiler/plan/testdata/linear_v1_0.rlxp', import.meta.url);

/** The bytes of the plan file. */
export const linearPlan = () => new Uint8Array(readFileSync(golden));

/** Gives a changed plan file a right length and checksum again. */
export function seal(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(8, bytes.length, true);
  view.setUint32(12, crc32(bytes.subarray(16)), true);
  return bytes;
}

/** The plan with one text replaced by another of the same length. */
export function linearPlanWith(from, to) {
  const bytes = Buffer.from(linearPlan()), at = bytes.indexOf(from);
  if (from.length !== to.length || at < 0) throw new Error(`cannot replace ${from}`);
  bytes.write(to, at);
  return seal(new Uint8Array(bytes));
}

/** Batch i: x f32[4,3] and t f32[4] = x·(1, -2, 3). */
export function batch(i) {
  const x = Float32Array.from({ length: 12 }, (_, k) => Math.sin(7 * i + 3 * k + 1));
  const t = Float32Array.from({ length: 4 }, (_, r) => x[3 * r] - 2 * x[3 * r + 1] + 3 * x[3 * r + 2]);
  return { x, t };
}

/** Makes steps as the plan does, and returns each one's loss. */
export function reference(w = [0.5, 1, 1.5]) {
  return {
    w,
    step({ x, t }, rate) {
      let loss = 0;
      const g = [0, 0, 0];
      for (let r = 0; r < 4; r++) {
        const d = x[3 * r] * w[0] + x[3 * r + 1] * w[1] + x[3 * r + 2] * w[2] - t[r];
        loss += d * d / 4;
        for (let k = 0; k < 3; k++) g[k] += d * x[3 * r + k] / 2;
      }
      for (let k = 0; k < 3; k++) w[k] -= rate * g[k];
      return loss;
    },
  };
}

/** Whether two lists of numbers agree to a relative error, or an absolute one near 0. */
export function close(got, want, tolerance = 1e-5) {
  return got.length === want.length && [...got].every((v, i) => Math.abs(v - want[i]) <= tolerance * Math.max(1, Math.abs(want[i])));
}
