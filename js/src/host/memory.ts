// The memory limit of programs: an option, or in Node, Deno and Bun the environment. Pages without a limit
// do not load it.

import type { Plan } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import { roundUp } from '../values/dtype.js';
import { checkCount, RlxError } from '../values/errors.js';

interface Process {
  env?: Record<string, string | undefined>;
  constrainedMemory?(): number;
  getBuiltinModule?(name: 'node:os'): { totalmem(): number };
}

/**
 * Refuses a plan whose buffers and rows of scalars, for runs of up to `maxSteps` steps, take more
 * than `memory` bytes, by default those of the variable RLX_MEMORY, or of the machine or its
 * control group.
 */
export function checkMemory(plan: Plan, maxSteps: number, memory: number | undefined): void {
  if (memory !== undefined) checkCount('memory', memory, 1);
  const allowed = memory ?? hostMemory();
  const rows = plan.entries.reduce((n, { uniformBytes }) => n + roundUp(uniformBytes, rowBytes) * maxSteps, 0);
  const needed = plan.buffers.reduce((n, { bytes }) => n + bytes, rows);
  if (needed > allowed) throw tooLarge(plan.name, needed, allowed);
}

/** The error for a plan that exceeds its memory: a WebAssembly memory addresses 4 GiB. */
export const tooLarge = (op: string, needed: number, allowed = 2 ** 32): RlxError =>
  new RlxError('memory', `plan ${op} takes ${needed} bytes, and may take ${allowed}`, { op, needed, allowed });

/** The limit of the environment, in bytes. A host without a figure, such as workerd, reports 0. */
function hostMemory(): number {
  const { process } = globalThis as { process?: Process }, given = process?.env?.RLX_MEMORY;
  if (given) return parseBytes(given);
  return Math.min(process?.constrainedMemory?.() || Infinity, process?.getBuiltinModule?.('node:os').totalmem() || Infinity);
}

/** Reads a number of bytes, as the Go function native.ParseBytes does: `8GiB`, `1.5 GB`, and `500M`, which are MiB. */
function parseBytes(text: string): number {
  const [, n, decimal, binary] = /^\s*(\d+\.?\d*)\s*(?:B|([kMGT])B|([KMGT])(?:iB)?)?\s*$/.exec(text) ?? [];
  const unit = decimal ? 1000 ** (1 + 'kMGT'.indexOf(decimal)) : binary ? 1024 ** (1 + 'KMGT'.indexOf(binary)) : 1;
  const bytes = Math.floor(Number(n) * unit);
  if (bytes >= 1 && bytes < 2 ** 63) return bytes;
  throw new RlxError('attr', `RLX_MEMORY: '${text}' is not a number of bytes such as 8GiB, 500MB or 1048576`, { name: 'RLX_MEMORY' });
}
